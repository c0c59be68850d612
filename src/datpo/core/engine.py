"""What a rollout needs from a language model: token ids in, token ids out. An engine knows nothing of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from datpo.core.tree import Finish, Floats, Ints


@dataclass(frozen=True)
class Request:
    """One continuation to sample.

    Attributes:
        context: everything the policy sees before the first new token: prompt and prefix.
        seed: fixes the draw whatever else is in the batch.
        max_new_tokens: where the continuation is cut off.
        source: the handle of an earlier continuation whose context and tokens begin with `context`; an engine
            may start from its cached keys and values.
    """

    context: Ints
    seed: int
    max_new_tokens: int
    source: int | None = None


@dataclass(frozen=True)
class Continuation:
    """Sampled tokens (T,) with their log-probabilities and the entropy (nats) of each token's distribution."""

    tokens: Ints
    logprobs: Floats
    entropies: Floats
    finish: Finish
    handle: int


@dataclass(frozen=True)
class EngineReport:
    """What an engine with a model of its own says of a while's work; empty for one that samples from the policy itself.

    Reports add up. With mu the probabilities that the engine drew from, pi the policy's own, which stand in the
    continuations:

    Attributes:
        tokens: drawn.
        gaps, largest: sum and maximum over tokens of |log pi - log mu| in nats.
        ratios: sum of pi / mu; the mean is 1 but for chance where both are the same policy.
        context, cached: tokens of all contexts, and those whose keys and values were there already.
    """

    tokens: int = 0
    gaps: float = 0.0
    largest: float = 0.0
    ratios: float = 0.0
    context: int = 0
    cached: int = 0

    def __add__(self, other: EngineReport) -> EngineReport:
        return EngineReport(
            self.tokens + other.tokens,
            self.gaps + other.gaps,
            max(self.largest, other.largest),
            self.ratios + other.ratios,
            self.context + other.context,
            self.cached + other.cached,
        )

    def row(self) -> Mapping[str, float | None]:
        """The numbers of a training log's row; None where there is nothing to be said."""
        return {
            "engine_gap": self.gaps / self.tokens if self.tokens else None,
            "engine_gap_max": self.largest if self.tokens else None,
            "engine_ratio": self.ratios / self.tokens if self.tokens else None,
            "engine_cached": self.cached / self.context if self.context else None,
        }


class Engine(Protocol):
    """Samples from the policy at temperature 1 unless it was built with another one."""

    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request, in order; with `keep`, later requests may name them as `source`."""
        ...

    def forget(self) -> None:
        """Drop all cached keys and values, and whatever else is stale once the policy has been updated."""
        ...

    def report(self) -> EngineReport:
        """What there is to say since the last report."""
        ...
