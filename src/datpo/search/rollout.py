"""Growing the trees of a step: base rollouts, then forks, each round one batch of requests.

Base rollouts are *planted* and may wait to be forked: in a one-step off-policy pipeline (AttnRL) those of the next
step are sampled in the same batch as the branches of this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from datpo.core.engine import Continuation, Engine, Request
from datpo.core.errors import InputError
from datpo.core.seeds import generator, seed
from datpo.core.tree import Branch, Floats, RolloutTree
from datpo.methods.base import Method
from datpo.search.budget import Progress
from datpo.search.forks import NO_FORKS

Leaf = tuple[RolloutTree, int]  # a tree and one of its branches
Grade = Callable[[Sequence[Leaf]], list[tuple[float, str]]]  # leaves -> (reward, verdict)
Signal = Callable[[Sequence[Leaf]], list[Floats]]  # leaves -> a number for each of their own tokens
Name = tuple[str, int, int]  # problem id, which of its occurrences in the step, step


@dataclass(frozen=True)
class Origin:
    """Where a branch is to start: a branch to fork (None: the prompt) and the position there."""

    parent: int | None
    at: int


@dataclass(frozen=True)
class Growing:
    """A tree under way.

    Attributes:
        tree: what has been sampled and graded so far.
        name: what its draws are named by.
        handles: its branches' cached keys and values, None where a branch has none; empty if no branch has.
    """

    tree: RolloutTree
    name: Name
    handles: tuple[int | None, ...] = ()


def under_way(trees: Sequence[RolloutTree], step: int) -> list[Growing]:
    """The trees of a step with the names of their draws; a small set may give a problem twice in one step."""
    seen: Counter[str] = Counter()
    named = []
    for tree in trees:
        named.append(Growing(tree, (tree.problem.id, seen[tree.problem.id], step)))
        seen[tree.problem.id] += 1
    return named


@dataclass(frozen=True)
class Rollouts:
    """How the trees of a step are grown.

    Every draw is seeded by (base seed, step, problem id, branch), so a problem's tree does not depend on the other
    problems of its step.

    Attributes:
        engine: the policy as a sampler.
        grade: gives reward and verdict of leaves.
        signals: further per-token signals by name, computed if the method's fork rule asks for them.
        max_new_tokens: the most tokens of every branch, or of every path with its prefix, as `limit` says.
        context_window: prompt, prefix and branch together never exceed it; the branch gives way.
    """

    engine: Engine
    grade: Grade
    signals: Mapping[str, Signal]
    max_new_tokens: int
    context_window: int
    limit: Literal["branch", "path"] = "branch"

    def plant(self, method: Method, step: Sequence[Growing], base_seed: int) -> list[Growing]:
        """The step's trees with their base rollouts."""
        origins = [_base_rollouts(method) for _ in step]
        return self._extend(method, step, origins, base_seed, forked=method.forks is not NO_FORKS)

    def fork(
        self,
        method: Method,
        step: Sequence[Growing],
        progress: Progress,
        base_seed: int,
        following: Sequence[Growing] = (),
    ) -> tuple[list[RolloutTree], list[Growing]]:
        """The finished trees of a step; and, planted in the same batch, the trees that follow."""
        count = len(step)
        trees = [*step, *following]
        for round_ in range(method.rounds):
            origins = [self._fork_points(method, tree, progress, base_seed, round_) for tree in trees[:count]]
            planted = [[] if round_ else _base_rollouts(method) for _ in following]
            trees = self._extend(method, trees, [*origins, *planted], base_seed, forked=round_ + 1 < method.rounds)
        self.engine.forget()
        # nothing is kept of the last round: the policy is updated before what follows is forked
        return [done.tree for done in trees[:count]], trees[count:]

    def _fork_points(
        self, method: Method, growing: Growing, progress: Progress, base_seed: int, round_: int
    ) -> list[Origin]:
        plan = method.budget(growing.tree, progress, generator(base_seed, "budget", *growing.name))
        if not plan.forks or not plan.siblings:
            return []
        forks = method.forks.choose(growing.tree, plan, generator(base_seed, "forks", *growing.name, round_))
        return [Origin(fork.branch, fork.at) for fork in forks for _ in range(fork.siblings)]

    def _extend(
        self,
        method: Method,
        trees: Sequence[Growing],
        origins: Sequence[Sequence[Origin]],
        base_seed: int,
        forked: bool,
    ) -> list[Growing]:
        """Sample a branch for every origin of every tree in one batch, and grade the new leaves in another.

        With `forked` the new branches will be forked themselves: their keys and values are kept.
        """
        requests = [
            self._request(growing, origin, seed(base_seed, "rollout", *growing.name, b))
            for growing, starts in zip(trees, origins, strict=True)
            for b, origin in enumerate(starts, start=len(growing.tree.branches))
        ]
        sampled = iter(self.engine.sample(requests, keep=forked))
        grown = []
        for growing, starts in zip(trees, origins, strict=True):
            new = [next(sampled) for _ in starts]
            branches = [_branch(*pair) for pair in zip(starts, new, strict=True)]
            older = growing.handles or (None,) * len(growing.tree.branches)
            handles = (*older, *(continuation.handle for continuation in new)) if forked else ()
            grown.append(replace(growing, tree=growing.tree.grow(branches), handles=handles))
        counts = [len(starts) for starts in origins]
        return self._signalled(method, self._graded(grown, counts), counts, forked)

    def _request(self, growing: Growing, origin: Origin, draw: int) -> Request:
        tree, context, source = growing.tree, growing.tree.prompt, None
        if origin.parent is not None:
            context = np.concatenate([tree.prompt, tree.prefix(origin.parent, origin.at)])
            source = growing.handles[origin.parent] if growing.handles else None
        room = self.context_window - len(context)
        if room < 1:
            raise InputError(
                f"problem {tree.problem.id}: {len(context)} tokens of context leave no room for an answer in a "
                f"window of {self.context_window}; lower prompt.max_tokens or max_new_tokens"
            )
        longest = self.max_new_tokens - (origin.at if self.limit == "path" else 0)
        return Request(context=context, seed=draw, max_new_tokens=min(longest, room), source=source)

    def _graded(self, trees: Sequence[Growing], counts: Sequence[int]) -> list[Growing]:
        verdicts = iter(self.grade(_newest(trees, counts)))
        graded = []
        for growing, count in zip(trees, counts, strict=True):
            mine = [next(verdicts) for _ in range(count)]
            tree = growing.tree.graded([reward for reward, _ in mine], [verdict for _, verdict in mine])
            graded.append(replace(growing, tree=tree))
        return graded

    def _signalled(
        self, method: Method, trees: Sequence[Growing], counts: Sequence[int], forked: bool
    ) -> list[Growing]:
        """Add the signals that the fork rule reads to the new branches it may look at."""
        leaves = [(tree, b) for tree, b in _newest(trees, counts) if forked or tree.branches[b].parent is None]
        found: dict[tuple[int, int], dict[str, Floats]] = {(id(tree), b): {} for tree, b in leaves}
        for name in method.forks.signals if leaves else ():
            for (tree, b), signal in zip(leaves, self.signals[name](leaves), strict=True):
                found[id(tree), b][name] = signal
        return [replace(growing, tree=_with_signals(growing.tree, found)) for growing in trees]


def _base_rollouts(method: Method) -> list[Origin]:
    return [Origin(None, 0)] * method.roots


def _newest(trees: Sequence[Growing], counts: Sequence[int]) -> list[Leaf]:
    """The last `counts` branches of each tree."""
    return [
        (growing.tree, b)
        for growing, count in zip(trees, counts, strict=True)
        for b in range(len(growing.tree.branches) - count, len(growing.tree.branches))
    ]


def _with_signals(tree: RolloutTree, found: Mapping[tuple[int, int], Mapping[str, Floats]]) -> RolloutTree:
    branches = [
        replace(branch, signals={**branch.signals, **found.get((id(tree), b), {})})
        for b, branch in enumerate(tree.branches)
    ]
    return replace(tree, branches=tuple(branches))


def _branch(origin: Origin, continuation: Continuation) -> Branch:
    return Branch(
        parent=origin.parent,
        start=origin.at,
        tokens=continuation.tokens,
        logprobs=continuation.logprobs,
        finish=continuation.finish,
        signals={"entropy": continuation.entropies},
    )
