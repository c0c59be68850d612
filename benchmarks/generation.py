"""Sampling with a cache that is reused and a batch that shrinks, against batches that do neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks import made, naive
from benchmarks.measure import Row, compared, cpu
from datpo.core.engine import Request
from datpo.core.tree import Ints
from datpo.engines.hf import HFEngine
from datpo.learn.policy import Policy

BATCH = 384
PROMPT, PATHS = 120, (300, 400)


class Branches:
    """Twelve branches of each base rollout, forked at 1/5, 2/5 and 3/5; a path ends after 300-400 tokens.

    A random model hardly ever draws an end token, so lengths are set by each request's limit, the same for both sides.
    """

    def __init__(self, problems: int, size: made.Size = made.ONE_M) -> None:
        self.policy = made.policy(size)
        rng = np.random.default_rng(0)
        self.engine = HFEngine(self.policy, BATCH)
        self.again = naive.PrefilledAgain(self.policy, BATCH)
        prompts = np.repeat(rng.integers(3, size.vocabulary, (problems, PROMPT)), 4, axis=0)
        bases = [Request(prompt, i, int(rng.integers(*PATHS))) for i, prompt in enumerate(prompts)]
        sampled = self.engine.sample(bases, keep=True)
        self.requests = []
        for prompt, base in zip(prompts, sampled, strict=True):
            for third in (1, 2, 3):
                at = third * len(base.tokens) // 5
                context = np.concatenate([prompt, base.tokens[:at]])
                self.requests += [
                    Request(context, int(rng.integers(1 << 30)), int(rng.integers(*PATHS)) - at, base.handle)
                    for _ in range(4)
                ]

    def reused(self) -> None:
        """Ours: a fork starts from the base rollout's keys and values."""
        self.engine.sample(self.requests)

    def prefilled(self) -> None:
        """Theirs: the context is run again for each branch; finished rows leave as well."""
        self.again.sample([replace(request, source=None) for request in self.requests])

    def released(self) -> list[Ints]:
        """Theirs: token by token from the shortest context."""
        return naive.released_generation(self.policy, self.requests)


class Samples:
    """Sixteen samples of each of sixteen prompts, 20 to 200 tokens long."""

    def __init__(self, size: made.Size = made.ONE_M) -> None:
        self.policy: Policy = made.policy(size)
        rng = np.random.default_rng(0)
        self.engine, self.static = HFEngine(self.policy, BATCH), naive.Static(self.policy, BATCH)
        prompts = [rng.integers(3, size.vocabulary, PROMPT) for _ in range(16)]
        self.requests = [
            Request(prompt, i, int(rng.integers(20, 200))) for i, prompt in enumerate(np.repeat(prompts, 16, axis=0))
        ]

    def shrinking(self) -> None:
        """Ours: each prompt once, rows leave as they end."""
        self.engine.sample(self.requests)

    def whole(self) -> None:
        """Theirs: the same decoding, all rows until the longest ends."""
        self.static.sample(self.requests)

    def transformers(self) -> None:
        """Theirs: `generate`."""
        naive.generate(self.policy, self.requests)


def rows() -> Iterator[Callable[[], Row]]:
    """Each row, to be made when it is called."""

    def row(name: str, against: str, sides: tuple[Callable[[], object], Callable[[], object]], least: float) -> Row:
        return compared(name, against, cpu(sides[0]), cpu(sides[1]), least, 3)

    def branches(against: str, least: float, theirs: str) -> Row:
        it = Branches(4)
        return row("192 branches of 16 base rollouts, 1M", against, (it.reused, getattr(it, theirs)), least)

    def samples(against: str, least: float, theirs: str) -> Row:
        it = Samples()
        return row("16 x 16 samples of 20-200 tokens, 1M", against, (it.shrinking, getattr(it, theirs)), least)

    yield lambda: branches("prefilled again, finished rows leave", 1.2, "prefilled")
    yield lambda: branches("token by token from the shortest prompt, static batch (released way)", 1.4, "released")
    yield lambda: samples("static batch until the longest ends", 1.5, "whole")
    yield lambda: samples("transformers.generate", 2.3, "transformers")
