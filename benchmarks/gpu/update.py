"""The packed update against a sequence of its own for each block, and its memory against what is planned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks import made, naive
from benchmarks.gpu.bench import GB, Bench, Finding, Scale, held, tried
from datpo.learn.minibatch import CreditedTree, Unit, gather, split, units_of
from datpo.learn.pack import packs
from datpo.learn.update import NO_CACHE
from datpo.plan.memory import Memory, Rows, training_memory
from datpo.plan.sizes import size_of

# How far apart gradients may lie that were summed up in another order, as a share of their norm.
MOST = {"float32": 1e-4, "bfloat16": 0.1}


def findings(bench: Bench) -> Iterator[Finding]:
    """One pass over a step's trees both ways, and the peak of our way."""
    method, scale = made.methods()["datpo"], bench.scale
    trees = bench.credits(method, scale.trees)
    batches = split(units_of(trees), 64, "units", np.random.default_rng(0))
    what = "gradient of a mini-batch, packed and per block: distance / norm"
    yield tried(what, lambda: _same_gradient(bench, trees, batches[0], what))  # and the kernels are compiled
    bench.forget_peak()
    ours = bench.timed(lambda: bench.learner.update(method, trees, bench.settings, 0, 0))
    peak = bench.peak()
    packed, flat = _tokens(bench, trees, batches)
    bench.rates["packed token"] = ours / packed
    trained = sum(gather(method, trees, units, scale.lengths[1]).trained_tokens for units in batches)
    shape = f"{len(trees)} (4,3,4) trees, {len(batches)} mini-batches"
    yield Finding(f"update, packed: {shape}", ours, "s", note=f"{packed:,} tokens in packs, {trained:,} trained")
    yield Finding("update, packed", packed / ours, "packed tokens/s", note=f"{trained / ours:,.0f} trained tokens/s")
    yield from _memory(bench, peak)
    theirs = bench.timed(lambda: _per_block(bench, trees, batches))
    yield Finding(f"update, each block its own sequence: {shape}", theirs, "s", note=f"{flat:,} tokens in sequences")
    note = f"in tokens, the limit: {flat / packed:.2f}"
    slower, met = theirs / ours, "yes" if theirs >= ours else "NO"
    # A small model on a CPU spends its time elsewhere.
    limit = (">= 1", met) if bench.on_gpu else ("", "")
    yield Finding("each block its own sequence / packed", slower, "times", *limit, note)


def _same_gradient(bench: Bench, trees: list[CreditedTree], units: list[Unit], what: str) -> Finding:
    """The gradient of one mini-batch both ways, and how far it lies from the other."""
    method, learner = made.methods()["datpo"], bench.learner
    learner.clear_gradients()
    learner.accumulate(method, gather(method, trees, units, bench.scale.lengths[1]), bench.settings)
    ours = [parameter.grad.clone() for parameter in learner.parameters]
    learner.clear_gradients()
    _accumulate(bench, trees, units)
    theirs = [parameter.grad for parameter in learner.parameters]
    norm = torch.nn.utils.get_total_norm(theirs)
    apart = torch.nn.utils.get_total_norm([a.sub_(b) for a, b in zip(ours, theirs, strict=True)]) / norm
    return held(what, float(apart), MOST[bench.precision], note=f"norm {float(norm):.3g}")


def _accumulate(bench: Bench, trees: list[CreditedTree], units: list[Unit]) -> None:
    method, scale = made.methods()["datpo"], bench.scale
    with bench.accelerator.autocast(NO_CACHE):
        flat = naive.sequences(method, trees, units)
        naive.accumulate(bench.learner.policy, method, flat, scale.token_budget, scale.logit_budget)


def _per_block(bench: Bench, trees: list[CreditedTree], batches: list[list[Unit]]) -> None:
    learner = bench.learner
    for units in batches:
        learner.clear_gradients()
        _accumulate(bench, trees, units)
        torch.nn.utils.clip_grad_norm_(learner.parameters, 1.0)
        learner.optimizer.step()
    learner.optimizer.zero_grad(set_to_none=True)


def _tokens(bench: Bench, trees: list[CreditedTree], batches: list[list[Unit]]) -> tuple[int, int]:
    """Tokens that run through the model in packs, and as single sequences."""
    method, packed, flat = made.methods()["datpo"], 0, 0
    for units in batches:
        shares = gather(method, trees, units, bench.scale.lengths[1]).shares
        packed += sum(len(pack.token_T) for pack in packs(shares, bench.scale.token_budget))
        flat += sum(len(one.tokens) for one in naive.sequences(method, trees, units))
    return packed, flat


def _memory(bench: Bench, peak: float) -> Iterator[Finding]:
    if not bench.on_gpu:
        yield Finding("peak memory of the update", peak / GB, "GB", note="of the process, all that is loaded included")
        return
    plan = planned(bench.scale, bench.precision)
    most = plan.standing + plan.update
    note = f"planned {most / GB:.1f}, {plan.standing / GB:.1f} of it standing; measured / planned {peak / most:.2f}"
    yield held("peak memory of the update", peak / GB, 1.1 * most / GB, "GB", note)


def planned(scale: Scale, precision: str) -> Memory:
    """What `datpo plan` says of a training of this model; nothing is sampled in it."""
    size = size_of(made.policy(scale.size, "meta").model.config.to_dict(), "the made model")
    return training_memory(size, Rows(0, 0), precision, scale.token_budget, scale.logit_budget, recomputed=True)
