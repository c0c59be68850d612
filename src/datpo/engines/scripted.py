"""An engine without a model, for tests: a table of next-token distributions keyed by the last token."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from datpo.core.engine import Continuation, EngineReport, Request
from datpo.core.tree import Finish, Floats


class ScriptedEngine:
    """Samples from a Markov chain over a small vocabulary.

    `transition_VV[v]` is the distribution of the token after token v; `end` is the token that ends a response.
    """

    def __init__(self, transition_VV: Floats, end: int) -> None:
        self.transition_VV = np.asarray(transition_VV, dtype=float)
        self.end = end
        self.batches: list[list[Request]] = []
        self.kept: list[bool] = []
        self.forgotten = 0
        self._handles = itertools.count()

    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request; the batches asked for are remembered for the test to look at."""
        self.batches.append(list(requests))
        self.kept.append(keep)
        return [self._one(request, next(self._handles)) for request in requests]

    def forget(self) -> None:
        """There is no cache; the call is counted."""
        self.forgotten += 1

    def report(self) -> EngineReport:
        """Nothing: what draws is the policy itself."""
        return EngineReport()

    def _one(self, request: Request, handle: int) -> Continuation:
        rng = np.random.default_rng(request.seed)
        last, finish = int(request.context[-1]), "length"
        tokens: list[int] = []
        logprobs: list[float] = []
        entropies: list[float] = []
        for _ in range(request.max_new_tokens):
            p_V = self.transition_VV[last]
            last = int(rng.choice(len(p_V), p=p_V))
            tokens.append(last)
            logprobs.append(float(np.log(p_V[last])))
            entropies.append(float(-(p_V[p_V > 0] * np.log(p_V[p_V > 0])).sum()))
            if last == self.end:
                finish = "stop"
                break
        done: Finish = "stop" if finish == "stop" else "length"
        return Continuation(np.array(tokens, dtype=np.int64), np.array(logprobs), np.array(entropies), done, handle)
