"""Budgets: which base rollouts of a tree are forked, how often and how widely, from what is known of it so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from datpo.core.tree import RolloutTree

Statistics = dict[str, float]


@dataclass(frozen=True)
class Plan:
    """`forks` fork points on each of the base rollouts `bases` (None: all), `siblings` new branches at each."""

    forks: int
    siblings: int
    bases: tuple[int, ...] | None = None


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
    statistics: Statistics = field(default_factory=dict)


Budget = Callable[[RolloutTree, Progress, np.random.Generator], Plan]


def parallel(tree: RolloutTree, progress: Progress, rng: np.random.Generator) -> Plan:
    """Independent samples only: no tree is forked."""
    return Plan(0, 0)


def static(forks: int, siblings: int) -> Budget:
    """The same trees for every problem, easy or hard."""

    def budget(tree: RolloutTree, progress: Progress, rng: np.random.Generator) -> Plan:
        return Plan(forks, siblings)

    return budget


def difficulty_adaptive(max_forks: int, max_siblings: int) -> Budget:
    """Harder problems get more forks and siblings (DATPO, phase 2).

    K = ceil(max_forks (1 - V)), B = ceil(max_siblings (1 - V)) with V the mean reward of the base rollouts, so a
    solved problem (V = 1) is not forked at all.
    """

    def budget(tree: RolloutTree, progress: Progress, rng: np.random.Generator) -> Plan:
        rewards = tree.rewards_L[list(tree.roots)]
        unsolved = 1.0 - float(rewards.mean())
        return Plan(ceiling(max_forks * unsolved), ceiling(max_siblings * unsolved))

    return budget


def ceiling(number: float) -> int:
    """Ceiling that forgives rounding: 3 x (1 - 2/3) is 1 and not 2."""
    return math.ceil(round(number, 9))
