"""Mini-batches: which units (blocks or leaf paths) an optimiser step trains, and what they weigh.

With A the advantage of a unit's tokens, every token is given pull = w max(A, 0) and push = w max(-A, 0), where w
depends on how losses are averaged:

    aggregate       w                        normaliser, summed over the units
    token_mean      1                        tokens of the unit
    sequence_mean   1 / tokens of the unit   1
    tree_mean       1 / tokens of the tree   tokens of the unit / tokens of the tree
    constant        1 / longest response     1

Summing pull and push over the units that share a token is exact, since min(rA, clip(r)A) = A+ min(r, 1 + hi) -
A- max(r, 1 - lo) is linear in A+ and A-. The loss divides by the normaliser. "Tokens" count a shared one once for
each unit, and only units that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from datpo.core.tree import Floats, RolloutTree
from datpo.learn.pack import Share
from datpo.methods.base import Method
from datpo.search.budget import Progress

Grouping = Literal["units", "trees"]


@dataclass(frozen=True)
class CreditedTree:
    """A graded tree and what a method says about it.

    Attributes:
        tree: the tree.
        advantages: per block (B,), or per leaf and block (L, B).
        units: the blocks or leaves that are trained.
        tokens: of all these units together.
    """

    tree: RolloutTree
    advantages: Floats
    units: tuple[int, ...]
    tokens: int


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


def credited(
    method: Method, tree: RolloutTree, progress: Progress, diversity_B: Floats, end_tokens: bool = True
) -> CreditedTree:
    """What the method makes of a graded tree and its sibling diversity (B,); without `end_tokens` they are untrained.

    Raises:
        ValueError: a method that trains blocks gives one advantage per leaf and block.
    """
    advantages = method.credit(tree, progress, diversity_B)
    if method.unit == "blocks" and advantages.ndim != 1:
        raise ValueError("a method that trains blocks must give one advantage per block, not one per leaf and block")
    kept_L = method.keep(tree)
    if not end_tokens:
        kept_L = kept_L & [branch.finish != "stop" or len(branch.tokens) > 1 for branch in tree.branches]
        tree = tree.without_end_tokens()
    of_blocks = [i for i, block in enumerate(tree.blocks) if kept_L[block.branch]]
    units = of_blocks if method.unit == "blocks" else np.flatnonzero(kept_L).tolist()
    tokens = sum(len(tree.blocks[block]) for unit in units for block in _path(method, tree, unit))
    return CreditedTree(tree, advantages, tuple(units), tokens)


def units_of(trees: Sequence[CreditedTree]) -> list[Unit]:
    """Everything a step trains once, tree by tree."""
    return [Unit(t, index) for t, tree in enumerate(trees) for index in tree.units]


def split(units: Sequence[Unit], size: int, grouping: Grouping, rng: np.random.Generator) -> list[list[Unit]]:
    """Shuffle units into mini-batches: `size` random units each, or whole trees up to about `size` units.

    Both give ceil(units / size) mini-batches, though whole trees no more than there are trees. The last one of units
    is the smaller; whole trees are spread so that the mini-batches hold about equally many units.
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


def gather(method: Method, trees: Sequence[CreditedTree], units: Sequence[Unit], longest_response: int) -> MiniBatch:
    """Sum the weights of a mini-batch's units per block.

    `longest_response` is the most tokens a branch may have, the constant that `aggregate: constant` divides by.
    """
    chosen: dict[int, list[int]] = {}
    for unit in units:
        chosen.setdefault(unit.tree, []).append(unit.index)
    shares, normaliser, tokens = [], 0.0, 0
    for t, indices in sorted(chosen.items()):
        weights = [_weight(method, trees[t], index, longest_response) for index in indices]
        share = _share(method, trees[t], indices, [weight.of_token for weight in weights])
        normaliser += sum(weight.of_unit for weight in weights)
        tokens += sum(weight.tokens for weight in weights)
        if share.scored:
            shares.append(share)
    return MiniBatch(tuple(shares), normaliser, tokens)


@dataclass(frozen=True)
class _Weight:
    """What each token of a unit weighs, what the unit adds to the normaliser, and its tokens."""

    of_token: float
    of_unit: float
    tokens: int


def _weight(method: Method, credited: CreditedTree, index: int, longest_response: int) -> _Weight:
    length = sum(len(credited.tree.blocks[block]) for block in _path(method, credited.tree, index))
    match method.aggregate:
        case "token_mean":
            return _Weight(1.0, length, length)
        case "sequence_mean":
            return _Weight(1.0 / length, 1.0, length)
        case "tree_mean":
            return _Weight(1.0 / credited.tokens, length / credited.tokens, length)
        case "constant":
            return _Weight(1.0 / longest_response, 1.0, length)


def _share(method: Method, credited: CreditedTree, indices: Sequence[int], weights: Sequence[float]) -> Share:
    tree, advantages = credited.tree, credited.advantages
    pull_B, push_B = np.zeros(len(tree.blocks)), np.zeros(len(tree.blocks))
    for index, weight in zip(indices, weights, strict=True):
        path = _path(method, tree, index)
        advantage = advantages[path] if advantages.ndim == 1 else advantages[index, path]
        pull_B[path] += weight * np.maximum(advantage, 0.0)
        push_B[path] += weight * np.maximum(-advantage, 0.0)
    return Share(tree, pull_B, push_B)


def _path(method: Method, tree: RolloutTree, index: int) -> list[int]:
    """The blocks of a unit: itself, or all that lead to a leaf."""
    return [index] if method.unit == "blocks" else list(tree.path(index))
