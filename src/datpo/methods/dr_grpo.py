"""Dr.GRPO (Liu et al. 2025): GRPO without its two normalisations.

Differences from GRPO:
1. Credit. A_i = r_i - mean r: no division by the standard deviation, which favours problems nearly solved or failed.
2. Update. A response's token losses are summed and divided by one constant, the longest response that is sampled,
   then averaged over responses: no division by its own length, which favours short right and long wrong answers.
"""

from __future__ import annotations

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import centred, of_leaves
from datpo.methods.base import Aggregate, Clip, Method, at_least
from datpo.search.budget import Progress


def build(roots: int, clip: Clip, aggregate: Aggregate = "constant") -> Method:
    """Dr.GRPO with `roots` samples per problem."""
    at_least(2, roots=roots)  # one alone has no advantage

    def credit(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        return of_leaves(tree, centred(tree.rewards_L))

    return Method(roots=roots, credit=credit, clip=clip, aggregate=aggregate)
