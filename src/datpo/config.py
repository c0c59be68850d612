"""The configuration: what is merged over what, what is refused, and the slice that each job is given.

    config/config.yaml  <  config/scales/SCALE.yaml  <  the command line (--configfile, --config)

Every job reads one small file holding just the keys it depends on, so an edit of another key re-runs nothing, and
that file alone is enough to repeat the job by hand.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from datpo.core.errors import InputError
from datpo.core.files import whole_file

Settings = dict[str, Any]

SCHEMA = Path("workflow/schemas/config.schema.yaml")
DURATIONS = ("steps", "tokens", "updates")
# "Exactly one of" maps: an overlay that names another of the choices replaces the map instead of adding to it.
REPLACED = ("duration",)


def load_config(root: Path, overrides: Mapping[str, Any]) -> Settings:
    """The whole experiment: merged, completed with the schema's defaults, and checked.

    Args:
        root: the folder that holds `config/` and `workflow/`.
        overrides: what the command line says; strings stand for numbers where the schema wants numbers.

    Returns:
        The configuration; each run in it carries its full `train` settings and its method's `numbers`.

    Raises:
        InputError: an unknown scale, key or method, a value of the wrong kind, or settings that contradict each other.
    """
    folder = root / "config"
    merged = merge(_read(folder / "config.yaml"), {})
    scale = str(overrides.get("scale") or merged.get("scale"))
    merged = merge(merged, _read_named(folder / "scales", scale, "scale"))
    merged = merge(merged, overrides)
    _resolve_runs(merged, folder)
    schema = _read(root / SCHEMA)
    config: Settings = _conform(merged, schema, schema["$defs"])
    _validate(config, schema)
    _check_runs(config)
    _check_sizes(config)
    return config


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Settings:
    """`above` laid over `below`: maps are merged key by key, anything else is replaced, null removes a key."""
    merged = dict(below)
    for key, value in above.items():
        if value is None or value == "null":  # Snakemake hands words over from within `--config 'a={b: null}'`
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            old = merged.get(key)
            merged[key] = merge(old if isinstance(old, Mapping) and key not in REPLACED else {}, value)
        else:
            merged[key] = value
    return merged


def data_settings(config: Settings) -> Settings:
    """What the problem sets are made from."""
    return {
        "domain": config["domain"],
        **config["data"],
        "benchmarks": {name: benchmark["problems"] for name, benchmark in config["benchmarks"].items()},
    }


def model_settings(config: Settings, model: str) -> Settings:
    """What a base model is fetched from, or pre-trained with."""
    chosen = config["models"][model]
    if "source" in chosen:
        return {"source": chosen["source"]}
    return {"pretrain": chosen["pretrain"], "prompt": config["prompt"]}


def train_settings(config: Settings, model: str, run: str, seed: int) -> Settings:
    """What one training run depends on, its model and training data included."""
    chosen = config["runs"][run]
    return {
        "identity": _identity(config, model, chosen["method"], run, seed),
        "domain": config["domain"],
        "prompt": config["prompt"],
        "method": chosen["numbers"],
        "train": chosen["train"],
        "model": config["models"][model],
        "data": _recipe(config, "train"),
    }


def sample_settings(config: Settings, model: str, method: str, run: str, seed: int, benchmark: str) -> Settings:
    """What the samples of one checkpoint on one benchmark depend on; "train" is the training set."""
    n = config["difficulty"]["samples"] if benchmark == "train" else config["benchmarks"][benchmark]["samples"]
    evaluation = {key: value for key, value in config["evaluation"].items() if key not in ("bootstrap", "missing")}
    return {
        "identity": _identity(config, model, method, run, seed),
        "domain": config["domain"],
        "prompt": config["prompt"],
        "benchmark": benchmark,
        "n": n,
        "data": _recipe(config, benchmark),
        **evaluation,
    }


def metrics_settings(config: Settings, benchmark: str) -> Settings:
    """How the scores of a benchmark are counted."""
    return {
        "k": config["benchmarks"][benchmark]["k"],
        **{key: config["evaluation"][key] for key in ("bootstrap", "missing", "seed")},
    }


def difficulty_settings(config: Settings) -> Settings:
    """How training problems are told apart by difficulty."""
    return dict(config["difficulty"])


def write_settings(settings: str, out: Path) -> None:
    """Write the settings of one job, given as JSON, as YAML with sorted keys: equal settings are equal bytes."""
    with whole_file(out) as handle:
        yaml.safe_dump(json.loads(settings), handle, sort_keys=True, allow_unicode=True, width=100)


def read_settings(path: Path) -> Settings:
    """Read the settings of one job.

    Raises:
        InputError: the file is missing or is no YAML map.
    """
    return _read(path)


def known_keys(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], at: str = ""
) -> Iterator[tuple[str, Settings]]:
    """Every key of the schema as a dotted path, with what the schema says about it; NAME stands for a free name."""
    schema = _resolved(schema, definitions)
    for key, child in schema.get("properties", {}).items():
        yield f"{at}{key}", _resolved(child, definitions)
        yield from known_keys(child, definitions, f"{at}{key}.")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from known_keys(schema["additionalProperties"], definitions, f"{at}NAME.")


def _identity(config: Settings, model: str, method: str, run: str, seed: int) -> Settings:
    return {"scale": config["scale"], "model": model, "method": method, "run": run, "seed": int(seed)}


def _recipe(config: Settings, name: str) -> Settings:
    """All that the problems of one set depend on: its own entry, and those that it has to be kept apart from."""
    data, moves = config["data"], config["domain"] == "moves"
    if name == "train":
        needed = {"train": data["train"]}
        return {"seed": data["seed"], **needed, **({} if moves else {"validation": data["validation"]})}
    entries = {key: benchmark["problems"] for key, benchmark in sorted(config["benchmarks"].items())}
    if not moves:
        return {"benchmarks": {name: entries[name]}}
    # Held-out puzzles are drawn set by set, in the order of names, each without those before it.
    before = {key: entry for key, entry in entries.items() if key <= name}
    return {"seed": data["seed"], "validation": data["validation"], "benchmarks": before}


def _read(path: Path) -> Settings:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold `key: value` lines")
    return value


def _read_named(folder: Path, name: str, kind: str) -> Settings:
    """The file NAME.yaml of a folder whose files are the possible names."""
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise InputError(f"{kind} {name!r} has no file {folder.name}/{name}.yaml in config/; known: {', '.join(known)}")
    return _read(folder / f"{name}.yaml")


def _resolve_runs(config: Settings, folder: Path) -> None:
    """Give each run its full settings: the scale's and its method's, with its own laid over them."""
    runs = config.get("runs")
    for name, run in (runs if isinstance(runs, Mapping) else {}).items():
        if not isinstance(run, dict) or not isinstance(run.get("method"), str):
            raise InputError(f"config: runs.{name} must be a map that names its `method`")
        numbers = _read_named(folder / "methods", run["method"], f"run {name!r}: method")
        run["numbers"] = merge(numbers, run.get("numbers") or {})
        run["train"] = merge(config.get("train") or {}, run.get("train") or {})


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Settings:
    """The schema itself in place of a reference to it; what stands beside the reference wins."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**definitions[name], **schema} if name else dict(schema)


