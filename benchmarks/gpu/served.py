"""Sampling with vLLM beside the policy, as in a training: its speed, and whether weights, seeds and prefixes arrive.

The policy says how probable the tokens were, so that weights which have not arrived, at first or after sleep, show.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.gpu.bench import GB, Bench, Finding, held
from benchmarks.gpu.generation import FORKED_AT, prompts, rate
from datpo.core.engine import Continuation, Request
from datpo.engines.vllm import VLLMEngine
from datpo.learn.exact import Said, Sampled, exact
from datpo.learn.update import NO_CACHE

# Nats that rounding makes of a token's log-probability, on average, with a margin.
SAME_POLICY = {"float32": 1e-4, "bfloat16": 0.1}
SURE = 3  # times as far the policy has to move, for a move that has not arrived to show
OTHERWISE = 10  # % of first tokens that rounding may let a seed draw otherwise, with a margin
FEW = 16  # rows are enough where nothing is timed


class Served:
    """vLLM with the bench's policy, in the precision of its training; the policy's own pass is timed apart."""

    def __init__(self, bench: Bench, folder: str) -> None:
        self.bench, self.scoring = bench, 0.0
        bench.policy.model.config.save_pretrained(folder)
        bench.policy.model.name_or_path = folder
        self.engine = VLLMEngine(bench.policy, 1.0, bench.precision, self._timed)

    def sample(self, requests: Sequence[Request]) -> list[Continuation]:
        """As `Run` samples."""
        with self.bench.accelerator.autocast(NO_CACHE):
            return self.engine.sample(requests)

    def word(self, sampled: Sequence[Sampled]) -> list[Said]:
        """What the policy itself says of tokens."""
        scale = self.bench.scale
        with self.bench.accelerator.autocast(NO_CACHE):
            return exact(self.bench.policy, sampled, scale.token_budget, scale.logit_budget, 1.0)

    def gap(self, what: str) -> Finding:
        """Nats between what vLLM and the policy say of a token, since the last report."""
        gap = float(self.engine.report().row()["engine_gap"] or 0.0)
        return held(f"vLLM, mean gap of a token{what}", gap, SAME_POLICY[self.bench.precision], "nats")

    def _timed(self, sampled: Sequence[Sampled]) -> list[Said]:
        found: list[Said] = []
        self.scoring += self.bench.timed(lambda: found.extend(self.word(sampled)))
        return found


def findings(bench: Bench) -> Iterator[Finding]:
    """The widest batch of prompts from vLLM, which takes over the policy's weights first, and again after a move."""
    if importlib.util.find_spec("vllm") is None:
        yield Finding("vLLM", verdict="skipped", note="vllm is not installed")
        return
    requests = prompts(bench, bench.scale.batches[-1])
    with TemporaryDirectory() as folder:
        it = Served(bench, folder)
        first: list[Continuation] = []
        seconds = bench.timed(lambda: first.extend(it.sample(requests)))
        yield Finding("vLLM, weights taken over and first rows", seconds, "s")
        yield it.gap("")
        yield from _speed(it, requests)
        yield from _same_seeds(it, requests, first)
        branches = _branches(it, requests[:FEW])
        yield _from_the_cache(it, branches)
        yield from _moved(it, requests, first, branches)


def _speed(it: Served, requests: Sequence[Request]) -> Iterator[Finding]:
    """vLLM's own time, and the policy's on the same rows; of these prompts nothing is cached."""
    other = [replace(request, context=request.context[::-1].copy()) for request in requests]
    it.scoring = 0.0
    whole = it.bench.timed(lambda: it.sample(other))
    yield rate(it.bench, f"vLLM, {len(other)} rows", whole - it.scoring, len(other))
    tokens = len(other) * it.bench.scale.new_tokens
    yield Finding("the policy's word on them", it.scoring, "s", note=f"{tokens / it.scoring:,.0f} tokens/s")
    it.engine.report()


def _same_seeds(it: Served, requests: Sequence[Request], first: Sequence[Continuation]) -> Iterator[Finding]:
    """The same rows once more. Where rounding lets one token differ, all behind it do, so the first ones are held."""
    again = it.sample(requests)
    it.engine.report()
    pairs = [(one.tokens, other.tokens) for one, other in zip(first, again, strict=True)]
    otherwise = 100 * float(np.mean([one[0] != other[0] for one, other in pairs]))
    yield held("vLLM, first tokens that equal seeds draw otherwise", otherwise, OTHERWISE, "%")
    same = sum(int(np.sum(one[: len(other)] == other[: len(one)])) for one, other in pairs)
    share = same / sum(max(map(len, pair)) for pair in pairs)
    yield Finding("vLLM, all tokens that equal seeds draw alike", 100 * share, "%", note="reported, not required")


def _branches(it: Served, requests: Sequence[Request]) -> list[Request]:
    """Branches of new base rollouts, whose contexts are some blocks of the prefix cache long."""
    long = 2 * _block(it) + 1
    bases = [replace(each, context=np.resize(each.context, max(len(each.context), long))) for each in requests]
    at = int(FORKED_AT * it.bench.scale.new_tokens)
    contexts = [np.concatenate([a.context, b.tokens[:at]]) for a, b in zip(bases, it.sample(bases), strict=True)]
    it.engine.report()
    return [replace(each, context=context) for each, context in zip(requests, contexts, strict=True)]


def _block(it: Served) -> int:
    """Tokens that the prefix cache holds together."""
    return int(it.engine.llm.llm_engine.vllm_config.cache_config.block_size)


def _from_the_cache(it: Served, branches: Sequence[Request]) -> Finding:
    """Whether all whole blocks come from there; the last token of a context is run in any case."""
    it.sample(branches)
    report, block = it.engine.report(), _block(it)
    whole = sum((len(each.context) - 1) // block * block for each in branches)
    note = f"{report.cached:,} of {report.context:,} tokens cached, blocks of {block}"
    return held("vLLM, branches: context in whole blocks that is not cached", whole - report.cached, 0, "tokens", note)


def _moved(
    it: Served, requests: Sequence[Request], first: Sequence[Continuation], branches: Sequence[Request]
) -> Iterator[Finding]:
    """Sleep, another policy, and new weights."""
    bench = it.bench
    seconds = bench.timed(it.engine.forget)
    if bench.on_gpu:
        free = torch.cuda.mem_get_info()[0] / GB
        yield Finding("free while vLLM sleeps", free, "GB", note=f"asleep in {seconds:.1f} s")
    _move(bench)
    few = list(zip(requests, first, strict=True))[:FEW]
    now = it.word([(request.context, drawn.tokens) for request, drawn in few])
    changes = [drawn.logprobs - logprob_T for (_, drawn), (logprob_T, _) in zip(few, now, strict=True)]
    moved = float(np.abs(np.concatenate(changes)).mean())
    least = SURE * SAME_POLICY[bench.precision]
    verdict = "yes" if moved >= least else "NO"
    yield Finding("the policy has moved, mean change of a token", moved, "nats", f">= {least:.3g}", verdict)
    seconds = bench.timed(lambda: it.sample(branches[:1]))
    yield Finding("vLLM, woken, new weights, one branch", seconds, "s")
    yield held("vLLM, what the prefix cache still has of it", it.engine.report().cached, 0, "tokens")
    it.sample(requests)
    yield it.gap(" after the policy has moved")


def _move(bench: Bench) -> None:
    """Another policy altogether: every parameter by half of its size."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in bench.policy.model.parameters():
            weight.add_(torch.randn_like(weight) * weight.square().mean().sqrt(), alpha=0.5)
