"""Sampling: tokens a second by rows side by side, and branches that start from kept keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.gpu.bench import GB, Bench, Finding
from datpo.core.engine import Request
from datpo.engines.hf import HFEngine

SAMPLES = 4  # of a prompt, as DATPO's base rollouts
FORKED_AT = 0.6  # of a base rollout


def findings(bench: Bench) -> Iterator[Finding]:
    """Rows of prompts, then branches with and without the keys and values of what they fork from."""
    bench.forget_peak()
    engine = HFEngine(bench.policy, max(bench.scale.batches))
    with bench.accelerator.autocast():
        bench.timed(lambda: engine.sample(prompts(bench, SAMPLES)))
        for count in bench.scale.batches:
            requests = prompts(bench, count)
            yield rate(bench, f"hf engine, {count} rows", bench.timed(lambda r=requests: engine.sample(r)), count)
        yield from _branches(bench, engine)
    if bench.on_gpu:
        note = "tensors, those of the update's optimiser included where it has begun"
        yield Finding("peak memory of sampling", bench.peak() / GB, "GB", note=note)


def prompts(bench: Bench, count: int) -> list[Request]:
    """Made prompts, `SAMPLES` requests of each; the same each time."""
    rng = np.random.default_rng(0)
    scale = bench.scale
    made = [
        rng.integers(3, scale.size.vocabulary, int(rng.integers(*scale.prompts))) for _ in range(-(-count // SAMPLES))
    ]
    return [Request(made[i // SAMPLES], i, scale.new_tokens) for i in range(count)]


def rate(bench: Bench, what: str, seconds: float, count: int) -> Finding:
    """Tokens a second of so many rows; kept among the bench's rates."""
    tokens = count * bench.scale.new_tokens
    step = seconds / bench.scale.new_tokens
    bench.rates[f"{what}: a token"] = step
    return Finding(what, tokens / seconds, "tokens/s", note=f"{1e3 * step:.1f} ms for a token of each row")


def _branches(bench: Bench, engine: HFEngine) -> Iterator[Finding]:
    """The widest batch of branches, with base rollouts to fork from."""
    scale = bench.scale
    bases = prompts(bench, min(scale.batches[-2:]))
    sampled = engine.sample(bases, keep=True)
    at = int(FORKED_AT * scale.new_tokens)
    requests = []
    for seed in range(scale.batches[-1]):
        base, found = bases[seed % len(bases)], sampled[seed % len(bases)]
        context = np.concatenate([base.context, found.tokens[:at]])
        requests.append(Request(context, seed, scale.new_tokens, found.handle))
    again = [replace(request, source=None) for request in requests]
    seconds = bench.timed(lambda: engine.sample(requests))
    yield rate(bench, f"hf engine, {len(requests)} branches from kept keys and values", seconds, len(requests))
    engine.forget()
    other = bench.timed(lambda: engine.sample(again))
    yield Finding("branches, their context run again / from kept ones", other / seconds, "times")