def _conform(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """`value` with the schema's defaults filled in, and with strings read as numbers where numbers are wanted."""
    schema = _resolved(schema, definitions)
    if isinstance(value, Mapping):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        full = {key: child["default"] for key, child in known.items() if "default" in child} | dict(value)
        fitting = {key: known.get(key, other if isinstance(other, Mapping) else {}) for key in full}
        return {key: _conform(full[key], fitting[key], definitions) for key in full}
    if isinstance(value, list):
        return [_conform(item, schema.get("items", {}), definitions) for item in value]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, str) and "string" not in kinds:
        return _number(value) if {"number", "integer", "boolean"} & set(kinds) else value
    return value


def _number(text: str) -> Any:
    """A number that came as text: from the command line, or `1e-4`, which YAML takes for a word."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def _validate(config: Settings, schema: Settings) -> None:
    errors = sorted(Draft202012Validator(schema).iter_errors(config), key=lambda error: list(map(str, error.path)))
    if errors:
        raise InputError("\n".join(dict.fromkeys(_readable(error) for error in errors)))


def _readable(error: ValidationError) -> str:
    """One line that names the key; for an unknown one, also the key that was probably meant."""
    where = ".".join(str(part) for part in error.path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(key for key in error.instance if key not in known)
        near = difflib.get_close_matches(str(unknown), known, n=1)
        guess = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        return f"config: unknown key {'.'.join(filter(None, (where, str(unknown))))!r}; {guess}"
    return f"config: {where or 'the whole'}: {error.message}"


def _check_runs(config: Settings) -> None:
    if not config["runs"]:
        raise InputError("config: runs: nothing is listed, so there is nothing to train")
    for name in ("base", "train"):
        if name in config["runs"] or name in config["benchmarks"]:
            raise InputError(f"config: {name!r} names the base model or the training set, not a run or a benchmark")
    for name, run in config["runs"].items():
        chosen = [unit for unit in DURATIONS if unit in run["train"]["duration"]]
        if len(chosen) != 1:
            raise InputError(
                f"config: run {name!r}: train.duration needs exactly one of {', '.join(DURATIONS)}, "
                f"not {' and '.join(chosen) or 'none'}"
            )


def _check_sizes(config: Settings) -> None:
    for name, model in config["models"].items():
        if len({"pretrain", "source"} & set(model)) != 1:
            raise InputError(f"config: models.{name} needs exactly one of `pretrain` and `source`")
        source = model.get("source", {"path": "none"})
        if not source.get("path") and not (source.get("hub") and source.get("revision")):
            raise InputError(f"config: models.{name}.source needs `hub` and `revision` (a commit), or `path`")
    for name, benchmark in config["benchmarks"].items():
        if max(benchmark["k"]) > benchmark["samples"]:
            raise InputError(
                f"config: benchmarks.{name}: k = {max(benchmark['k'])} is above its {benchmark['samples']} samples "
                "per problem, so pass@k cannot be estimated; raise `samples` or lower `k`"
            )
