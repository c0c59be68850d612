"""What every method is made of: a few pure functions and some numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from datpo.core.tree import RolloutTree
from datpo.credit.advantages import Credit
from datpo.credit.diversity import Groups
from datpo.credit.values import BlockValues, RootValue, all_descendants
from datpo.search.budget import Budget, Statistics, parallel
from datpo.search.forks import NO_FORKS, ForkRule

Unit = Literal["blocks", "leaves"]
Aggregate = Literal["token_mean", "sequence_mean", "tree_mean", "constant"]
Clip = Sequence[float] | Literal["none"]  # [low, high], or no clipping at all
Keep = Callable[[RolloutTree], NDArray[np.bool_]]


def at_least(fewest: int, **numbers: int) -> None:
    """Refuse numbers with which a method would do nothing.

    Raises:
        ValueError: one is below `fewest`; it is named.
    """
    for name, number in numbers.items():
        if number < fewest:
            raise ValueError(f"{name} must be at least {fewest}, not {number}")


def every_branch(tree: RolloutTree) -> NDArray[np.bool_]:
    """Everything that was sampled is trained (L,)."""
    return np.ones(len(tree.branches), dtype=bool)


def as_before(trees: Sequence[RolloutTree], statistics: Statistics) -> Statistics:
    """A method without a memory."""
    return statistics


@dataclass(frozen=True)
class Method:
    """How trees grow, what their blocks earn, and how that becomes a loss.

    Attributes:
        roots: base rollouts per problem.
        credit: advantages of a graded tree.
        clip: the policy ratio is clipped to [1 - low, 1 + high].
        unit: what is trained once: each block, or each whole root-to-leaf path.
        aggregate: the loss is a mean over the mini-batch's tokens; over its sequences of their token means; over
            its trees of their token means; or over its sequences of their token sums divided by the longest
            response that is sampled.
        budget, forks: how many fork points, and where.
        rounds: how often a tree is forked; from the second time on at its branches too.
        keep: which branches are trained (L,); their tokens count for nothing in the loss otherwise.
        groups: which blocks are compared with each other for diversity; None if credit reads none.
        value, root_value: the estimators that credit is made of.
        off_policy: whether the branches of a step are sampled together with the base rollouts of the next, which
            are one update older than their branches then.
        remember: what the method keeps of a step's base rollouts, before they are forked, in its statistics.
        prompts: how many problems to plant after a step that gave these trees: (trees, problems planted last, problems
            as configured) -> problems.
    """

    roots: int
    credit: Credit
    clip: Clip
    unit: Unit = "leaves"
    aggregate: Aggregate = "token_mean"
    budget: Budget = parallel
    forks: ForkRule = NO_FORKS
    rounds: int = 1
    keep: Keep = every_branch
    groups: Groups | None = None
    value: BlockValues = all_descendants
    root_value: RootValue = "all"
    off_policy: bool = False
    remember: Callable[[Sequence[RolloutTree], Statistics], Statistics] = as_before
    prompts: Callable[[Sequence[RolloutTree], int, int], int] = lambda trees, last, usual: usual

    def __post_init__(self) -> None:
        """Refuse numbers that would train quietly wrong.

        Raises:
            ValueError: a number is out of range; it is named.
        """
        at_least(1, roots=self.roots, rounds=self.rounds)
        low, high = self.clip_range
        if not (0 <= low <= 1 and high >= 0):
            raise ValueError(f"clip must be [low in 0..1, high >= 0], not [{low}, {high}]")

    @property
    def clip_range(self) -> tuple[float, float]:
        """How far below and above 1 the ratio may go; without clipping to 0 and to infinity."""
        if isinstance(self.clip, str):
            return 1.0, math.inf
        if len(self.clip) != 2:
            raise ValueError(f"clip must be two numbers, [low, high], or none, not {list(self.clip)}")
        low, high = self.clip
        return low, high
