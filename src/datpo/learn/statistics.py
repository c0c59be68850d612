"""What a step's trees look like, in numbers for the log."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from datpo.core.tree import RolloutTree
from datpo.learn.minibatch import CreditedTree
from datpo.search.localisation import (
    clustering_ratio,
    fork_positions,
    mean_pairwise_distance,
    nearest_neighbour_distance,
)


def level_statistics(trees: Sequence[RolloutTree]) -> dict[str, dict[str, int]]:
    """By level of difficulty how many problems there were, how many leaves, and how many problems had a right one."""
    levels: dict[str, dict[str, int]] = {}
    for tree in trees:
        level = "none" if tree.problem.level is None else str(tree.problem.level)
        row = levels.setdefault(level, {"problems": 0, "leaves": 0, "solved": 0})
        row["problems"] += 1
        row["leaves"] += len(tree.branches)
        row["solved"] += int(tree.rewards_L.max() > 0)
    return dict(sorted(levels.items()))


def tree_statistics(trees: Sequence[RolloutTree]) -> dict[str, float]:
    """Rewards, sizes and texts' ends; `reward` is that of the base rollouts, whatever was forked from them."""
    rewards = [tree.rewards_L for tree in trees]
    branches = [branch for tree in trees for branch in tree.branches]
    return {
        "prompts": len(trees),
        "reward": float(np.mean([r[list(tree.roots)].mean() for tree, r in zip(trees, rewards, strict=True)])),
        "leaf_reward": float(np.mean([r.mean() for r in rewards])),
        "solved": float(np.mean([r.max() > 0 for r in rewards])),
        "zero_signal": float(np.mean([r.min() == r.max() for r in rewards])),
        "leaves": float(np.mean([len(tree.branches) for tree in trees])),
        "tokens_per_question": float(np.mean([tree.generated_tokens for tree in trees])),
        "entropy": float(np.concatenate([branch.signals["entropy"] for branch in branches]).mean()),
        "response_length": float(np.mean([branch.stop for branch in branches])),
        "truncated": float(np.mean([branch.finish == "length" for branch in branches])),
        "no_answer": float(np.mean([branch.verdict == "no_answer" for branch in branches])),
    }


def fork_statistics(
    trees: Sequence[RolloutTree], credits: Sequence[CreditedTree], diversity: Sequence[float]
) -> dict[str, float | None]:
    """Units that are trained; how forks lie (App. D.2) and how much trees' blocks differ; None if unknown."""
    forks = [place for tree in trees for place in fork_positions(tree)]
    return {
        "trained_units": sum(len(credited.units) for credited in credits),
        "fork_nnd": _mean([nearest_neighbour_distance(*place) for place in forks]),
        "fork_mpd": _mean([mean_pairwise_distance(*place) for place in forks]),
        "fork_wcr5": _mean([clustering_ratio(*place, 5) for place in forks]),
        "sibling_diversity": _mean(diversity),
    }


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else None
