"""DATPO: difficulty-adaptive tree-structured policy optimisation (arXiv 2609.08650).

Differences from GRPO, in the paper's order:
1. Search. `roots` base rollouts give V(root). Each is forked at the ceil(max_forks (1 - V)) sentences of highest
   mean entropy, with ceil(max_siblings (1 - V)) new branches at each; a solved problem is not forked.
2. Credit. A_base(b) = r(b) + V(end) - V(start) with V the mean reward of all leaves below (eq. 7).
3. Diversity. A(b) = A_base(b) + [A_base(b) > 0] alpha Div(b), Div the mean cosine distance to the sibling blocks
   (eq. 8), alpha annealed linearly from its first to its second value.
4. Update. Token mean over *blocks*: each token stands once, whatever the number of leaves below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import linear_schedule
from datpo.credit.diversity import released_groups, siblings
from datpo.credit.values import VALUES, RootValue, start_values, value_of_root
from datpo.methods.base import Aggregate, Clip, Method, at_least
from datpo.search.budget import Progress, difficulty_adaptive, static
from datpo.search.forks import named

GROUPS = {"siblings": siblings, "released": released_groups}


def build(
    roots: int,
    max_forks: int,
    max_siblings: int,
    alpha: Sequence[float],
    clip: Clip,
    adaptive: bool = True,
    fork_rule: str = "sent-entropy",
    fork_offset: Literal["after_first_token", "at_start"] = "after_first_token",
    fill_forks: bool = False,
    value: Literal["all_descendants", "branches_only", "branches_and_base"] = "all_descendants",
    root_value: RootValue = "base",
    compared: Literal["siblings", "released"] = "siblings",
    bonus: Literal["positive", "all"] = "positive",
    aggregate: Aggregate = "token_mean",
    off_policy: bool = False,
) -> Method:
    """DATPO with trees of at most roots x (1 + max_forks x max_siblings) leaves."""
    at_least(1, max_forks=max_forks, max_siblings=max_siblings)
    if len(alpha) != 2:
        raise ValueError(f"alpha must be two numbers, the first and the last, not {list(alpha)}")
    start, end = alpha

    def credit(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        base_B = base_advantages(tree, value, root_value)
        weight = linear_schedule(start, end, progress.fraction)
        rewarded_B = (base_B > 0) if bonus == "positive" else np.ones(len(base_B), dtype=bool)
        return base_B + np.where(rewarded_B, weight * diversity_B, 0.0)

    return Method(
        roots=roots,
        budget=(difficulty_adaptive if adaptive else static)(max_forks, max_siblings),
        forks=named(fork_rule, fork_offset == "after_first_token", fill_forks),
        credit=credit,
        groups=GROUPS[compared] if (start, end) != (0, 0) else None,
        value=VALUES[value],
        root_value=root_value,
        unit="blocks",
        clip=clip,
        aggregate=aggregate,
        off_policy=off_policy,
    )


def base_advantages(tree: RolloutTree, value: str = "all_descendants", root_value: RootValue = "base") -> Floats:
    """A_base(b) = r(b) + V(end of b) - V(start of b), (B,); summed along a path it is r - V(root) (eq. 6 and 7)."""
    value_B = VALUES[value](tree)
    return value_B - start_values(tree, value_B, value_of_root(tree, root_value))
