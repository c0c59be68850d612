"""Monte-Carlo values of the states of a tree.

`value_B[b]` is the value of the state at the *end* of block b (B,). Convention: a leaf's value is its reward, so
the advantage of every block is the difference between the value at its end and the value at its start. (DATPO
writes a terminal value of 0 and adds the reward instead: the same number.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from datpo.core.tree import Floats, RolloutTree

BlockValues = Callable[[RolloutTree], Floats]
RootValue = Literal["base", "all"]


def all_descendants(tree: RolloutTree) -> Floats:
    """The mean reward of all leaves below (DATPO, eq. 7)."""
    rewards = tree.rewards_L
    return np.array([rewards[list(block.leaves)].mean() for block in tree.blocks])


def branches_only(tree: RolloutTree) -> Floats:
    """The mean reward of the branches sampled at the fork itself (the released DATPO code in training)."""
    rewards = tree.rewards_L
    return _by_forks(tree, lambda base, forked: rewards[forked].mean())


def branches_and_base(tree: RolloutTree) -> Floats:
    """The mean reward of the fork's own branches and of the base trajectory (the released code's single search)."""
    rewards = tree.rewards_L
    return _by_forks(tree, lambda base, forked: rewards[[base, *forked]].mean())


def _by_forks(tree: RolloutTree, mean: Callable[[int, list[int]], float]) -> Floats:
    """Values that only look at the base trajectory and the branches that start at the end of a block."""
    forked: dict[tuple[int | None, int], list[int]] = {}
    for index, branch in enumerate(tree.branches):
        forked.setdefault((branch.parent, branch.start), []).append(index)
    rewards = tree.rewards_L
    return np.array(
        [
            rewards[block.branch] if block.terminal else mean(block.branch, forked[block.branch, block.stop])
            for block in tree.blocks
        ]
    )


def value_of_root(tree: RolloutTree, over: RootValue) -> float:
    """The value of the prompt: the mean reward of the base rollouts (`base`) or of all leaves (`all`)."""
    rewards = tree.rewards_L
    return float(rewards[list(tree.roots)].mean() if over == "base" else rewards.mean())


def start_values(tree: RolloutTree, value_B: Floats, root: float) -> Floats:
    """The value of the state at the start of each block (B,)."""
    return np.array([root if block.parent is None else value_B[block.parent] for block in tree.blocks])


VALUES: dict[str, BlockValues] = {
    "all_descendants": all_descendants,
    "branches_only": branches_only,
    "branches_and_base": branches_and_base,
}
