"""Numbers about fork rules counted anew, from the rewards, fork points and lengths of the saved trees.

Like `datpo.report.recount` it shares only readers of files with the code that makes the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from datpo.core.errors import InputError
from datpo.core.saved import SavedTree, load_graded_trees
from datpo.report.recount.scores import Recount, interval

Values = Mapping[str, float]  # problem -> its mean over repeats


class Measure(NamedTuple):
    """A number of a tree, and what it is multiplied by in the table."""

    of: Callable[[SavedTree], float]
    factor: float
    how: str


def solved(saved: SavedTree) -> float:
    """1 if a leaf has a reward above 0."""
    return float(any((branch.reward or 0) > 0 for branch in saved.tree.branches))


def diversity(saved: SavedTree) -> float:
    """The mean over forks of the mean diversity of the blocks that start there; nan if no fork has two with a text."""
    if saved.diversity_B is None or saved.texts is None:
        raise InputError(
            f"problem {saved.tree.problem.id!r}, step {saved.step}: a tree without `diversity` and `texts`"
        )
    spoken = [[block for block in group if saved.texts[block].strip()] for group in saved.tree.siblings]
    forks = [fmean(saved.diversity_B[group].tolist()) for group in spoken if len(group) > 1]
    return fmean(forks) if forks else math.nan


def fork_points(saved: SavedTree) -> list[tuple[list[int], int]]:
    """Of each base rollout the distinct places where it was forked, and its length without the end token."""
    branches = saved.tree.branches
    return [
        (
            sorted({branch.start for branch in branches if branch.parent == base}),
            len(branches[base].tokens) - (branches[base].finish == "stop"),
        )
        for base, branch in enumerate(branches)
        if branch.parent is None
    ]


def over_bases(of: Callable[[Sequence[int], int], float]) -> Callable[[SavedTree], float]:
    """The mean of a number over the base rollouts with two fork points or more; nan if there is none."""

    def mean(saved: SavedTree) -> float:
        found = [of(points, length) for points, length in fork_points(saved) if len(points) > 1]
        return fmean(found) if found else math.nan

    return mean


def nearest(points: Sequence[int], length: int) -> float:
    """The mean distance of a point to the nearest other one, as a share of the length."""
    return fmean(min(abs(point - other) for other in points if other != point) for point in points) / length


def apart(points: Sequence[int], length: int) -> float:
    """The mean distance over all pairs, as a share of the length."""
    return fmean(abs(one - other) for one, other in combinations(points, 2)) / length


def within(percent: int) -> Callable[[Sequence[int], int], float]:
    """The share of pairs at most so many percent of the length apart."""
    return lambda points, length: fmean(
        100 * abs(one - other) <= percent * length for one, other in combinations(points, 2)
    )


POINTS = "places in the saved trees where branches leave their base rollout, and its length: "
MEASURES = {
    "PassRate": Measure(solved, 100, "rewards of the leaves of the saved trees: share of trees with one above 0"),
    "SibDiv": Measure(
        diversity, 1, "`diversity` of the saved trees' blocks: mean over the blocks of a fork, then forks"
    ),
    "NND": Measure(over_bases(nearest), 1, f"{POINTS}mean distance to the nearest other"),
    "MPD": Measure(over_bases(apart), 1, f"{POINTS}mean distance of pairs"),
    "WCR@5": Measure(over_bases(within(5)), 100, f"{POINTS}pairs at most 5 % of it apart"),
    "WCR@10": Measure(over_bases(within(10)), 100, f"{POINTS}pairs at most 10 % of it apart"),
}
COSTS: Mapping[str, Callable[[SavedTree], float]] = {
    "forks": lambda saved: len({(branch.parent, branch.start) for branch in saved.tree.branches if branch.start}),
    "leaves": lambda saved: len(saved.tree.branches),
    "tokens": lambda saved: sum(len(branch.tokens) for branch in saved.tree.branches),
}


class Grown(NamedTuple):
    """The saved trees of one structure."""

    file: Path
    trees: Sequence[SavedTree]

    def values(self, of: Callable[[SavedTree], float], factor: float = 1) -> Values:
        """A number of every problem, ids ascending: the mean over the repeats in which it is defined."""
        found: dict[str, list[float]] = {}
        for saved in sorted(self.trees, key=lambda saved: saved.tree.problem.id):
            number = of(saved)
            if not math.isnan(number):
                found.setdefault(saved.tree.problem.id, []).append(factor * number)
        return {problem: fmean(numbers) for problem, numbers in found.items()}


def read_grown(file: Path) -> Grown:
    """The trees of one structure.

    Raises:
        InputError: the file is missing or damaged, or a leaf has no reward.
    """
    return Grown(file, load_graded_trees(file))


def recount_trees(own: Grown, random: Grown | None, measure: str, bootstrap: tuple[int, int]) -> Recount:
    """A number about a fork rule with its 95 % interval over problems, and by how much it is above random forks.

    Args:
        own: trees of the rule.
        random: trees that were forked at random; None for the row of these themselves.
        measure: a key of `MEASURES`.
        bootstrap: draws and seed.

    Raises:
        InputError: an unknown measure.
    """
    if measure not in MEASURES:
        raise InputError(f"measure {measure!r} is none of {', '.join(MEASURES)}")
    of, factor, how = MEASURES[measure]
    values = own.values(of, factor)
    others = {} if random is None else random.values(of, factor)
    ahead = {problem: value - others[problem] for problem, value in values.items() if problem in others}
    numbers = {
        "problems": float(len(values)),
        "repeats": float(len({saved.step for saved in own.trees})),
        **{name: fmean(own.values(cost).values()) for name, cost in COSTS.items()},
        **dict(zip(("value", "low", "high"), _mean(values, bootstrap), strict=True)),
        **dict(zip([f"minus_random{end}" for end in ("", "_low", "_high")], _mean(ahead, bootstrap), strict=True)),
    }
    read = [own, *([] if random is None else [random])]
    return Recount(numbers, how, [grown.file for grown in read], sum(len(grown.trees) for grown in read))


def _mean(values: Values, bootstrap: tuple[int, int]) -> tuple[float | None, float | None, float | None]:
    if not values:
        return None, None, None
    return fmean(values.values()), *interval([np.array(list(values.values()))], *bootstrap)
