"""Sampling: tokens a second by rows side by side, and branches that start from kept keys and values."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.gpu.bench import GB, Bench, Finding, held
from datpo.core.engine import Request
from datpo.engines.hf import HFEngine
from datpo.engines.vllm import VLLMEngine
from datpo.learn.exact import exact

SAMPLES = 4  # of a prompt, as DATPO's base rollouts
FORKED_AT = 0.6  # of a base rollout
SAME_POLICY = 0.1  # nats that rounding to bfloat16 makes of a token's log-probability, on average, with a margin


def findings(bench: Bench) -> Iterator[Finding]:
    """Rows of prompts, then branches with and without the keys and values of what they fork from."""
    bench.forget_peak()
    engine = HFEngine(bench.policy, max(bench.scale.batches))
    with bench.accelerator.autocast():
        bench.timed(lambda: engine.sample(_prompts(bench, SAMPLES)))
        for count in bench.scale.batches:
            requests = _prompts(bench, count)
            yield _rate(bench, f"hf engine, {count} rows", bench.timed(lambda r=requests: engine.sample(r)), count)
        yield from _branches(bench, engine)
    if bench.on_gpu:
        note = "tensors, those of the update's optimiser included where it has begun"
        yield Finding("peak memory of sampling", bench.peak() / GB, "GB", note=note)


def with_vllm(bench: Bench) -> Iterator[Finding]:
    """The same rows from vLLM, which takes over the policy's weights first, and again after these have moved.

    The policy says how probable the tokens were, so that weights which have not arrived, at first or after sleep, show.
    """
    if importlib.util.find_spec("vllm") is None:
        yield Finding("vLLM", verdict="skipped", note="vllm is not installed")
        return
    scale, model = bench.scale, bench.policy.model
    count = scale.batches[-1]
    requests = _prompts(bench, count)
    said = partial(
        exact, bench.policy, token_budget=scale.token_budget, logit_budget=scale.logit_budget, temperature=1.0
    )
    with TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        model.name_or_path = folder
        engine = VLLMEngine(bench.policy, 1.0, bench.precision, said)
        yield Finding("vLLM, weights taken over and first rows", bench.timed(lambda: engine.sample(requests)), "s")
        yield held("vLLM, mean gap of a token", _gap(engine), SAME_POLICY, "nats")
        again = [replace(request, context=request.context[::-1].copy()) for request in requests]  # nothing is cached
        yield _rate(
            bench, f"vLLM, {count} rows and the policy's word on them", bench.timed(lambda: engine.sample(again)), count
        )
        _gap(engine)
        seconds = bench.timed(engine.forget)
        if bench.on_gpu:
            yield Finding(
                "free while vLLM sleeps", torch.cuda.mem_get_info()[0] / GB, "GB", note=f"asleep in {seconds:.1f} s"
            )
        _move(bench)
        yield Finding("vLLM, woken, new weights, the same rows", bench.timed(lambda: engine.sample(requests)), "s")
        yield held("vLLM, mean gap of a token after the policy has moved", _gap(engine), SAME_POLICY, "nats")


def _gap(engine: VLLMEngine) -> float:
    """Nats between what vLLM and the policy say of a token, since the last time."""
    return float(engine.report().row()["engine_gap"] or 0.0)


def _move(bench: Bench) -> None:
    """Another policy altogether, as far as probabilities go."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in bench.policy.model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.01)


def _prompts(bench: Bench, count: int) -> list[Request]:
    rng = np.random.default_rng(0)
    scale = bench.scale
    prompts = [
        rng.integers(3, scale.size.vocabulary, int(rng.integers(*scale.prompts))) for _ in range(-(-count // SAMPLES))
    ]
    return [Request(prompts[i // SAMPLES], i, scale.new_tokens) for i in range(count)]


def _rate(bench: Bench, what: str, seconds: float, count: int) -> Finding:
    tokens = count * bench.scale.new_tokens
    step = seconds / bench.scale.new_tokens
    bench.rates[f"{what}: a token"] = step
    return Finding(what, tokens / seconds, "tokens/s", note=f"{1e3 * step:.1f} ms for a token of each row")


def _branches(bench: Bench, engine: HFEngine) -> Iterator[Finding]:
    """The widest batch of branches, with base rollouts to fork from."""
    scale = bench.scale
    bases = _prompts(bench, min(scale.batches[-2:]))
    sampled = engine.sample(bases, keep=True)
    at = int(FORKED_AT * scale.new_tokens)
    requests = []
    for seed in range(scale.batches[-1]):
        base, found = bases[seed % len(bases)], sampled[seed % len(bases)]
        context = np.concatenate([base.context, found.tokens[:at]])
        requests.append(Request(context, seed, scale.new_tokens, found.handle))
    again = [replace(request, source=None) for request in requests]
    seconds = bench.timed(lambda: engine.sample(requests))
    yield _rate(bench, f"hf engine, {len(requests)} branches from kept keys and values", seconds, len(requests))
    engine.forget()
    other = bench.timed(lambda: engine.sample(again))
    yield Finding("branches, their context run again / from kept ones", other / seconds, "times")
