"""Growing the trees of one step: base rollouts, then forks, each phase one batch of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datpo.core.engine import Continuation, Engine, Request
from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.seeds import generator, seed
from datpo.core.tree import Branch, Floats, Ints, RolloutTree
from datpo.methods.base import Method
from datpo.search.budget import Progress
from datpo.search.forks import no_forks

Grade = Callable[[Sequence[tuple[RolloutTree, int]]], list[tuple[float, str]]]  # leaves -> (reward, verdict)
Signal = Callable[[Branch], Floats]
Name = tuple[str, int, int]  # what a tree's draws are named by: problem id, which of its occurrences, step


@dataclass(frozen=True)
class Origin:
    """Where a branch is to start: a branch to fork (None: the prompt) and the position there."""

    parent: int | None
    at: int


@dataclass(frozen=True)
class Rollouts:
    """How the trees of a step are grown.

    Attributes:
        engine: the policy as a sampler.
        grade: gives reward and verdict of leaves, judging the whole response, prefix and branch together.
        signals: further per-token signals by name, computed if the method's fork rule asks for them.
        max_new_tokens: limit of new tokens of every branch, whatever the length of its prefix.
        context_window: prompt, prefix and branch together never exceed it; the branch gives way.
    """

    engine: Engine
    grade: Grade
    signals: Mapping[str, Signal]
    max_new_tokens: int
    context_window: int

    def grow(
        self, method: Method, problems: Sequence[tuple[Problem, Ints]], progress: Progress, base_seed: int
    ) -> list[RolloutTree]:
        """One graded tree for each problem and its prompt tokens.

        Every draw is seeded by (base seed, step, problem id, branch) and, for a problem that stands in the batch
        twice, by which of the two it is; so a problem's tree does not depend on the other problems.
        """
        trees = [RolloutTree(problem, prompt) for problem, prompt in problems]
        names = [(*place, progress.step) for place in _occurrences(problems)]
        origins = [[Origin(None, 0)] * method.roots for _ in trees]
        forked = method.forks is not no_forks
        trees, handles = self._extend(method, trees, origins, [[] for _ in trees], names, base_seed, keep=forked)
        origins = [
            self._fork_points(method, tree, name, progress, base_seed) for tree, name in zip(trees, names, strict=True)
        ]
        trees, _ = self._extend(method, trees, origins, handles, names, base_seed, keep=False)
        self.engine.forget()
        return trees

    def _fork_points(
        self, method: Method, tree: RolloutTree, name: Name, progress: Progress, base_seed: int
    ) -> list[Origin]:
        plan = method.budget(tree, progress)
        if not plan.forks or not plan.siblings:
            return []
        rng = generator(base_seed, "forks", *name)
        forks = method.forks(tree, plan, rng)
        return [Origin(fork.branch, fork.at) for fork in forks for _ in range(fork.siblings)]

    def _extend(
        self,
        method: Method,
        trees: Sequence[RolloutTree],
        origins: Sequence[Sequence[Origin]],
        handles: Sequence[Sequence[int]],
        names: Sequence[Name],
        base_seed: int,
        keep: bool,
    ) -> tuple[list[RolloutTree], list[list[int]]]:
        """Sample a branch for every origin of every tree in one batch, and grade the new leaves in another."""
        requests = [
            self._request(tree, origin, handles[t], seed(base_seed, "rollout", *names[t], b))
            for t, tree in enumerate(trees)
            for b, origin in enumerate(origins[t], start=len(tree.branches))
        ]
        sampled = iter(self.engine.sample(requests, keep=keep))
        grown, new_handles = [], []
        for tree, starts in zip(trees, origins, strict=True):
            continuations = [next(sampled) for _ in starts]
            new = [self._branch(method, *pair) for pair in zip(starts, continuations, strict=True)]
            grown.append(tree.grow(new))
            new_handles.append([continuation.handle for continuation in continuations])
        return self._graded(grown, [len(starts) for starts in origins]), new_handles

    def _request(self, tree: RolloutTree, origin: Origin, handles: Sequence[int], draw: int) -> Request:
        context = tree.prompt
        if origin.parent is not None:
            context = np.concatenate([tree.prompt, tree.prefix(origin.parent, origin.at)])
        room = self.context_window - len(context)
        if room < 1:
            raise InputError(
                f"problem {tree.problem.id}: {len(context)} tokens of context leave no room for an answer in a "
                f"window of {self.context_window}; lower prompt.max_tokens or max_new_tokens"
            )
        return Request(
            context=context,
            seed=draw,
            max_new_tokens=min(self.max_new_tokens, room),
            source=None if origin.parent is None else handles[origin.parent],
        )

    def _branch(self, method: Method, origin: Origin, continuation: Continuation) -> Branch:
        branch = Branch(
            parent=origin.parent,
            start=origin.at,
            tokens=continuation.tokens,
            logprobs=continuation.logprobs,
            finish=continuation.finish,
            signals={"entropy": continuation.entropies},
        )
        if origin.parent is not None:  # only base trajectories are forked
            return branch
        more = {name: self.signals[name](branch) for name in method.signals}
        return replace(branch, signals={**branch.signals, **more})

    def _graded(self, trees: Sequence[RolloutTree], new: Sequence[int]) -> list[RolloutTree]:
        leaves = [
            (tree, leaf)
            for tree, count in zip(trees, new, strict=True)
            for leaf in range(len(tree.branches) - count, len(tree.branches))
        ]
        verdicts = iter(self.grade(leaves))
        graded = []
        for tree, count in zip(trees, new, strict=True):
            mine = [next(verdicts) for _ in range(count)]
            graded.append(tree.graded([reward for reward, _ in mine], [verdict for _, verdict in mine]))
        return graded


def _occurrences(problems: Sequence[tuple[Problem, Ints]]) -> list[tuple[str, int]]:
    """For each problem of a batch, its id and how often it came before: small sets may repeat within a step."""
    seen: Counter[str] = Counter()
    places = []
    for problem, _ in problems:
        places.append((problem.id, seen[problem.id]))
        seen[problem.id] += 1
    return places
