"""The rollout tree: an append-only table of branches, from which blocks are derived.

A *branch* is one sampled continuation, from its fork point to its end. Every branch runs to an end, so a branch
is a leaf: n branches are n leaves with n rewards. A *block* is the run of tokens of a branch between two
neighbouring fork points; all its tokens have the same leaves below them, so whatever is built from leaf rewards
is constant on a block.

Positions count response tokens from 0 and are half-open. A fork *at* position `a` keeps the first `a` tokens of
the response; its branches and the base continuation all start at `a`.

Suffixes: T tokens of a branch, B blocks, L leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from datpo.core.problem import Problem

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Branch:
    """One sampled continuation of a response.

    Attributes:
        parent: index of the branch it forked from; None starts at the prompt.
        start: fork point, the position of its first own token in the response.
        tokens: its own new tokens (T,), the end token included if it was sampled.
        logprobs: their log-probabilities (T,) under the policy that sampled them.
        signals: per-token numbers (T,) a fork rule reads, e.g. "entropy" in nats.
        finish: "stop" if an end token was sampled, "length" if the token limit was hit.
        reward: what the verifier gave the leaf it ends in; None until graded.
        verdict: the verifier's word for it; None until graded.
    """

    parent: int | None
    start: int
    tokens: Ints
    logprobs: Floats
    finish: Finish
    signals: Mapping[str, Floats] = field(default_factory=dict)
    reward: float | None = None
    verdict: str | None = None

    @property
    def stop(self) -> int:
        """The position after its last token: the length of the response it completes."""
        return self.start + len(self.tokens)


@dataclass(frozen=True)
class Block:
    """A maximal run of tokens without a fork point inside.

    Attributes:
        branch: the branch its tokens stand in.
        start, stop: response positions, half-open.
        parent: index of the block that ends where this one starts; None at the root.
        leaves: the branches (leaves) below it, ascending.
        terminal: whether it ends in a leaf.
    """

    branch: int
    start: int
    stop: int
    parent: int | None
    leaves: tuple[int, ...]
    terminal: bool

    def __len__(self) -> int:
        """Tokens in the block."""
        return self.stop - self.start


@dataclass(frozen=True)
class Fork:
    """A plan to sample `siblings` new branches from position `at` of branch `branch`."""

    branch: int
    at: int
    siblings: int


@dataclass(frozen=True)
class RolloutTree:
    """A problem and the branches sampled for it; growing returns a new tree.

    GRPO's group of samples is a tree whose branches all start at the prompt.
    """

    problem: Problem
    prompt: Ints
    branches: tuple[Branch, ...] = ()

    def grow(self, new: Sequence[Branch]) -> RolloutTree:
        """The tree with more branches.

        A fork at the very start of a branch is a fork of that branch's parent, and is recorded as one.

        Raises:
            ValueError: a branch is empty, or its fork point does not lie inside its parent.
        """
        grown = list(self.branches)
        for branch in new:
            grown.append(_attached(branch, grown))
        return replace(self, branches=tuple(grown))

    def graded(self, rewards: Sequence[float], verdicts: Sequence[str]) -> RolloutTree:
        """The tree with the rewards (and verdicts) of its last `len(rewards)` branches filled in."""
        kept = len(self.branches) - len(rewards)
        graded = [
            replace(branch, reward=float(reward), verdict=verdict)
            for branch, reward, verdict in zip(self.branches[kept:], rewards, verdicts, strict=True)
        ]
        return replace(self, branches=self.branches[:kept] + tuple(graded))

    def without_end_tokens(self) -> RolloutTree:
        """The tree without the token that ended a branch; a branch of that token alone stays as it is."""
        cut = [
            replace(branch, tokens=branch.tokens[:-1], logprobs=branch.logprobs[:-1], signals={})
            if branch.finish == "stop" and len(branch.tokens) > 1
            else branch
            for branch in self.branches
        ]
        return replace(self, branches=tuple(cut))

    @property
    def rewards_L(self) -> Floats:
        """The reward of every leaf (L,).

        Raises:
            ValueError: a leaf has not been graded.
        """
        rewards = [branch.reward for branch in self.branches]
        if any(reward is None for reward in rewards):
            raise ValueError(f"problem {self.problem.id}: a leaf has no reward yet")
        return np.array(rewards, dtype=float)

    @property
    def roots(self) -> tuple[int, ...]:
        """The branches that start at the prompt."""
        return tuple(i for i, branch in enumerate(self.branches) if branch.parent is None)

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled for this problem, a shared prefix counted once (paper Table 8)."""
        return sum(len(branch.tokens) for branch in self.branches)

    def response(self, leaf: int) -> Ints:
        """All response tokens on the path from the prompt to the end of branch `leaf`."""
        branch = self.branches[leaf]
        return np.concatenate([self.prefix(leaf, branch.start), branch.tokens])

    def prefix(self, branch: int, at: int) -> Ints:
        """The first `at` response tokens on the path of `branch`."""
        parts: list[Ints] = []
        here: int | None = branch
        while here is not None:
            owner = self.branches[here]
            parts.append(owner.tokens[: max(0, at - owner.start)])
            at, here = min(at, owner.start), owner.parent
        return np.concatenate(parts[::-1])

    def block_tokens(self, block: Block) -> Ints:
        """The tokens of a block."""
        branch = self.branches[block.branch]
        return branch.tokens[block.start - branch.start : block.stop - branch.start]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, branch by branch, each branch from its start to its end."""
        return tuple(_derive_blocks(self.branches))

    @cached_property
    def siblings(self) -> tuple[tuple[int, ...], ...]:
        """For each fork point the blocks that start there: the base continuation and the branches."""
        groups: dict[int, list[int]] = {}
        for index, block in enumerate(self.blocks):
            if block.parent is not None:
                groups.setdefault(block.parent, []).append(index)
        return tuple(tuple(group) for group in groups.values())

    def path(self, leaf: int) -> tuple[int, ...]:
        """The blocks from the root to the end of branch `leaf`."""
        here: int | None = self._terminal_block[leaf]
        blocks: list[int] = []
        while here is not None:
            blocks.append(here)
            here = self.blocks[here].parent
        return tuple(blocks[::-1])

    @cached_property
    def _terminal_block(self) -> dict[int, int]:
        return {block.branch: index for index, block in enumerate(self.blocks) if block.terminal}


def _attached(branch: Branch, branches: Sequence[Branch]) -> Branch:
    """`branch` with the parent its fork point really lies inside."""
    if not len(branch.tokens):
        raise ValueError("a branch needs at least one token")
    parent = branch.parent
    while parent is not None and branch.start == branches[parent].start:
        parent = branches[parent].parent
    if parent is None:
        if branch.start != 0:
            raise ValueError(f"a root branch starts at position 0, not {branch.start}")
    elif not branches[parent].start < branch.start < branches[parent].stop:
        inside = f"({branches[parent].start}, {branches[parent].stop})"
        raise ValueError(f"fork point {branch.start} does not lie inside branch {parent}, {inside}")
    return replace(branch, parent=parent)


def _derive_blocks(branches: Sequence[Branch]) -> list[Block]:
    """Cut every branch at the fork points that lie on it, and link each block to the one it continues."""
    children: dict[int, list[int]] = {}
    for index, branch in enumerate(branches):
        if branch.parent is not None:
            children.setdefault(branch.parent, []).append(index)

    below: dict[int, list[int]] = {}  # branch -> the leaves in its subtree; children come after their parents
    for index in reversed(range(len(branches))):
        below[index] = sorted([index, *(leaf for child in children.get(index, ()) for leaf in below[child])])

    blocks: list[Block] = []
    ends_at: dict[tuple[int, int], int] = {}  # (branch, position) -> the block that ends there
    for index, branch in enumerate(branches):
        forks = children.get(index, ())
        cuts = sorted({branches[child].start for child in forks})
        parent = None if branch.parent is None else ends_at[branch.parent, branch.start]
        for start, stop in zip([branch.start, *cuts], [*cuts, branch.stop], strict=True):
            later = [leaf for child in forks if branches[child].start >= stop for leaf in below[child]]
            leaves = tuple(sorted([index, *later]))
            blocks.append(Block(index, start, stop, parent, leaves, terminal=stop == branch.stop))
            parent = ends_at[index, stop] = len(blocks) - 1
    return blocks
