"""An exploration: how its structures grow trees, and what was measured of each tree (`rollouts.csv`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import read_text
from datpo.core.kinds import NAME, OBJECT, Kinds, check_kinds, list_of, whole
from datpo.evaluate.bootstrap import Interval, intervals
from datpo.report.runs import METHOD_LABELS

Values = Mapping[str, float]  # problem id -> its value

EXPLORATION: Kinds = {
    **dict.fromkeys(("exploration", "benchmark"), NAME),
    **dict.fromkeys(("identity", "train"), OBJECT),
    "structures": list_of(OBJECT),
    "seed": whole(),
    "bootstrap": whole(1),
}
STRUCTURE: Kinds = {"name": NAME, "method": NAME, "numbers": OBJECT}
PARALLEL = ("grpo", "dr_grpo")  # methods whose trees are never forked
# The paper's names of fork rules (Tables 1, 3, 6 and 7).
RULE_LABELS = {
    "random": "random",
    "fixed-seg": "fixed-seg",
    "atb": "ATB",
    "tok-entropy": "tok-entropy",
    "tok-entropy-5": "tok-entropy, 5% distance",
    "tok-entropy-10": "tok-entropy, 10% distance",
    "sent-entropy": "sent-entropy",
}
MEASURED = (
    *("leaves", "right", "tokens", "forks", "sibling_diversity", "nnd", "mpd", "wcr5", "wcr10"),
    *("length",),
)


@dataclass(frozen=True)
class Structure:
    """One way to grow trees."""

    name: str
    method: str
    numbers: Mapping[str, Any]

    @property
    def rule(self) -> str | None:
        """The name of its fork rule, where it is one that a configuration asks for by name."""
        return self.numbers.get("fork_rule")

    @property
    def label(self) -> str:
        """What forks it: the paper's name of a rule, of a method with a rule of its own, or `parallel` for nothing."""
        if self.method in PARALLEL:
            return "parallel"
        return METHOD_LABELS.get(self.method, self.method) if self.rule is None else rule_label(self.rule)


@dataclass(frozen=True)
class Exploration:
    """What was explored, and what was found.

    Attributes:
        identity: whose checkpoint grew the trees.
        structures: in the order of the settings.
        train: limits and sampling of the rollouts.
        trees: a row a tree, with the columns of `rollouts.csv` and `solved`, 1 where a leaf is right.
    """

    name: str
    benchmark: str
    identity: Mapping[str, Any]
    structures: tuple[Structure, ...]
    train: Mapping[str, Any]
    bootstrap: tuple[int, int]  # draws and seed
    trees: pd.DataFrame

    @property
    def problems(self) -> int:
        """How many problems were tried."""
        return int(self.trees["problem"].nunique())

    @property
    def repeats(self) -> int:
        """How often each was tried."""
        return int(self.trees["repeat"].nunique())

    def of(self, structure: Structure) -> pd.DataFrame:
        """The trees of one structure."""
        return self.trees[self.trees["structure"] == structure.name]

    def values(self, structure: Structure, column: str) -> dict[str, float]:
        """What a column says of each problem: the mean over its repeats, which are no independent trials.

        Trees where it is undefined do not count, nor do problems where it is so in all.
        """
        means = self.of(structure).groupby("problem")[column].mean().dropna()
        return {str(problem): float(value) for problem, value in means.items()}

    def interval(self, values: Values) -> Interval | None:
        """The mean over problems with its 95 % interval by bootstrap over problems; None of no problem."""
        return intervals(np.array(list(values.values()))[:, None], *self.bootstrap)[0] if values else None

    def difference(self, values: Values, against: Values) -> Interval | None:
        """By how much one is above another, on the problems where both are defined."""
        return self.interval({name: values[name] - against[name] for name in values if name in against})


def rule_label(rule: str) -> str:
    """The paper's name of a fork rule; ours, where the paper has none."""
    return RULE_LABELS.get(rule, rule)


def load_exploration(config: Path, rollouts: Path) -> Exploration:
    """Read an exploration's settings and what was measured of its trees.

    Raises:
        InputError: a key is missing or of another kind; a column is missing or holds what is no number; or a structure
            lacks the trees that another has.
    """
    settings = read_settings(config)
    check_kinds(str(config), settings, EXPLORATION)
    for number, entry in enumerate(settings["structures"], start=1):
        check_kinds(f"{config}: structure {number}", entry, STRUCTURE)
    return Exploration(
        name=settings["exploration"],
        benchmark=settings["benchmark"],
        identity=settings["identity"],
        structures=tuple(Structure(**entry) for entry in settings["structures"]),
        train=settings["train"],
        bootstrap=(settings["bootstrap"], settings["seed"]),
        trees=_trees(rollouts, [entry["name"] for entry in settings["structures"]]),
    )


def _trees(path: Path, names: list[str]) -> pd.DataFrame:
    """A row a tree, of these structures alone."""
    read_text(path)  # a missing file is told
    try:
        words = {"structure": str, "problem": str}
        trees = pd.read_csv(path, dtype=words, keep_default_na=False, na_values={name: [""] for name in MEASURED})
        if missing := [name for name in (*words, "repeat", *MEASURED) if name not in trees]:
            raise KeyError(f"no column {missing[0]!r}")
        trees = trees[trees["structure"].isin(names)].astype({"repeat": int, **dict.fromkeys(MEASURED, float)})
    except (ValueError, KeyError) as error:
        raise InputError(f"{path}: no table of rollouts ({error}); delete it and explore again") from None
    tried = {name: _tried(trees[trees["structure"] == name]) for name in names}
    for name, mine in tried.items():
        if not mine or mine != tried[names[0]] or len(mine) != len(set(mine)):
            raise InputError(
                f"{path}: structure {name!r} has not just one tree for each problem and repeat of {names[0]!r}; "
                "explore again"
            )
    _check_counts(path, trees)
    return trees.assign(solved=(trees["right"] > 0).astype(float))


def _check_counts(path: Path, trees: pd.DataFrame) -> None:
    """Refuse a tree whose counts cannot be: not whole, below 0, or more right leaves than leaves."""
    for place, tree in trees.iterrows():
        counts = [tree[name] for name in ("leaves", "right", "tokens", "forks")]
        whole = all(math.isfinite(count) and count >= 0 and count == int(count) for count in counts)
        if not (whole and tree["right"] <= tree["leaves"] and math.isfinite(tree["length"])):
            raise InputError(f"{path}: row {place}: counts {counts} cannot be a tree's; explore again")


def _tried(trees: pd.DataFrame) -> list[tuple[str, int]]:
    return sorted(zip(trees["problem"], trees["repeat"], strict=True))
