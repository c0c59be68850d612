"""One whole DATPO step on made problems, what the paper's step would take at these rates, and the same step twice.

Random weights never end an answer, so answers have the length they may have; rewards are drawn by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import made
from benchmarks.gpu.bench import GB, Bench, Finding
from datpo.core.problem import Problem
from datpo.core.seeds import generator
from datpo.core.tree import Floats, RolloutTree
from datpo.credit.diversity import lexical, sibling_diversity
from datpo.engines.hf import HFEngine
from datpo.learn.minibatch import CreditedTree, credited, gather, units_of
from datpo.plan.made_step import Shape, made_step
from datpo.search.budget import Progress
from datpo.search.rollout import Leaf, Rollouts, under_way
from datpo.search.signals import sentence_numbers

PAPER = Shape(150, 0.53 * 1024, 16, 0.5, 2, "units", 64, 8192, 1024)  # as its Table 8 has it
PAPERS = 150.44 + 102.17  # seconds of rollout and update on an A100, its Table 10


def findings(bench: Bench) -> Iterator[Finding]:
    """A step by its parts, then the paper's."""
    bench.forget_peak()
    step = Step(bench)
    rollout = bench.timed(step.roll_out)
    diversity = bench.timed(step.compare)
    update = bench.timed(step.update)
    leaves = sum(len(tree.branches) for tree in step.trees)
    shape = f"{len(step.trees)} problems, {leaves} leaves of up to {bench.scale.new_tokens} new tokens"
    yield Finding(f"whole DATPO step: {shape}", rollout + diversity + update, "s")
    for part, seconds in (("rollout", rollout), ("diversity (lexical) and credit", diversity), ("update", update)):
        yield Finding(f"of it {part}", seconds, "s")
    yield Finding("peak memory of the step", bench.peak() / GB, "GB")
    for rows in bench.scale.batches:
        yield papers_step(bench, rows)


def repeated(bench: Bench) -> Iterator[Finding]:
    """The same step twice: tokens sampled, and the loss of a mini-batch."""
    pairs = []
    for _ in range(2):
        step = Step(bench)
        step.roll_out()
        step.compare()
        pairs.append((np.concatenate([b.tokens for tree in step.trees for b in tree.branches]), step.loss()))
    (tokens, loss), (again, other) = pairs
    same = float(np.mean(tokens == again)) if len(tokens) == len(again) else float("nan")
    yield Finding("tokens alike in the same step twice", 100 * same, "%", note="reported, not required")
    yield Finding(
        "loss of the same step twice, difference", abs(loss - other), "", note=f"loss {loss:.6g}; not required"
    )


def papers_step(bench: Bench, rows: int) -> Finding:
    """What rollout and update of the paper's mean step would take at the rates of the sections before.

    Rollouts are sampled `rows` side by side. Every batch of them decodes as long as its longest row, which is reckoned
    with the 1,024 tokens that it may have.
    """
    what = f"the paper's step, extrapolated, {rows} rows side by side: rollout and update"
    needed = (f"hf engine, {rows} rows: a token", "packed token")
    if lacking := [name for name in needed if name not in bench.rates]:
        return Finding(what, verdict="skipped", note=f"not measured: {', '.join(lacking)}")
    token, packed = (bench.rates[name] for name in needed)
    work = made_step(made.methods()["datpo"], PAPER)
    planted, forked = work.questions * work.roots, work.questions * (work.leaves - work.roots)
    batches = math.ceil(planted / rows) + math.ceil(forked / rows)
    rollout, update = PAPER.max_new_tokens * batches * token, work.packed * packed
    note = (
        f"rollout {rollout:.0f} s, update of {work.packed:,.0f} packed tokens {update:.0f} s; not measured as a whole"
    )
    return Finding(what, rollout + update, "s", f"{PAPERS:.0f} s on an A100 (paper)", note=note)


class Step:
    """A step on made problems: grown, compared, trained."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.method = bench, made.methods()["datpo"]
        rng, scale = np.random.default_rng(0), bench.scale
        prompts = [
            rng.integers(3, scale.size.vocabulary, int(rng.integers(*scale.prompts))) for _ in range(scale.trees)
        ]
        self.seeds = [RolloutTree(Problem(f"made-{i}", "", ""), prompt) for i, prompt in enumerate(prompts)]
        signals = {"sentence": _sentences}
        self.rollouts = Rollouts(
            HFEngine(bench.policy, scale.batches[-1]), _drawn, signals, scale.new_tokens, bench.policy.context_window
        )
        self.trees: list[RolloutTree] = []
        self.credits: list[CreditedTree] = []

    def roll_out(self) -> None:
        """Base rollouts, then branches."""
        with self.bench.accelerator.autocast():
            planted = self.rollouts.plant(self.method, under_way(self.seeds, 0), 0)
            self.trees, _ = self.rollouts.fork(self.method, planted, Progress(), 0)

    def compare(self) -> None:
        """Diversity and credit."""
        diversity = sibling_diversity(self.trees, made.spoken, lexical)
        pairs = zip(self.trees, diversity, strict=True)
        self.credits = [credited(self.method, tree, Progress(), diversity_B) for tree, diversity_B in pairs]

    def update(self) -> None:
        """One pass over all blocks."""
        self.bench.learner.update(self.method, self.credits, self.bench.settings, 0, 0)

    def loss(self) -> float:
        """Of all blocks as one mini-batch; nothing is moved."""
        learner, settings = self.bench.learner, self.bench.settings
        learner.clear_gradients()
        batch = gather(self.method, self.credits, units_of(self.credits), settings.max_new_tokens)
        loss, _ = learner.accumulate(self.method, batch, settings)
        learner.optimizer.zero_grad(set_to_none=True)
        return loss


def _sentences(leaves: Sequence[Leaf]) -> list[Floats]:
    return [sentence_numbers(tree.branches[leaf], made.spoken) for tree, leaf in leaves]


def _drawn(leaves: Sequence[Leaf]) -> list[tuple[float, str]]:
    rewards = [float(generator(0, "reward", tree.problem.id, leaf).integers(2)) for tree, leaf in leaves]
    return [(reward, "right" if reward else "wrong") for reward in rewards]
