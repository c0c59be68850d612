"""Studies and explorations: what each table and figure beside the main one is about, from a file each.

A study compares trainings, its own and those of the experiment or of other studies; an exploration grows rollout
trees without training. Each is named like its file in config/studies/ or config/explorations/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

Settings = Mapping[str, Any]

BASE = "base"  # the untrained model, where a training's name is asked for
SCORES = ("avg", "pass", "maj")  # the columns of a table that need samples of a checkpoint
FORK_TABLES = ("table1", "table6", "table7")  # of explorations
TARGETS = ("table", "figure")  # what a study's name begins with: the tables are made alike, each figure by a verb


def trainings(config: Settings) -> dict[str, Settings]:
    """Every training by its name: the experiment's runs, and those that studies add to them.

    Each keeps the checkpoints that studies read along its way.
    """
    found: dict[str, Settings] = dict(config["runs"])
    for study in config["studies"].values():
        found = {**study["runs"], **found}
    kept: dict[str, dict[str, set[int]]] = {name: {} for name in found}
    for name, study in config["studies"].items():
        for (_, run), (unit, amounts) in product(rows_of(config, name), study["checkpoints"].items()):
            kept.get(run, {}).setdefault(unit, set()).update(amounts)
    return {name: _with_checkpoints(run, kept[name]) for name, run in found.items()}


def _with_checkpoints(run: Settings, asked: Mapping[str, set[int]]) -> Settings:
    """A training that keeps its own checkpoints and those asked for, as far as they lie before its end.

    Of a unit that its duration does not name it cannot be said where they lie: they are left out.
    """
    train = run["train"]
    own = {unit: set(amounts) for unit, amounts in train["checkpoints"].items()}
    kept = {
        unit: sorted(amount for amount in own.get(unit, set()) | asked.get(unit, set()) if amount < end)
        for unit, end in train["duration"].items()
    }
    return {**run, "train": {**train, "checkpoints": {unit: amounts for unit, amounts in kept.items() if amounts}}}


def rows_of(config: Settings, name: str) -> list[tuple[str | None, str]]:
    """The rows of a study, each its label (None: as the main table has it) and the name of its training."""
    study = config["studies"][name]
    if study["rows"] is not None:
        there = {BASE, *config["runs"], *(run for each in config["studies"].values() for run in each["runs"])}
        return [(label, run) for label, run in study["rows"].items() if run in there]
    scored = bool(set(SCORES) & set(study["columns"]))
    return [(None, run) for run in ([BASE] if scored else []) + list(config["runs"])]


def models_of(config: Settings, name: str) -> list[str]:
    """The models that a study is about."""
    named = config["studies"][name]["models"]
    return [model for model in config["models"] if named is None or model in named]


def models_told_by_difficulty(config: Settings) -> list[str]:
    """The models whose training problems are told apart by difficulty: those trained on a band, or all if none is."""
    banded = {run for run, training in config["trainings"].items() if training["train"]["subset"]}
    shown = [name for name in config["studies"] if any(run in banded for _, run in rows_of(config, name))]
    return [
        model
        for model in config["models"]
        if not shown or any(model in models_of(config, name) for name in shown) or banded & set(config["runs"])
    ]


def benchmarks_of(config: Settings, name: str) -> list[str]:
    """The benchmarks that a study is about."""
    named = config["studies"][name]["benchmarks"]
    return list(config["benchmarks"]) if named is None else [each for each in named if each in _asked(config)]


def checkpoints_of(config: Settings, name: str) -> dict[str, list[int]]:
    """Where all trainings of a study have a checkpoint along the way, of those it asks for."""
    runs = [config["trainings"][run]["train"]["checkpoints"] for _, run in rows_of(config, name) if run != BASE]
    asked = config["studies"][name]["checkpoints"]
    there = {
        unit: [amount for amount in sorted(amounts) if all(amount in kept.get(unit, ()) for kept in runs)]
        for unit, amounts in asked.items()
    }
    return {unit: amounts for unit, amounts in there.items() if amounts}


def study_settings(config: Settings, name: str) -> Settings:
    """What a table or figure of a study shows.

    Where one row alone is a run of the experiment, the others are held against it.
    """
    study = config["studies"][name]
    untrained = {"method": BASE, "numbers": {}, "train": {}}
    rows = rows_of(config, name)
    known = [run for _, run in rows if run in config["runs"]]
    return {
        "study": name,
        "scale": config["scale"],
        "models": models_of(config, name),
        "benchmarks": benchmarks_of(config, name),
        "seeds": config["seeds"],
        "columns": study["columns"],
        "checkpoints": checkpoints_of(config, name),
        "rows": [{"label": label, "run": run, **config["trainings"].get(run, untrained)} for label, run in rows],
        "against": known[0] if len(known) == 1 < len(rows) else None,
    }


def absences(config: Settings) -> list[tuple[str, str]]:
    """What studies and explorations name that is not there: whose name, and a sentence.

    So a benchmark, model or run may be taken away without an edit of all that shows it: it is left out there.
    """
    known = {"models": set(config["models"]), "benchmarks": _asked(config), "rows": {BASE, *config["trainings"]}}
    named = {name: {**study, "rows": list((study["rows"] or {}).values())} for name, study in config["studies"].items()}
    for name, one in config["explorations"].items():
        model = [one["model"]] if one["model"] else None
        named[name] = {"models": model, "benchmarks": [one["benchmark"]], "rows": [one["run"]]}
    return [
        (name, f"among its {kind} is {each!r}, which is not there; known: {', '.join(sorted(known[kind]))}")
        for name, kind in product(named, known)
        for each in named[name][kind] or ()
        if each not in known[kind]
    ]


def lacking(config: Settings) -> dict[str, str]:
    """The studies of which nothing is left, and the explorations that name something that is not there; and why."""
    why = dict(absences(config))
    empty = {
        name: "no model, benchmark or row is left of it"
        for name in config["studies"]
        if not (models_of(config, name) and rows_of(config, name))
        or (config["studies"][name]["benchmarks"] and not benchmarks_of(config, name))
    }
    pointless = {
        name: "none of its checkpoints lies within the duration of all its trainings"
        for name, study in config["studies"].items()
        if study["checkpoints"] and not checkpoints_of(config, name)
    }
    return {**pointless, **empty, **{name: why[name] for name in config["explorations"] if name in why}}


def ends_together(config: Settings, name: str, unit: str) -> bool:
    """Whether all trainings of a study have a checkpoint where they first had spent a unit of their duration."""
    runs = [config["trainings"][run]["train"]["duration"] for _, run in rows_of(config, name) if run != BASE]
    return all(unit in duration and len(duration) > 1 for duration in runs)


def _asked(config: Settings) -> set[str]:
    return {*config["benchmarks"], *config["out_of_domain"]}


def mistakes_in_studies(config: Mapping[str, Any]) -> Iterator[str]:
    """A line for each name that cannot be a target's, each contradiction, and each subset that is no band."""
    if "table2" not in config["studies"]:
        yield "studies.table2: cannot be taken away, it is the experiment itself; ask for another target instead"
    defined: dict[str, tuple[str, Any]] = {}
    for name, study in config["studies"].items():
        if not name.startswith(TARGETS) or name in FORK_TABLES:
            yield f"studies.{name}: names begin with {' or '.join(TARGETS)}, and {', '.join(FORK_TABLES)} are taken"
        for key in ("columns", "benchmarks", "rows"):
            if study[key] is not None and not study[key]:
                yield f"studies.{name}.{key}: is empty, so there is nothing to show"
        if "passes" in (study["checkpoints"] or {}):
            yield f"studies.{name}.checkpoints.passes: logs count no passes; say steps, tokens or updates"
        rows = list((study["rows"] or {}).values())
        for run in sorted({run for run in rows if rows.count(run) > 1}):
            yield f"studies.{name}.rows: {run!r} stands in two rows; a table shows each training once"
        for run, whole in study["runs"].items():
            other, same = defined.setdefault(run, (name, whole))
            if whole != same and run not in config["runs"]:
                yield f"studies.{name}.runs.{run}: is defined otherwise in studies.{other}; give it another name"
    for name, run in config["trainings"].items():
        subset, bands = run["train"]["subset"], config["difficulty"]["bands"]
        if subset not in {None, *bands}:
            yield f"run {name!r}: train.subset: there is no band {subset!r}; known: {', '.join(bands)}"
