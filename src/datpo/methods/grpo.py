"""GRPO (Shao et al. 2024), as the baseline of the DATPO paper: clip-higher and token mean from DAPO, no KL term.

A group of `roots` independent samples per problem; A_i = (r_i - mean r) / (std r + 1e-4); loss: mean over all
tokens of the mini-batch of min(rho A, clip(rho, 1 - 0.2, 1 + 0.28) A).
"""

from __future__ import annotations

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import group_normalised, of_leaves
from datpo.methods.base import Aggregate, Clip, Method, at_least
from datpo.search.budget import Progress


def build(roots: int, clip: Clip, aggregate: Aggregate = "token_mean", sample_std: bool = False) -> Method:
    """GRPO with `roots` samples per problem."""
    at_least(2, roots=roots)  # one alone has no advantage

    def credit(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        return of_leaves(tree, group_normalised(tree.rewards_L, sample_std))

    return Method(roots=roots, credit=credit, clip=clip, aggregate=aggregate)
