"""TreeRL (Hou et al. 2025): entropy-guided trees (EPTree) with credit for every segment.

Differences from GRPO:
1. Search, (M, N, L, T). M = `roots` samples start M trees. In each of L = `rounds` rounds every tree is forked at the
   N = `forks` tokens it was least sure of, over all its branches, with T = `siblings` new branches at each; the
   token itself is sampled again. Leaves: M (1 + N T L), 30 for (6, 2, 1, 2).
2. Credit. A(b) = [V(b) - V(root) + V(b) - V(parent)] / sqrt(leaves below b).
3. Update. All leaf paths are trained, a shared block once for every leaf below it.
"""

from __future__ import annotations

from typing import Literal

from datpo.core.tree import Floats, RolloutTree
from datpo.credit.advantages import global_and_local, global_and_local_released
from datpo.methods.base import Aggregate, Clip, Method, at_least
from datpo.search.budget import Progress, static
from datpo.search.forks import least_sure

CREDITS = {"paper": global_and_local, "released": global_and_local_released}


def build(
    roots: int,
    forks: int,
    rounds: int,
    siblings: int,
    clip: Clip,
    aggregate: Aggregate = "token_mean",
    uncertainty: Literal["surprise", "entropy"] = "surprise",
    credit: Literal["paper", "released"] = "paper",
) -> Method:
    """TreeRL with trees of roots x (1 + forks x siblings x rounds) leaves."""
    at_least(1, forks=forks, siblings=siblings)

    def advantages(tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Floats:
        return CREDITS[credit](tree)

    return Method(
        roots=roots,
        budget=static(forks, siblings),
        forks=least_sure(uncertainty),
        rounds=rounds,
        credit=advantages,
        clip=clip,
        aggregate=aggregate,
    )
