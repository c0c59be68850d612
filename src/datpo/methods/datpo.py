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

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import linear_schedule
from datpo.credit.values import VALUES, start_values, value_of_root
from datpo.methods.base import Aggregate, Method
from datpo.search.budget import Progress, difficulty_adaptive
from datpo.search.forks import sentence_entropy

ROOT_VALUES = ("base", "all")
OFFSETS = ("after_first_token", "at_start")


def build(
    roots: int,
    max_forks: int,
    max_siblings: int,
    alpha: Sequence[float],
    clip: Sequence[float],
    value: str = "all_descendants",
    root_value: str = "base",
    fork_offset: str = "after_first_token",
    aggregate: Aggregate = "token_mean",
) -> Method:
    """DATPO with trees of at most roots x (1 + max_forks x max_siblings) leaves."""
    for name, given, known in (
        ("value", value, VALUES),
        ("root_value", root_value, ROOT_VALUES),
        ("fork_offset", fork_offset, OFFSETS),
    ):
        if given not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {given!r}")
    start, end = alpha

    def credit(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        base_B = base_advantages(tree, value, root_value)
        bonus = linear_schedule(start, end, progress.fraction)
        return base_B + np.where(base_B > 0, bonus * diversity_B, 0.0)

    low, high = clip
    return Method(
        roots=roots,
        budget=difficulty_adaptive(max_forks, max_siblings),
        forks=sentence_entropy(fork_offset == "after_first_token"),
        signals=("sentence",),
        credit=credit,
        diverse=(start, end) != (0, 0),
        unit="blocks",
        clip_low=low,
        clip_high=high,
        aggregate=aggregate,
    )


def base_advantages(tree: RolloutTree, value: str = "all_descendants", root_value: str = "base") -> Floats:
    """A_base(b) = r(b) + V(end of b) - V(start of b), (B,); summed along a path it is r - V(root) (eq. 6 and 7)."""
    value_B = VALUES[value](tree)
    return value_B - start_values(tree, value_B, value_of_root(tree, root_value))
