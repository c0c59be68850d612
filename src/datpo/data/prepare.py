"""The data of a scale: a training set, a validation set and benchmarks, checked against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import write_json
from datpo.core.problem import Problem, save_problems
from datpo.core.seeds import generator
from datpo.data.moves import Part, make_problems
from datpo.data.sources import check_apart, check_distinct, load_source

KINDS = ("levels", "path", "hub", "from_train")


def prepare_data(config: Path, out: Path) -> None:
    """Write the problem sets that `config` asks for, once all of them have passed all checks.

    The files are `out`/train.jsonl, `out`/validation.jsonl, `out`/benchmarks/NAME.jsonl and `out`/manifest.json,
    which counts the problems of each set by level. No set holds a problem twice, and no problem of the training
    set occurs in another set.

    `config` is YAML with `seed`, `train`, `validation` and `benchmarks` (name -> entry). An entry is `{levels,
    count}`, move puzzles to make, or a source that `load_source` reads; `validation` may also be `{from_train:
    N}`, N problems drawn from the training set and taken out of it. What is in a set depends on its own name and
    entry and the seed (`from_train` apart), so another benchmark changes none of the others.

    Raises:
        InputError: a key is missing, a source does not hold what the entry says, or a check fails.
    """
    settings = read_settings(config)
    sets = _problem_sets(settings)
    for name, problems in sets.items():
        check_distinct(problems, name)
    check_apart(sets["train"], {name: problems for name, problems in sets.items() if name != "train"})
    for name, problems in sets.items():
        save_problems(out / f"{name}.jsonl", problems)
    write_json(out / "manifest.json", {"config": settings, "sets": {name: _census(sets[name]) for name in sets}})


def _problem_sets(settings: Mapping[str, Any]) -> dict[str, list[Problem]]:
    """The problems of "train", "validation" and each "benchmarks/NAME"."""
    for key in ("seed", "train", "validation", "benchmarks"):
        if key not in settings:
            raise InputError(f"data: key {key!r} is missing")
    seed = settings["seed"]
    train = _problems(settings["train"], "train", "training", seed)
    held_out = settings["validation"]
    if "from_train" in held_out:
        train, validation = _split(train, held_out, seed)
    else:
        validation = _problems(held_out, "validation", "validation", seed)
    benchmarks = {
        f"benchmarks/{name}": _problems(entry, f"benchmarks/{name}", "benchmark", seed)
        for name, entry in settings["benchmarks"].items()
    }
    return {"train": train, "validation": validation, **benchmarks}


def _problems(entry: Mapping[str, Any], name: str, part: Part, seed: int) -> list[Problem]:
    kinds = [kind for kind in KINDS if kind in entry]
    if len(kinds) != 1 or kinds == ["from_train"]:
        raise InputError(f"data set {name!r}: give one of `levels`, `path` and `hub`, not {kinds}")
    if "levels" not in entry:
        return load_source(entry, name)
    if "count" not in entry:
        raise InputError(f"data set {name!r}: key 'count' is missing beside `levels`")
    return make_problems(entry["count"], entry["levels"], seed, name, part)


def _split(train: list[Problem], entry: Mapping[str, Any], seed: int) -> tuple[list[Problem], list[Problem]]:
    """The training set without the problems drawn for validation, and these."""
    wanted = entry["from_train"]
    if not 0 < wanted < len(train):
        raise InputError(f"data set 'validation': `from_train: {wanted}`, but there are {len(train)} training problems")
    order = generator(seed, "validation").permutation(len(train))
    drawn = {train[index].id for index in order[:wanted]}
    kept = [problem for problem in train if problem.id not in drawn]
    return kept, [problem for problem in train if problem.id in drawn]


def _census(problems: list[Problem]) -> dict[str, Any]:
    counts = Counter("unknown" if problem.level is None else str(problem.level) for problem in problems)
    return {"problems": len(problems), "levels": dict(sorted(counts.items()))}
