"""The configuration: what is merged over what, what is refused, and the slice that each job is given.

    config/config.yaml  <  config/scales/SCALE.yaml  <  the command line (--configfile, --config)

A scale may say that it is `like` another one, whose file comes before its own.

Every job reads one small file holding just the keys it depends on, so an edit of another key re-runs nothing, and
that file alone is enough to repeat the job by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from datpo.config_checks import DURATIONS, SOURCES, check, check_removals, problem_entries
from datpo.config_schema import as_number, conform, validate
from datpo.core.errors import InputError
from datpo.core.files import whole_file
from datpo.core.problem import load_problems, questions_hash

Settings = dict[str, Any]

SCHEMA = Path("workflow/schemas/config.schema.yaml")
# Of these a map holds one: an overlay that names another replaces the map instead of adding to it.
CHOICES = (set(DURATIONS), set(SOURCES))


def load_config(root: Path, overrides: Mapping[str, Any]) -> Settings:
    """The whole experiment: merged, completed with the schema's defaults, and checked.

    Args:
        root: the folder that holds `config/` and `workflow/`.
        overrides: what the command line says; strings stand for numbers where the schema wants numbers.

    Returns:
        The configuration; each run in it carries its full `train` settings and its method's `numbers`, and each
        problem set from a local file the file's fingerprints, `sha256` and `questions`.

    Raises:
        InputError: an unknown scale, key or method, a value of the wrong kind, or settings that contradict each
            other; one line for each mistake.
    """
    folder = root / "config"
    merged = _read(folder / "config.yaml")
    asked = overrides.get("scale")
    scale = str(merged.get("scale") if asked in (None, "null") else asked)
    for layer in (*_scale_layers(folder / "scales", scale), overrides):
        check_removals(merged, layer)
        merged = merge(merged, layer)
    merged["scale"] = scale
    schema = _read(root / SCHEMA)
    # Before the runs are completed, so that a mistake is told once, at the place where it was made.
    validate(conform(merged, schema, schema["$defs"]), schema)
    merged["runs"] = {name: _whole_run(name, run, merged, folder) for name, run in merged.get("runs", {}).items()}
    config: Settings = conform(merged, schema, schema["$defs"])
    check(config, _names_in(folder / "methods"))
    for at, entry in problem_entries(config):
        if "path" in entry:
            entry.update(_fingerprints(at, entry["path"]))
    return config


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Settings:
    """`above` laid over `below`: maps are merged key by key, anything else is replaced, null removes a key."""
    merged = dict(below)
    for key, value in above.items():
        if value is None or value == "null":  # Snakemake hands words over from within `--config 'a={b: null}'`
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            old = merged.get(key)
            merged[key] = merge(old if isinstance(old, Mapping) and not _chooses_anew(old, value) else {}, value)
        else:
            merged[key] = value
    return merged


def problem_settings(config: Settings, name: str) -> Settings:
    """What one problem set is made from: "train", "validation" or "benchmarks/NAME".

    A held-out set names the training set's recipe too, so that another one is checked against it again.
    """
    own = {"set": name, **_recipe(config, name)}
    return own if "from_train" in own or name == "train" else {**own, "apart_from": _recipe(config, "train")}


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


def sample_settings(
    config: Settings, model: str, method: str, run: str, seed: int, benchmark: str, at: str = ""
) -> Settings:
    """What the samples of one checkpoint on one benchmark depend on; "train" is the training set.

    The checkpoint is the last one where `at` is "", the one that had spent its tokens where it is "/at-tokens", ...
    """
    n = config["difficulty"]["samples"] if benchmark == "train" else config["benchmarks"][benchmark]["samples"]
    later = ("bootstrap", "missing", "truncated")
    where = {"at": at.removeprefix("/at-")} if at else {}
    return {
        "identity": {**_identity(config, model, method, run, seed), **where},
        "domain": config["domain"],
        "prompt": config["prompt"],
        "benchmark": benchmark,
        "n": n,
        "data": _recipe(config, set_of(benchmark), keys=False),
        **{key: value for key, value in config["evaluation"].items() if key not in later},
    }


def score_settings(config: Settings, benchmark: str) -> Settings:
    """How the samples of a benchmark are graded, the answer keys included."""
    return {"truncated": config["evaluation"]["truncated"], "data": _recipe(config, set_of(benchmark))}


def metrics_settings(config: Settings, benchmark: str) -> Settings:
    """How the scores of a benchmark are counted."""
    return {
        "k": config["benchmarks"][benchmark]["k"],
        **{key: config["evaluation"][key] for key in ("bootstrap", "missing", "seed")},
    }


def difficulty_settings(config: Settings) -> Settings:
    """How training problems are told apart by difficulty."""
    return dict(config["difficulty"])


def table_settings(config: Settings) -> Settings:
    """What the tables and figures show."""
    return {
        "models": list(config["models"]),
        "runs": {name: run["method"] for name, run in config["runs"].items()},
        "seeds": config["seeds"],
        "benchmarks": list(config["benchmarks"]),
    }


def set_of(benchmark: str) -> str:
    """The problem set behind a benchmark's samples; "train" is the training set, sampled to tell difficulty."""
    return benchmark if benchmark == "train" else f"benchmarks/{benchmark}"


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


