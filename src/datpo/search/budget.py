"""Budgets: how many fork points and siblings a tree deserves, from what is known of it so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from datpo.core.tree import RolloutTree


@dataclass(frozen=True)
class Plan:
    """`forks` fork points on each base trajectory, `siblings` new branches at each of them."""

    forks: int
    siblings: int


@dataclass(frozen=True)
class Progress:
    """The only state a method may read.

    Attributes:
        step: rollout steps done before this one.
        fraction: the share of the run's duration that is spent, 0 to 1.
        statistics: running numbers a method keeps between steps.
    """

    step: int = 0
    fraction: float = 0.0
    statistics: dict[str, float] = field(default_factory=dict)


Budget = Callable[[RolloutTree, Progress], Plan]


def parallel(tree: RolloutTree, progress: Progress) -> Plan:
    """Independent samples only: no tree is forked."""
    return Plan(0, 0)


def difficulty_adaptive(max_forks: int, max_siblings: int) -> Budget:
    """Harder problems get more forks and siblings (DATPO, phase 2).

    K = ceil(max_forks (1 - V)), B = ceil(max_siblings (1 - V)) with V the mean reward of the base rollouts, so a
    solved problem (V = 1) is not forked at all.
    """

    def budget(tree: RolloutTree, progress: Progress) -> Plan:
        rewards = tree.rewards_L[list(tree.roots)]
        unsolved = 1.0 - float(rewards.mean())
        return Plan(_ceil(max_forks * unsolved), _ceil(max_siblings * unsolved))

    return budget


def _ceil(number: float) -> int:
    """Ceiling that forgives rounding: 3 x (1 - 2/3) is 1 and not 2."""
    return math.ceil(round(number, 9))
