"""Advantages: numbers per block (B,), or per leaf and block (L, B) where leaves disagree about a shared block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.search.budget import Progress

Credit = Callable[[RolloutTree, Progress, Floats], Floats]  # tree, progress, sibling diversity (B,) -> advantages


def of_leaves(tree: RolloutTree, advantage_L: Floats) -> Floats:
    """Give each leaf's advantage to every block on its path: (L, B), zero off the path."""
    advantage_LB = np.zeros((len(tree.branches), len(tree.blocks)))
    for index, block in enumerate(tree.blocks):
        advantage_LB[list(block.leaves), index] = advantage_L[list(block.leaves)]
    return advantage_LB


def group_normalised(rewards: Floats, sample_std: bool = False) -> Floats:
    """A_i = (r_i - mean) / (std + 1e-4) over a group (GRPO); equal rewards give zeros.

    The standard deviation is the population's (GRPO-Zero, the paper's framework), or the sample's on request.
    """
    centred = rewards - rewards.mean()
    if not centred.any():
        return np.zeros_like(rewards)
    return np.asarray(centred / (rewards.std(ddof=int(sample_std)) + 1e-4))


def linear_schedule(start: float, end: float, fraction: float) -> float:
    """start + (end - start) min(1, fraction): the annealing of the diversity coefficient (DATPO)."""
    return start + (end - start) * min(1.0, fraction)
