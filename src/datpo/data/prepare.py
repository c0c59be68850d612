"""One problem set: made or loaded, and checked by itself and against the training set."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import write_json, write_jsonl
from datpo.core.problem import Problem, load_problems, save_problems
from datpo.core.seeds import generator
from datpo.data.card import data_card, fingerprint
from datpo.data.checks import check_apart, sort_out, tally
from datpo.data.moves import Part, make_problems
from datpo.data.sources import load_source

KINDS = ("levels", "path", "url", "hub")


def prepare_data(config: Path, apart_from: list[Path], out: Path, card: Path, set_aside: Path) -> None:
    """Write the one problem set that `config` asks for, once it has passed all checks.

    It holds no problem twice, by id or by text, none of the sets in `apart_from`, and no key that its checker would
    not call right. What is in it depends on its own settings alone, so another benchmark changes none of the others.

    Args:
        config: YAML with `set`, the name ("train", "validation" or "benchmarks/NAME"), `domain`, and `problems`, which
            is `{levels, count}`, move puzzles to make by `seed`, or a source that `load_source` reads, of which `drop`
            has ids to be left out, `of_levels` the levels to be had, `fingerprint` what must be left, and `take` how
            many of that are drawn by `seed`. With `from_train: N` the `problems` are the training set's: N of them,
            drawn by `seed`, are the set "validation" and the others the set "train".
        apart_from: the training set, for a set that is held out.
        out: the problems, JSON Lines.
        card: what is in the set and where it came from, JSON.
        set_aside: the rows that were left out, each with its reason, JSON Lines.

    Raises:
        InputError: a key is missing, a source does not hold what the entry says, or a check fails.
    """
    settings = read_settings(config)
    for key in ("set", "domain", "problems"):
        if key not in settings:
            raise InputError(f"{config}: key {key!r} is missing")
    name, entry = settings["set"], settings["problems"]
    of = "train" if "from_train" in settings else name
    rows = _rows(settings, of)
    wanted = _of_levels(rows, entry, of)
    kept, aside = sort_out(wanted, of, settings["domain"], entry.get("drop", ()))
    _check_fingerprint(entry, of, kept)
    taken = _taken(kept, settings, of)
    problems = _drawn(settings, taken) if "from_train" in settings else taken
    for file in apart_from:
        check_apart(problems, name, load_problems(file))
    write_jsonl(set_aside, (each.row() for each in aside))
    write_json(card, data_card(settings, len(rows) - len(wanted), kept, aside, taken, problems))
    save_problems(out, problems)
    listed = f", listed in {set_aside}" if aside else ""
    split = f", in the other set {len(taken) - len(problems)}" if len(taken) > len(problems) else ""
    print(
        f"data set {name!r}: {len(problems)} problems of {len(rows)} rows{split}; set aside: "
        f"{tally(aside)}{listed}\ndata set {name!r}: fingerprint {fingerprint(kept)}",
        file=sys.stderr,
    )


def _rows(settings: Mapping[str, Any], name: str) -> list[Problem]:
    entry = settings["problems"]
    kinds = [kind for kind in KINDS if kind in entry]
    if len(kinds) != 1:
        raise InputError(f"data set {name!r}: give one of `levels`, `path`, `url` and `hub`, not {kinds}")
    if "levels" not in entry:
        return load_source(entry, name)
    if "count" not in entry:
        raise InputError(f"data set {name!r}: key 'count' is missing beside `levels`")
    parts: dict[str, Part] = {"train": "training", "validation": "validation"}
    return make_problems(entry["count"], entry["levels"], settings["seed"], name, parts.get(name, "benchmark"))


def _check_fingerprint(entry: Mapping[str, Any], name: str, kept: Sequence[Problem]) -> None:
    wanted, found = entry.get("fingerprint"), fingerprint(kept)
    if wanted not in (None, found):
        raise InputError(
            f"data set {name!r}: the {len(kept)} problems that are left have the fingerprint {found}, not {wanted}: "
            "the source has changed, or the checker sets other keys aside; find out which before you pin the new one"
        )


def _of_levels(rows: Sequence[Problem], entry: Mapping[str, Any], name: str) -> list[Problem]:
    """The rows of the levels that are asked for."""
    levels = entry.get("of_levels")
    wanted = [problem for problem in rows if levels is None or problem.level in levels]
    if not wanted:
        there = sorted({problem.level for problem in rows if problem.level is not None})
        raise InputError(f"data set {name!r}: no row is of the levels {levels} (`of_levels`); there are {there}")
    return wanted


def _taken(kept: Sequence[Problem], settings: Mapping[str, Any], name: str) -> list[Problem]:
    """So many of the problems as the entry says to `take`, drawn at random, in their order."""
    wanted = settings["problems"].get("take")
    if wanted is None:
        return list(kept)
    if wanted > len(kept):
        raise InputError(f"data set {name!r}: `take: {wanted}`, but there are {len(kept)} problems")
    chosen = generator(settings["seed"], "take", name).choice(len(kept), size=wanted, replace=False)
    return [kept[index] for index in sorted(chosen)]


def _drawn(settings: Mapping[str, Any], kept: Sequence[Problem]) -> list[Problem]:
    """The problems drawn from the training set for validation, or the training set without these."""
    wanted = settings["from_train"]
    if not 0 < wanted < len(kept):
        raise InputError(f"data set 'validation': `from_train: {wanted}`, but there are {len(kept)} training problems")
    order = generator(settings["seed"], "validation").permutation(len(kept))
    drawn = {kept[index].id for index in order[:wanted]}
    return [problem for problem in kept if (problem.id in drawn) == (settings["set"] == "validation")]
