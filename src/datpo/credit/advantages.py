"""Advantages: numbers per block (B,), or per leaf and block (L, B) where leaves disagree about a shared block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.values import all_descendants, start_values, value_of_root
from datpo.search.budget import Progress

Credit = Callable[[RolloutTree, Progress, Floats], Floats]  # tree, progress, sibling diversity (B,) -> advantages


def of_leaves(tree: RolloutTree, advantage_L: Floats) -> Floats:
    """Give each leaf's advantage to every block on its path: (L, B), zero off the path."""
    advantage_LB = np.zeros((len(tree.branches), len(tree.blocks)))
    for index, block in enumerate(tree.blocks):
        advantage_LB[list(block.leaves), index] = advantage_L[list(block.leaves)]
    return advantage_LB


def centred(rewards: Floats) -> Floats:
    """A_i = r_i - mean r over a group, r_i itself included (Dr.GRPO)."""
    return np.asarray(rewards - rewards.mean())


def group_normalised(rewards: Floats, sample_std: bool = False) -> Floats:
    """A_i = (r_i - mean) / (std + 1e-4) over a group (GRPO); equal rewards give zeros.

    The standard deviation is the population's (GRPO-Zero, the paper's framework), or the sample's on request.
    """
    away = centred(rewards)
    if not away.any():
        return np.zeros_like(rewards)
    return np.asarray(away / (rewards.std(ddof=int(sample_std)) + 1e-4))


def global_and_local(tree: RolloutTree) -> Floats:
    """A(b) = [V(b) - V(root) + V(b) - V(parent of b)] / sqrt(leaves below b), (B,) (TreeRL, as AttnRL restates it).

    V is the mean reward of the leaves below, V(root) that of all leaves. A block is trained once for every leaf
    below it, which the root evens out by half.
    """
    value_B = all_descendants(tree)
    root = value_of_root(tree, "all")
    return (2 * value_B - root - start_values(tree, value_B, root)) / np.sqrt(_leaf_counts(tree))


def global_and_local_released(tree: RolloutTree) -> Floats:
    """The same as TreeRL's code has it, (B,).

    With c_i = r_i - mean of the other leaves' rewards and V'(b) = sum of c below b / (leaves below b)^1.5 the
    advantage is V'(b) + [V'(b) - V'(parent)]; a difference of less than 1e-8 takes the value of the one before
    it on the path. The sum of all c is 0, so V'(root) = 0.
    """
    rewards = tree.rewards_L
    if len(rewards) == 1:
        return np.zeros(len(tree.blocks))  # there are no others to compare it with
    against_others_L = rewards - (rewards.sum() - rewards) / (len(rewards) - 1)
    sum_B = np.array([against_others_L[list(block.leaves)].sum() for block in tree.blocks])
    value_B = sum_B / _leaf_counts(tree) ** 1.5
    local_B = value_B - start_values(tree, value_B, 0.0)
    for index, block in enumerate(tree.blocks):  # parents stand before their children
        if block.parent is not None and abs(local_B[index]) < 1e-8:
            local_B[index] = local_B[block.parent]
    return np.asarray(value_B + local_B)


def _leaf_counts(tree: RolloutTree) -> Floats:
    return np.array([len(block.leaves) for block in tree.blocks], dtype=float)


def linear_schedule(start: float, end: float, fraction: float) -> float:
    """start + (end - start) min(1, fraction): the annealing of the diversity coefficient (DATPO)."""
    return start + (end - start) * min(1.0, fraction)
