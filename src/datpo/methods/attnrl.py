"""AttnRL (Liu et al. 2025, arXiv 2509.26628): trees forked where attention says that reasoning turns.

Differences from TreeRL:
1. Forks (ATB). A base rollout is forked at the start of `max_forks` steps: the earliest of the fifth with the highest
   forward context influence, y = max over layers and heads of the attention that steps at least 4 later pay to it.
2. Adaptive sampling (ADS). With z the share of right base rollouts, ceil(exp(-z) roots) of them are forked: all of
   the minority, right or wrong, and others by lot (the first ones where all are alike). A problem with z = 1 is
   forked only if its mean influence is at least the running mean of such problems. Rollouts that were not forked are
   not trained, nor problems whose other leaves all have the same reward.
3. Prompts. The number of problems follows the leaves that were left to train, towards as many as full trees would
   give: B <- round(0.9 B + 0.1 (wanted / left) B).
4. Pipeline. The base rollouts of the next step are sampled together with the branches of this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import global_and_local
from datpo.methods.base import Aggregate, Clip, Keep, Method, at_least, every_branch
from datpo.search.budget import Budget, Plan, Progress, Statistics, ceiling, static
from datpo.search.forks import influential_steps, on_bases, step_influences

ROUNDING = 1e-9  # of influences that are equal but for the last bits of their means
ROUNDINGS: dict[str, Callable[[float], int]] = {"ceil": ceiling, "round": round}
INERTIA = 0.9  # lambda of the dynamic prompt batch


def build(
    roots: int,
    max_forks: int,
    siblings: int,
    clip: Clip,
    aggregate: Aggregate = "token_mean",
    adaptive: bool = True,
    rounding: Literal["ceil", "round"] = "ceil",
    spacing: int = 0,
    off_policy: bool = True,
) -> Method:
    """AttnRL with trees of at most roots x (1 + max_forks x siblings) leaves."""
    at_least(1, max_forks=max_forks, siblings=siblings)

    def credit(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        return global_and_local(tree)

    def prompts(trees: Sequence[RolloutTree], last: int, usual: int) -> int:
        left = sum(int(keep(tree).sum()) for tree in trees)
        wanted = usual * roots * (1 + max_forks * siblings)
        return dynamic_prompts(last, len(trees), wanted, left) if adaptive else usual

    keep: Keep = forked_and_mixed if adaptive else every_branch
    return Method(
        roots=roots,
        budget=adaptive_trees(max_forks, siblings, rounding) if adaptive else static(max_forks, siblings),
        forks=on_bases(influential_steps(after_first_token=False, spacing=spacing), ("step", "influence")),
        credit=credit,
        keep=keep,
        clip=clip,
        aggregate=aggregate,
        off_policy=off_policy,
        remember=influence_of_solved,
        prompts=prompts,
    )


def adaptive_trees(forks: int, siblings: int, rounding: Literal["ceil", "round"]) -> Budget:
    """Fork exp(-z) of the base rollouts; a solved problem (z = 1) only if its influence is at least the usual."""

    def budget(tree: RolloutTree, progress: Progress, rng: np.random.Generator) -> Plan:
        rewards = tree.rewards_L[list(tree.roots)]
        solved = float(rewards.mean())
        usual = progress.statistics.get("solved_influence", 0.0)
        if solved == 1 and mean_influence(tree) < usual * (1 - ROUNDING):
            return Plan(0, 0)
        count = ROUNDINGS[rounding](len(rewards) * math.exp(-solved))
        return Plan(forks, siblings, bases=chosen_bases(tree, count, rng))

    return budget


def chosen_bases(tree: RolloutTree, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The base rollouts to fork: all of the minority and others by lot; the first ones where all are alike."""
    roots = np.array(tree.roots)
    right = tree.rewards_L[roots] > 0
    if right.all() or not right.any():
        return tuple(roots[:count].tolist())
    minority = roots[~right] if right.mean() >= 0.5 else roots[right]
    others = rng.permutation(np.setdiff1d(roots, minority))[: max(0, count - len(minority))]
    return tuple(sorted([*minority.tolist(), *others.tolist()]))


def mean_influence(tree: RolloutTree) -> float:
    """Forward context influence of a problem: mean over the steps of a base rollout, then over base rollouts.

    A base rollout without a step (an end token alone) has none.
    """
    influences = [step_influences(tree.branches[root])[1] for root in tree.roots]
    return float(np.mean([influence_S.mean() if len(influence_S) else 0.0 for influence_S in influences]))


def influence_of_solved(trees: Sequence[RolloutTree], statistics: Statistics) -> Statistics:
    """The running mean of the influence of problems that are solved, these trees included."""
    new = [mean_influence(tree) for tree in trees if tree.rewards_L[list(tree.roots)].all()]
    if not new:
        return statistics
    seen, mean = statistics.get("solved_problems", 0.0), statistics.get("solved_influence", 0.0)
    count = seen + len(new)
    return {**statistics, "solved_problems": count, "solved_influence": (seen * mean + sum(new)) / count}


def forked_and_mixed(tree: RolloutTree) -> NDArray[np.bool_]:
    """Base rollouts with forks and all branches, unless these all have the same reward (L,)."""
    forked = {branch.parent for branch in tree.branches}
    kept_L = np.array([b.parent is not None or i in forked for i, b in enumerate(tree.branches)], dtype=bool)
    return kept_L & (len(set(tree.rewards_L[kept_L])) > 1)


def dynamic_prompts(last: int, grown: int, wanted: int, left: int) -> int:
    """B <- round(0.9 B + 0.1 (wanted / left) grown): from `last` towards as many as would have left `wanted` leaves.

    `grown` problems left `left` leaves to train. On policy they are the last ones that were planted, as in the paper;
    in the pipeline one step has been planted since. A step that left nothing says nothing, and B stays.
    """
    if not left:
        return last
    return max(1, round(INERTIA * last + (1 - INERTIA) * wanted / left * grown))
