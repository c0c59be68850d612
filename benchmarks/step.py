"""Whole training steps: sampling, credit and update, against the plain parts put together, and against TRL."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np
import torch
from accelerate import Accelerator

from benchmarks import made, naive
from benchmarks.measure import Row, compared, cpu
from datpo.core.engine import Request
from datpo.core.problem import Problem
from datpo.core.tree import RolloutTree
from datpo.credit.diversity import lexical, sibling_diversity
from datpo.engines.hf import HFEngine
from datpo.evaluate.verify import grade_all
from datpo.learn.minibatch import CreditedTree, credited, split, units_of
from datpo.learn.update import Learner, UpdateSettings
from datpo.search.budget import Progress
from datpo.search.rollout import Leaf, Rollouts, under_way
from datpo.search.signals import Decode, sentence_numbers

PROBLEMS, PROMPT, LENGTHS = 16, 17, (24, 60)  # as at the scale `tiny`
SETTINGS = UpdateSettings(
    epochs=1, minibatch="trees", minibatch_size=64, gradient_clip=1.0, token_budget=4096, logit_budget=2**25,
    temperature=1.0, max_new_tokens=64,
)  # fmt: skip


class DatpoStep:
    """Sixteen (4,3,4) trees: base rollouts, branches, and one pass of updates over whole trees, both ways.

    Both are told how long each rollout is and where it forks, so that they grow trees of the same shape and train the
    very same ones. What a step does besides (`between`) both do alike.
    """

    def __init__(self) -> None:
        size = made.TINY
        self.policy, self.method = made.policy(size), made.methods()["datpo"]
        rng = np.random.default_rng(0)
        trees = [made.tree(4, 3, 4, PROMPT, LENGTHS, rng, size.vocabulary) for _ in range(PROBLEMS)]
        self.credits = made.with_credit(self.method, trees, rng)
        self.requests = [_requests(tree) for tree in trees]
        self.engine = HFEngine(self.policy, 384)
        self.learner = Learner(self.policy, torch.optim.AdamW(self.policy.model.parameters(), 1e-6), Accelerator())
        self.rounds = 0

    def between(self) -> list[CreditedTree]:
        """Grading, sentences, choice of forks, lexical diversity and credit of these trees, as if they were new.

        Nothing uses what comes out, for both sides are told where to fork and train every unit. Words are others each
        time: some parts remember texts.
        """
        self.rounds += 1
        decode = partial(made.spoken, shift=self.rounds)
        progress, rng = Progress(), np.random.default_rng(0)
        trees = [
            RolloutTree(replace(each.tree.problem, answer="1"), each.tree.prompt, each.tree.branches)
            for each in self.credits
        ]
        for planted in (_with_sentences(tree, decode) for tree in trees):
            self.method.forks.choose(planted, self.method.budget(planted, progress, rng), rng)
        leaves = [(tree, leaf) for tree in trees for leaf in range(len(tree.branches))]
        grade_all("math", [(tree.problem, _boxed(tree, leaf, decode)) for tree, leaf in leaves])
        pairs = zip(trees, sibling_diversity(trees, decode, lexical), strict=True)
        return [credited(self.method, tree, progress, diversity_B) for tree, diversity_B in pairs]

    def ours(self) -> None:
        """Forks reuse caches; trees are packed."""
        bases = self.engine.sample([base for bases, _ in self.requests for base in bases], keep=True)
        handles = iter(base.handle for base in bases)
        branches = []
        for mine, below in self.requests:
            of_root = [next(handles) for _ in mine]
            branches += [Request(each.context, each.seed, each.max_new_tokens, of_root[root]) for root, each in below]
        self.engine.sample(branches)
        self.engine.forget()
        self.between()
        self.learner.update(self.method, self.credits, SETTINGS, 0, 0)

    def theirs(self) -> None:
        """Token by token from the shortest context; each block its own sequence."""
        for requests in ([r for bases, _ in self.requests for r in bases], [r for _, b in self.requests for _, r in b]):
            for start in range(0, len(requests), 384):
                naive.released_generation(self.policy, requests[start : start + 384])
        self.between()
        rng = np.random.default_rng(0)
        for chosen in split(units_of(self.credits), 64, "trees", rng):
            self.learner.optimizer.zero_grad(set_to_none=False)
            flat = naive.sequences(self.method, self.credits, chosen)
            naive.accumulate(self.policy, self.method, flat, SETTINGS.token_budget, SETTINGS.logit_budget)
            torch.nn.utils.clip_grad_norm_(self.learner.parameters, 1.0)
            self.learner.optimizer.step()


def _requests(tree: RolloutTree) -> tuple[list[Request], list[tuple[int, Request]]]:
    """What it takes to sample such a tree: its base rollouts, and its branches with the root they fork from."""
    bases, branches = [], []
    for index, branch in enumerate(tree.branches):
        if branch.parent is None:
            bases.append(Request(tree.prompt, index, len(branch.tokens)))
        else:
            context = np.concatenate([tree.prompt, tree.prefix(branch.parent, branch.start)])
            branches.append((branch.parent, Request(context, index, len(branch.tokens))))
    return bases, branches


def _boxed(tree: RolloutTree, leaf: int, decode: Decode) -> str:
    return rf"{decode(tree.response(leaf))} \boxed{{{tree.branches[leaf].reward:.0f}}}"


def _with_sentences(tree: RolloutTree, decode: Decode) -> RolloutTree:
    """A tree's base rollouts alone, with what the choice of forks reads."""
    bases = [tree.branches[root] for root in tree.roots]
    signals = [{**base.signals, "sentence": sentence_numbers(base, decode)} for base in bases]
    new = [replace(base, signals=read) for base, read in zip(bases, signals, strict=True)]
    return RolloutTree(tree.problem, tree.prompt, tuple(new))


