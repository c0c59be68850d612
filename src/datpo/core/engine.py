"""What a rollout needs from a language model: token ids in, token ids out. An engine knows nothing of text."""

from __future__ import annotations

from collections.abc import Sequence
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


class Engine(Protocol):
    """Samples from the policy at temperature 1 unless it was built with another one."""

    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request, in order; with `keep`, later requests may name them as `source`."""
        ...

    def forget(self) -> None:
        """Drop all cached keys and values: they are stale once the policy has been updated."""
        ...
