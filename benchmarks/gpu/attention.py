"""Attention over packs: are all layouts the same, what does each take, is one kernel enough for every length.

Suffixes: H heads, G key-value heads, T tokens, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch.nn.functional import pad

from benchmarks.gpu.bench import Bench, Finding, held, tried
from datpo.core.tree import RolloutTree
from datpo.learn.attention import Attend, ChainAttention, DenseTreeAttention
from datpo.learn.flex import FlexTreeAttention
from datpo.learn.pack import Pack, Share, packs

Layout = Callable[[Pack, torch.device], Attend]
EXACT = "dense mask"
# Largest error as a share of the largest number, against the dense mask in float64 on the same inputs.
MOST = {torch.float32: 2e-5, torch.bfloat16: 2e-2}
NUMBERS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SHORTER = 3  # the tree that is held against float64, whose dense scores take a lot of memory
LENGTHS = 8  # of packs, to see whether the kernel is compiled for each


def findings(bench: Bench) -> Iterator[Finding]:
    """Equal first, then fast, then compiled once."""
    yield from _errors(bench)
    for leaves in bench.scale.leaves:
        yield from _times(bench, leaves)
    if bench.on_gpu:
        what = f"FlexAttention, {LENGTHS} more lengths: compiled anew"
        yield tried(what, partial(_recompiled, bench, what))
        torch.compiler.reset()


def layouts(bench: Bench) -> dict[str, Layout]:
    """Every way to attend over a pack; FlexAttention has no backward pass on a CPU."""
    found: dict[str, Layout] = {"chains": ChainAttention, EXACT: DenseTreeAttention}
    return {"FlexAttention": FlexTreeAttention, **found} if bench.on_gpu else found


def packed(tree: RolloutTree) -> Pack:
    """A tree as one pack, all its blocks scored."""
    ones = np.ones(len(tree.blocks))
    (pack,) = packs([Share(tree, ones, ones)], 10**9)
    return pack


class Inputs:
    """Queries, keys and values of a pack as a model hands them over, and a gradient to send back; always the same.

    Behind the pack's tokens stand as many as the layout fills up with.
    """

    def __init__(self, bench: Bench, pack: Pack, dtype: torch.dtype, attend: Attend) -> None:
        size, self.tokens = bench.scale.size, len(pack.token_T)
        self.head = size.hidden // size.heads
        generator = torch.Generator(bench.device).manual_seed(0)
        filler = (0, 0, 0, 0, 0, getattr(attend, "length", self.tokens) - self.tokens)
        query, key, value, back = (
            torch.randn((1, self.tokens, heads, self.head), generator=generator, device=bench.device).to(dtype)
            for heads in (size.heads, size.groups, size.groups, size.heads)
        )
        self.attend, self.back = attend, back.transpose(1, 2)
        self.given = [pad(each, filler).requires_grad_() for each in (query, key, value)]

    def work(self) -> list[Tensor]:
        """One layer: the output (1, H, T, D) and the gradients of queries, keys and values (1, T, H or G, D)."""
        out = self.attend(0, *(each.transpose(1, 2) for each in self.given), self.head**-0.5)[:, :, : self.tokens]
        gradients = torch.autograd.grad(out, self.given, self.back)
        return [out.detach(), *(each[:, : self.tokens] for each in gradients)]

    def exact(self) -> list[Tensor]:
        """The same in float64; for the dense mask, which has no filler."""
        self.given = [each.detach().double().requires_grad_() for each in self.given]
        self.back = self.back.double()
        return self.work()


def _errors(bench: Bench) -> Iterator[Finding]:
    pack = packed(bench.tree(13, np.random.default_rng(0), shorter=SHORTER))
    for dtype, most in MOST.items():
        exact = Inputs(bench, pack, dtype, DenseTreeAttention(pack, bench.device)).exact()
        for name, layout in layouts(bench).items():
            what = f"error of {name}, {str(dtype).removeprefix('torch.')}, forward and backward"
            yield tried(what, partial(_error, bench, pack, dtype, layout, exact, what, most))


def _error(
    bench: Bench, pack: Pack, dtype: torch.dtype, layout: Layout, exact: list[Tensor], what: str, most: float
) -> Finding:
    found = Inputs(bench, pack, dtype, layout(pack, bench.device)).work()
    error = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, exact, strict=True))
    return held(what, error, most, note=f"{len(pack.token_T)} tokens")


def _times(bench: Bench, leaves: int) -> Iterator[Finding]:
    pack = packed(bench.tree(leaves, np.random.default_rng(0)))
    tokens = len(pack.token_T)
    for name, layout in layouts(bench).items():
        what = f"one layer, {leaves} leaves, {name}"
        if name == EXACT and tokens > bench.scale.dense_up_to:
            yield Finding(what, verdict="skipped", note=f"a mask of {tokens:,} x {tokens:,}")
        else:
            yield tried(what, partial(_time, bench, pack, layout, what))


def _time(bench: Bench, pack: Pack, layout: Layout, what: str) -> Finding:
    laid_out = bench.timed(partial(layout, pack, bench.device))
    inputs = Inputs(bench, pack, NUMBERS[bench.precision], layout(pack, bench.device))
    begun = bench.timed(inputs.work)
    note = f"{len(pack.token_T):,} tokens; laid out in {1e3 * laid_out:.0f} ms; the first call took {begun:.1f} s"
    return Finding(what, 1e3 * bench.median(inputs.work), "ms", note=note)


def _recompiled(bench: Bench, what: str) -> Finding:
    """Graphs compiled while packs of many lengths run, after two of other lengths: the second is the general one."""
    torch.compiler.reset()  # counted from nothing; and a kernel may be compiled only so often
    counters.clear()
    rng, compiled = np.random.default_rng(1), list[int]()
    for _ in range(2 + LENGTHS):
        pack = packed(bench.tree(13, rng))
        Inputs(bench, pack, NUMBERS[bench.precision], FlexTreeAttention(pack, bench.device)).work()
        compiled.append(counters["stats"]["unique_graphs"])
    return held(what, compiled[-1] - compiled[1], 0, "times", f"after {compiled[1]} of the first two")