class GrpoStep:
    """Sixteen samples of sixteen prompts and four updates of 64 of them; every group has both rewards.

    The model's end token is made so likely that answers have all lengths up to `longest`.
    """

    def __init__(self, folder: Path, longest: int) -> None:
        size = made.TINY
        self.policy, self.method = made.policy(size), made.methods()["grpo"]
        with torch.no_grad():
            self.policy.model.model.embed_tokens.weight[made.END] *= 16
        rng = np.random.default_rng(0)
        self.problems = [Problem(f"p{i}", "", "") for i in range(16)]
        self.prompts = [rng.integers(3, size.vocabulary, PROMPT) for _ in self.problems]
        self.policy.model.save_pretrained(folder / "model")
        (folder / "prompts.json").write_text(json.dumps([prompt.tolist() for prompt in self.prompts]))
        learner = torch.optim.AdamW(self.policy.model.parameters(), 1e-6)
        self.learner = Learner(self.policy, learner, Accelerator())
        self.rollouts = Rollouts(HFEngine(self.policy, 384), _parity, {}, longest, 2048)
        self.steps, self.tokens = 0, 0

    def ours(self) -> None:
        """One step."""
        trees = [RolloutTree(problem, prompt) for problem, prompt in zip(self.problems, self.prompts, strict=True)]
        planted = self.rollouts.plant(self.method, under_way(trees, self.steps), 0)
        progress = Progress(self.steps, 0.0, {})
        grown, _ = self.rollouts.fork(self.method, planted, progress, 0)
        credits = [credited(self.method, tree, progress, np.zeros(len(tree.blocks))) for tree in grown]
        settings = replace(SETTINGS, minibatch="units")
        self.learner.update(self.method, credits, settings, 0, self.steps)
        self.steps += 1
        self.tokens = sum(tree.generated_tokens for tree in grown)


def _parity(leaves: Sequence[Leaf]) -> list[tuple[float, str]]:
    rewards = [float(tree.response(leaf).sum() % 2) for tree, leaf in leaves]
    return [(reward, "right" if reward else "wrong") for reward in rewards]


class Trl:
    """TRL in a process of its own, which takes a step when it is told to."""

    def __init__(self, python: Path, folder: Path, longest: int) -> None:
        command = [python, Path(__file__).with_name("trl_peer.py"), folder / "model", folder / "prompts.json"]
        self.process = subprocess.Popen(
            [*map(str, command), "64", str(longest)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.tokens, self.versions = 0, ""

    def __enter__(self) -> Trl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def step(self) -> float:
        """Its CPU seconds for one step."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                self.tokens, self.versions = found["tokens"], found["versions"]
                return float(found["seconds"])
        raise RuntimeError("TRL ended; run benchmarks/trl_peer.py by hand to see why")


def rows(trl: Path | None, folder: Path) -> Iterator[Callable[[], Row]]:
    """Each row, to be made when it is called; those against TRL if `trl`, the Python of its environment, is there."""

    def datpo() -> Row:
        it = DatpoStep()
        return compared(
            "whole DATPO step, 16 (4,3,4) trees, tiny",
            "the naive parts composed (released way)",
            cpu(it.ours),
            cpu(it.theirs),
            1.8,
            5,
        )

    def grpo(longest: int, least: float) -> Row:
        inside = folder / str(longest)
        inside.mkdir()
        it, name = GrpoStep(inside, longest), f"whole GRPO step, 16 x 16 samples of at most {longest} tokens, tiny"
        with Trl(trl, inside, longest) as theirs:
            row = compared(name, "TRL's GRPOTrainer", cpu(it.ours), theirs.step, least, 5)
        print(f"  tokens of the last step: {it.tokens:,} (ours), {theirs.tokens:,} (TRL)")
        positions = 256 * (PROMPT + longest) / (256 * PROMPT + it.tokens)
        print(f"  padded to the limit, TRL runs through {positions:.2f} times the positions")
        return replace(row, peer=theirs.versions)

    yield datpo
    if trl is not None:
        yield lambda: grpo(192, 2.5)
        yield lambda: grpo(64, 0)  # the scale's own limit, where little is padded
