"""One problem set: made or loaded, and checked by itself and against the training set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.problem import Problem, load_problems, save_problems
from datpo.core.seeds import generator
from datpo.data.moves import Part, make_problems
from datpo.data.sources import check_apart, check_distinct, load_source

KINDS = ("levels", "path", "hub")


def prepare_data(config: Path, apart_from: list[Path], out: Path) -> None:
    """Write the one problem set that `config` asks for, once it has passed all checks.

    It holds no problem twice, by id or by text, and none of the sets in `apart_from`. What is in it depends on its
    own settings alone, so another benchmark changes none of the others.

    Args:
        config: YAML with `set`, the name ("train", "validation" or "benchmarks/NAME"), and `problems`, which is
            `{levels, count}`, move puzzles to make by `seed`, or a source that `load_source` reads. With
            `from_train: N` the `problems` are the training set's: N of them, drawn by `seed`, are the set
            "validation" and the others the set "train".
        apart_from: the training set, for a set that is held out.
        out: the problems, JSON Lines.

    Raises:
        InputError: a key is missing, a source does not hold what the entry says, or a check fails.
    """
    settings = read_settings(config)
    for key in ("set", "problems"):
        if key not in settings:
            raise InputError(f"{config}: key {key!r} is missing")
    name = settings["set"]
    problems = _split(settings) if "from_train" in settings else _problems(settings, name)
    check_distinct(problems, name)
    for file in apart_from:
        check_apart(problems, name, load_problems(file))
    save_problems(out, problems)


def _problems(settings: Mapping[str, Any], name: str) -> list[Problem]:
    entry = settings["problems"]
    kinds = [kind for kind in KINDS if kind in entry]
    if len(kinds) != 1:
        raise InputError(f"data set {name!r}: give one of `levels`, `path` and `hub`, not {kinds}")
    if "levels" not in entry:
        return load_source(entry, name)
    if "count" not in entry:
        raise InputError(f"data set {name!r}: key 'count' is missing beside `levels`")
    parts: dict[str, Part] = {"train": "training", "validation": "validation"}
    return make_problems(entry["count"], entry["levels"], settings["seed"], name, parts.get(name, "benchmark"))


def _split(settings: Mapping[str, Any]) -> list[Problem]:
    """The problems drawn from the training set for validation, or the training set without these."""
    train, wanted = _problems(settings, "train"), settings["from_train"]
    check_distinct(train, "train")
    if not 0 < wanted < len(train):
        raise InputError(f"data set 'validation': `from_train: {wanted}`, but there are {len(train)} training problems")
    order = generator(settings["seed"], "validation").permutation(len(train))
    drawn = {train[index].id for index in order[:wanted]}
    return [problem for problem in train if (problem.id in drawn) == (settings["set"] == "validation")]