def _chooses_anew(below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    """Whether both maps name one of a set of choices, but not the same."""
    named = {key for key, value in above.items() if value not in (None, "null")}
    return any(choice & named and choice & set(below) and not choice & named & set(below) for choice in CHOICES)


def _identity(config: Settings, model: str, method: str, run: str, seed: int) -> Settings:
    return {"scale": config["scale"], "model": model, "method": method, "run": run, "seed": int(seed)}


def _recipe(config: Settings, name: str, keys: bool = True) -> Settings:
    """All that the problems of one set depend on; without their answer keys, all that the questions depend on."""
    data, taken = config["data"], config["data"]["validation"].get("from_train")
    if name == "train" or (name == "validation" and taken):
        entry, drawn = data["train"], {"from_train": taken} if taken else {}
    else:
        entry = data["validation"] if name == "validation" else config["benchmarks"][name.split("/", 1)[1]]["problems"]
        drawn = {}
    problems = {key: value for key, value in entry.items() if key != ("questions" if keys else "sha256")}
    return {"problems": problems, **drawn, **({"seed": data["seed"]} if drawn or "levels" in entry else {})}


def _fingerprints(at: str, path: str) -> Settings:
    """What tells a changed file of problems from the same, and changed questions from mended answer keys."""
    try:
        problems = load_problems(path)
    except InputError as error:
        raise InputError(f"config: {at}.path: {error}") from None
    return {"sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(), "questions": questions_hash(problems)}


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML in which a key that stands twice in one map is an error, not a silent choice of the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A map; YAMLError if a key stands in it twice."""
        seen: list[Any] = []
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.append(key)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def _read(path: Path) -> Settings:
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold `key: value` lines")
    return value


def _names_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _read_named(folder: Path, name: str, kind: str) -> Settings:
    """The file NAME.yaml of a folder whose files are the possible names."""
    known = _names_in(folder)
    if name not in known:
        raise InputError(
            f"config: {kind} {name!r} has no file config/{folder.name}/{name}.yaml; known: {', '.join(known)}"
        )
    return _read(folder / f"{name}.yaml")


def _scale_layers(folder: Path, scale: str) -> list[Settings]:
    """A scale's file, behind the one it says it is `like`."""
    layer = _read_named(folder, scale, "scale")
    like = layer.pop("like", None)
    return [layer] if like is None else [_read_named(folder, str(like), f"scale {scale!r}: like"), layer]


def _whole_run(name: str, run: Settings, config: Settings, folder: Path) -> Settings:
    """A run with its full settings: the scale's and its method's, with its own laid over them."""
    usual = _read_named(folder / "methods", run["method"], f"run {name!r}: method")
    numbers = _as_numbers(merge(usual, run.get("numbers", {})))
    for key, value in usual.items():
        length = len(value) if isinstance(value, list) else None
        given = numbers.get(key, value)
        if length and not isinstance(given, str) and not (isinstance(given, list) and len(given) == length):
            raise InputError(
                f"config: run {name!r}: method {run['method']!r}: {key} must be a list of "
                f"{'two' if length == 2 else length} numbers, e.g. {value}, not {given!r}"
            )
    return {"method": run["method"], "numbers": numbers, "train": merge(config["train"], run.get("train", {}))}


def _as_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_numbers(item) for item in value]
    return as_number(value) if isinstance(value, str) else value
