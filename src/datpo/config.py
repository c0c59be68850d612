"""The configuration: what is merged over what, and what is refused.

    config/studies/, config/explorations/  <  config/config.yaml  <  config/scales/SCALE.yaml  <  the command line
                                                                                              (--configfile, --config)

A file of a study or an exploration is what stands under its name. A scale may say that it is `like` another one, whose
file comes before its own.

What of it each job is given: `config_slices`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from datpo.config_checks import DURATIONS, MODEL_SOURCES, SOURCES, check, check_removals, problem_entries
from datpo.config_choice import add_fingerprints
from datpo.config_schema import as_number, conform, validate
from datpo.config_studies import trainings
from datpo.core.errors import InputError
from datpo.core.files import read_text, whole_file
from datpo.core.problem import questions_hash
from datpo.data.files import check_rows, file_hash, load_file

Settings = dict[str, Any]

SCHEMA = Path("workflow/schemas/config.schema.yaml")
# Of these a map holds one: an overlay that names another replaces the map instead of adding to it.
CHOICES = (set(DURATIONS), set(SOURCES), set(MODEL_SOURCES))


def load_config(root: Path, overrides: Mapping[str, Any]) -> Settings:
    """The whole experiment: merged, completed with the schema's defaults, and checked.

    Args:
        root: the folder that holds `config/` and `workflow/`.
        overrides: what the command line says; strings stand for numbers where the schema wants numbers.

    Returns:
        The configuration; each run in it carries its full `train` settings and its method's `numbers`, each model its
        full `prompt`, and each problem set from a local file the file's fingerprints, `sha256` and `questions`. Beside
        `runs`, `trainings` holds all runs, those of studies included.

    Raises:
        InputError: an unknown scale, key or method, a value of the wrong kind, or settings that contradict each
            other; one line for each mistake.
    """
    folder = root / "config"
    named = {kind: _read_all(folder / kind) for kind in ("studies", "explorations")}
    merged = merge(named, _read(folder / "config.yaml"))
    asked = overrides.get("scale")
    scale = str(merged.get("scale") if asked in (None, "null") else asked)
    for layer in (*_scale_layers(folder / "scales", scale), overrides):
        check_removals(merged, layer)
        merged = merge(merged, layer)
    merged["scale"] = scale
    schema = _read(root / SCHEMA)
    # Before the runs are completed, so that a mistake is told once, at the place where it was made.
    validate(conform(merged, schema, schema["$defs"]), schema)
    for place in (merged, *merged.get("studies", {}).values()):
        train = merged["train"] if place is merged else merge(merged["train"], place.get("train", {}))
        place["runs"] = {name: _whole_run(name, run, train, folder) for name, run in place.get("runs", {}).items()}
    for exploration in merged.get("explorations", {}).values():
        for name, structure in exploration["structures"].items():
            structure["numbers"] = _whole_numbers(f"structure {name!r}", structure, folder)
    for model in merged["models"].values():
        model["prompt"] = merge(merged.get("prompt", {}), model.get("prompt", {}))
    config: Settings = conform(merged, schema, schema["$defs"])
    config["trainings"] = trainings(config)
    check(config, _names_in(folder / "methods"))
    for at, entry in problem_entries(config):
        if "path" in entry:
            entry.update(_fingerprints(at, entry))
    add_fingerprints(config, root)
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


def _fingerprints(at: str, entry: Settings) -> Settings:
    """What tells a changed file of problems from the same, and changed questions from mended answer keys."""
    try:
        problems = load_file(entry["path"], entry, at)
        check_rows(problems, entry, at)
    except InputError as error:
        raise InputError(f"config: {at}.path: {error}") from None
    return {"sha256": file_hash(entry["path"]), "questions": questions_hash([each for each in problems if each.answer])}


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
    text = read_text(path)
    try:
        value = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold `key: value` lines")
    return value


def _read_all(folder: Path) -> Settings:
    """What stands in each file of a folder, by the file's name."""
    return {name: _read(folder / f"{name}.yaml") for name in _names_in(folder)}


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


def _whole_run(name: str, run: Settings, train: Settings, folder: Path) -> Settings:
    """A run with its full settings: the usual `train` and its method's numbers, with its own laid over them."""
    numbers = _whole_numbers(f"run {name!r}", run, folder)
    return {"method": run["method"], "numbers": numbers, "train": merge(train, run.get("train", {}))}


def _whole_numbers(at: str, run: Settings, folder: Path) -> Settings:
    """All numbers of a run's method: those of the method's file, with the run's own laid over them."""
    usual = _read_named(folder / "methods", run["method"], f"{at}: method")
    numbers: Settings = _as_numbers(merge(usual, run.get("numbers", {})))
    for key, value in usual.items():
        length = len(value) if isinstance(value, list) else None
        given = numbers.get(key, value)
        if length and not isinstance(given, str) and not (isinstance(given, list) and len(given) == length):
            raise InputError(
                f"config: {at}: method {run['method']!r}: {key} must be a list of "
                f"{'two' if length == 2 else length} numbers, e.g. {value}, not {given!r}"
            )
    return numbers


def _as_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_numbers(item) for item in value]
    return as_number(value) if isinstance(value, str) else value
