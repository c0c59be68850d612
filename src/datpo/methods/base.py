"""What every method is made of: a few pure functions and some numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from datpo.credit.advantages import Credit
from datpo.search.budget import Budget, parallel
from datpo.search.forks import ForkRule, no_forks

Unit = Literal["blocks", "leaves"]
Aggregate = Literal["token_mean", "sequence_mean", "constant"]


@dataclass(frozen=True)
class Method:
    """How trees grow, what their blocks earn, and how that becomes a loss.

    Attributes:
        roots: base rollouts per problem.
        credit: advantages of a graded tree.
        clip_low, clip_high: the policy ratio is clipped to [1 - clip_low, 1 + clip_high].
        unit: what is trained once: each block, or each whole root-to-leaf path.
        aggregate: the loss is a mean over the mini-batch's tokens, over its sequences of their token means, or
            over its sequences of their token sums divided by the constant `max_length`.
        max_length: that constant, in tokens.
        budget, forks: how many fork points, and where.
        signals: what the fork rule reads besides entropy: "sentence" asks for sentence numbers.
        diverse: whether credit reads sibling diversity (an embedder is needed then).
    """

    roots: int
    credit: Credit
    clip_low: float
    clip_high: float
    unit: Unit = "leaves"
    aggregate: Aggregate = "token_mean"
    max_length: int = 0
    budget: Budget = parallel
    forks: ForkRule = no_forks
    signals: tuple[str, ...] = ()
    diverse: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers that would train quietly wrong.

        Raises:
            ValueError: a number is out of range; it is named.
        """
        if self.roots < 1:
            raise ValueError(f"roots must be at least 1, not {self.roots}")
        if not (0 <= self.clip_low <= 1 and self.clip_high >= 0):
            raise ValueError(f"clip must be [low in 0..1, high >= 0], not [{self.clip_low}, {self.clip_high}]")
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {get_args(Unit)}, not {self.unit!r}")
        if self.aggregate not in get_args(Aggregate):
            raise ValueError(f"aggregate must be one of {get_args(Aggregate)}, not {self.aggregate!r}")
        if self.aggregate == "constant" and self.max_length < 1:
            raise ValueError("aggregate: constant needs max_length, the token count it divides by")
