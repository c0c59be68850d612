"""What one training step consists of, counted on made-up trees that go through the very code that fills mini-batches.

A method says how trees grow (`roots`, `budget`, `rounds`), which of their blocks or paths are trained and how credit
falls; lengths, places of forks and rewards are drawn. So a new method, or other numbers of an old one, need nothing
here. With what is assumed of these, the tokens that a question takes come out within 10 % of every row of the paper's
Tables 8 and 14 (tests/unit/test_plan_step.py):

* Problems are solved in shares that lie evenly between never and always, or in a power of these with another mean.
* `LAST_FORK`: forks lie evenly over the first 82 % of a rollout, so a branch has 59 % of a rollout's tokens.
* `SPREAD`: a rollout is from half to one and a half times as long as the mean.
* The mean length itself is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from datpo.core.problem import Problem
from datpo.core.tree import Branch, RolloutTree
from datpo.learn.minibatch import Grouping, credited, gather, split, units_of
from datpo.learn.pack import Pack, packs
from datpo.methods.base import Method
from datpo.search.budget import Plan, Progress

LAST_FORK = 0.82
SPREAD = 0.5
STEP = 10  # tokens of a step of reasoning; that there are several is what matters


@dataclass(frozen=True)
class Shape:
    """What trees are made of, and how a step of them is trained.

    Attributes:
        prompt: tokens of a prompt.
        length: mean tokens of a base rollout.
        problems: of a step, as configured.
        solved: mean share of base rollouts that are right, above 0 and below 1.
        epochs, minibatch, minibatch_size, token_budget, max_new_tokens: as in the settings of a training.
    """

    prompt: int
    length: float
    problems: int
    solved: float
    epochs: int
    minibatch: Grouping
    minibatch_size: int
    token_budget: int
    max_new_tokens: int


@dataclass(frozen=True)
class StepWork:
    """A mean step's work.

    Attributes:
        questions: problems of a step.
        roots: base rollouts of a question.
        leaves, generated: rollouts and new tokens of a question.
        sampled_attended: pairs of a new token and one that it looks at, of a question.
        updates: optimiser steps of a step.
        trained: tokens in its losses, as the training log counts them.
        packed: tokens that run through the model in its updates, prompts and prefixes included.
        scored: of these, those with a loss.
        attended: pairs of a packed token and one that it looks at.
        widest: new rollouts of a step that start at a fork, if none of its problems were solved.
    """

    questions: float
    roots: float
    leaves: float
    generated: float
    sampled_attended: float
    updates: float
    trained: float
    packed: float
    scored: float
    attended: float
    widest: float

    def of(self, questions: float) -> StepWork:
        """The same for a step of so many problems."""
        times = questions / self.questions
        of_steps = ("questions", "updates", "trained", "packed", "scored", "attended", "widest")
        return replace(self, **{name: getattr(self, name) * times for name in of_steps})


def mean_problems(method: Method, shape: Shape, steps: int) -> float:
    """The mean number of problems of so many steps, which a method may adapt to what is left to train."""
    trees = made_trees(method, shape, solved_shares(shape.problems, shape.solved), np.random.default_rng(0))
    planted = [shape.problems]
    for _ in range(1, steps):
        planted.append(method.prompts(trees, planted[-1], shape.problems))
    return float(np.mean(planted))


def made_step(method: Method, shape: Shape, steps: int = 2) -> StepWork:
    """The mean of some made-up steps; equal arguments give equal numbers."""
    rng = np.random.default_rng(0)
    made = [_step(method, shape, rng) for _ in range(steps)]
    return StepWork(*np.mean(made, axis=0).tolist())


def _step(method: Method, shape: Shape, rng: np.random.Generator) -> list[float]:
    trees = made_trees(method, shape, solved_shares(shape.problems, shape.solved), rng)
    hard = made_trees(method, shape, [0.0] * len(trees), rng)
    credits = [credited(method, tree, Progress(), np.zeros(len(tree.blocks))) for tree in trees]
    trained, laid_out, batches = 0.0, list[Pack](), 0
    for chosen in split(units_of(credits), shape.minibatch_size, shape.minibatch, rng):
        batch = gather(method, credits, chosen, shape.max_new_tokens)
        laid_out += packs(batch.shares, shape.token_budget)
        trained += batch.trained_tokens
        batches += 1
    return [
        shape.problems,
        method.roots,
        float(np.mean([len(tree.branches) for tree in trees])),
        float(np.mean([tree.generated_tokens for tree in trees])),
        float(np.mean([_sampled_attended(tree) for tree in trees])),
        batches * shape.epochs,
        trained * shape.epochs,
        sum(len(pack.token_T) for pack in laid_out) * shape.epochs,
        sum(len(pack.scored_S) for pack in laid_out) * shape.epochs,
        sum(_attended(pack) for pack in laid_out) * shape.epochs,
        sum(len(tree.branches) - len(tree.roots) for tree in hard),
    ]


def solved_shares(count: int, mean: float = 0.5) -> list[float]:
    """Shares in which problems are solved, with this mean: evenly from never to always, or a power of that."""
    return [((number + 0.5) / count) ** (1 / mean - 1) for number in range(count)]


def made_trees(method: Method, shape: Shape, solved: Sequence[float], rng: np.random.Generator) -> list[RolloutTree]:
    """A tree as the method grows it for each share in which a problem is solved."""
    trees = []
    for number, share in enumerate(solved):
        seedling = RolloutTree(Problem(f"made-{number}", "", ""), np.zeros(shape.prompt, dtype=np.int64))
        trees.append(seedling.grow([_branch(None, 0, shape.length, share, rng) for _ in range(method.roots)]))
    progress = Progress(statistics=method.remember(trees, {}))
    for _ in range(method.rounds):
        trees = [
            _forked(tree, method.budget(tree, progress, rng), shape.length, share, rng)
            for tree, share in zip(trees, solved, strict=True)
        ]
    return trees


def _forked(tree: RolloutTree, plan: Plan, mean: float, solved: float, rng: np.random.Generator) -> RolloutTree:
    places = _fork_points(tree, plan, rng)
    return tree.grow([_branch(*place, mean, solved, rng) for place in places for _ in range(plan.siblings)])


def _fork_points(tree: RolloutTree, plan: Plan, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Forks of a tree, each a branch and a position inside it: so many below every base rollout of the plan."""
    places: list[tuple[int, int]] = []
    for base in tree.roots if plan.bases is None else plan.bases:
        family = _family(tree, base)
        for _ in range(plan.forks):
            owner = int(rng.choice(family))
            branch = tree.branches[owner]
            if len(branch.tokens) > 1:
                last = max(1, min(len(branch.tokens) - 1, round(LAST_FORK * len(branch.tokens))))
                places.append((owner, branch.start + int(rng.integers(1, last + 1))))
    return places


def _family(tree: RolloutTree, base: int) -> list[int]:
    """A base rollout and all branches below it."""
    family = [base]
    for index, branch in enumerate(tree.branches):
        if branch.parent in family:
            family.append(index)
    return family


def _branch(parent: int | None, at: int, mean: float, solved: float, rng: np.random.Generator) -> Branch:
    whole = rng.uniform(1 - SPREAD, 1 + SPREAD) * mean
    tokens = max(1, round(whole) - at)
    signals = {"step": np.arange(tokens) // STEP, "influence": np.full(tokens, rng.random())}
    reward = float(rng.random() < solved)
    return Branch(parent, at, np.zeros(tokens, dtype=np.int64), np.zeros(tokens), "stop", signals, reward, "made")


def _sampled_attended(tree: RolloutTree) -> float:
    """Each new token looks at the prompt and all before it on its path."""
    prompt = len(tree.prompt)
    return sum(len(b.tokens) * (prompt + (b.start + b.stop) / 2) for b in tree.branches)


def _attended(pack: Pack) -> float:
    """Each query of a chain looks at the keys up to itself."""
    return sum(len(c.query) * (len(c.key) - len(c.query) / 2) for c in pack.chains)
