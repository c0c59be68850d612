"""Mini-batches: which units (blocks or leaf paths) an optimiser step trains, and what they weigh.

With A the advantage of a unit's tokens, every token is given pull = w max(A, 0) and push = w max(-A, 0), where w
is 1 for a token mean, 1 / (tokens of the unit) for a sequence mean and 1 / max_length for Dr.GRPO's constant.
Summing them over the units that share a token is exact, since min(rA, clip(r)A) = A+ min(r, 1 + hi) - A- max(r,
1 - lo) is linear in A+ and A-. The loss divides by the normaliser: tokens of the mini-batch, a shared one counted
once per unit, or its units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.learn.pack import Share
from datpo.methods.base import Method

Grouping = Literal["units", "trees"]


@dataclass(frozen=True)
class CreditedTree:
    """A graded tree and what a method says about it: advantages per block (B,) or per leaf and block (L, B)."""

    tree: RolloutTree
    advantages: Floats


@dataclass(frozen=True)
class Unit:
    """What is trained once: a block, or the path to a leaf, of one of the step's trees."""

    tree: int
    index: int


@dataclass(frozen=True)
class MiniBatch:
    """Shares of trees and the normaliser of their summed loss."""

    shares: tuple[Share, ...]
    normaliser: float
    trained_tokens: int


def units_of(method: Method, trees: Sequence[CreditedTree]) -> list[Unit]:
    """Everything a step trains once, tree by tree."""
    return [
        Unit(t, index)
        for t, credited in enumerate(trees)
        for index in range(len(credited.tree.blocks) if method.unit == "blocks" else len(credited.tree.branches))
    ]


def split(units: Sequence[Unit], size: int, grouping: Grouping, rng: np.random.Generator) -> list[list[Unit]]:
    """Shuffle units into mini-batches: `size` random units each, or whole trees up to about `size` units.

    Both give ceil(units / size) mini-batches, the last of units the smaller; whole trees are spread so that the
    mini-batches hold about equally many units.
    """
    count = -(-len(units) // size)
    if grouping == "units":
        order = rng.permutation(len(units))
        return [[units[i] for i in order[start : start + size]] for start in range(0, len(units), size)]
    by_tree: dict[int, list[Unit]] = {}
    for unit in units:
        by_tree.setdefault(unit.tree, []).append(unit)
    batches: list[list[Unit]] = [[] for _ in range(min(count, len(by_tree)))]
    shuffled = [list(by_tree)[i] for i in rng.permutation(len(by_tree))]
    for tree in sorted(shuffled, key=lambda t: -len(by_tree[t])):
        min(batches, key=len).extend(by_tree[tree])
    return [batches[i] for i in rng.permutation(len(batches))]


def gather(method: Method, trees: Sequence[CreditedTree], units: Sequence[Unit]) -> MiniBatch:
    """Sum the weights of a mini-batch's units per block."""
    chosen: dict[int, list[int]] = {}
    for unit in units:
        chosen.setdefault(unit.tree, []).append(unit.index)
    shares, tokens = [], 0
    for t, indices in sorted(chosen.items()):
        share, counted = _share(method, trees[t], indices)
        tokens += counted
        if share.scored:
            shares.append(share)
    normaliser = tokens if method.aggregate == "token_mean" else len(units)
    return MiniBatch(tuple(shares), float(normaliser), tokens)


def _share(method: Method, credited: CreditedTree, indices: Sequence[int]) -> tuple[Share, int]:
    tree, advantages = credited.tree, credited.advantages
    if method.unit == "blocks" and advantages.ndim != 1:
        raise ValueError("a method that trains blocks must give one advantage per block, not one per leaf and block")
    pull_B, push_B = np.zeros(len(tree.blocks)), np.zeros(len(tree.blocks))
    tokens = 0
    for index in indices:
        path = [index] if method.unit == "blocks" else list(tree.path(index))
        length = sum(len(tree.blocks[block]) for block in path)
        weight = {"token_mean": 1.0, "sequence_mean": 1.0 / length}.get(
            method.aggregate, 1.0 / max(1, method.max_length)
        )
        advantage = advantages[path] if advantages.ndim == 1 else advantages[index, path]
        pull_B[path] += weight * np.maximum(advantage, 0.0)
        push_B[path] += weight * np.maximum(-advantage, 0.0)
        tokens += length
    return Share(tree, pull_B, push_B), tokens
