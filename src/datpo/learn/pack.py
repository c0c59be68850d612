"""Packing: the blocks of trees laid out so that every token stands exactly once.

A *pack* holds pieces of one or more trees. A piece is a prompt and a set of blocks closed under ancestors, laid
out depth first, prompt first. Token q may look at token k iff k <= q < subtree_end[k]; the log-probability of a
token is read at its parent token. Blocks that are only ancestors come along with zero credit.

Suffixes: T tokens of a pack, S scored tokens, B blocks of a tree, L leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from datpo.core.tree import Floats, Ints, RolloutTree


@dataclass(frozen=True)
class Share:
    """What a mini-batch asks of one tree: non-negative weights per token of each block.

    pull_B = sum of A+ and push_B = sum of A- over the units of the mini-batch that contain the block.
    """

    tree: RolloutTree
    pull_B: Floats
    push_B: Floats

    @property
    def scored(self) -> list[int]:
        """The blocks that have a gradient."""
        return np.flatnonzero((self.pull_B > 0) | (self.push_B > 0)).tolist()


@dataclass(frozen=True)
class Piece:
    """A part of a tree that fits the token budget: blocks closed under ancestors, and those scored here."""

    share: Share
    blocks: tuple[int, ...]
    scored: frozenset[int]

    @property
    def size(self) -> int:
        """Tokens, prompt included."""
        tree = self.share.tree
        return len(tree.prompt) + sum(len(tree.blocks[block]) for block in self.blocks)


@dataclass(frozen=True)
class Chain:
    """Tokens that continue one path: `query` attends to the first tokens of `key`, each up to itself.

    `query` is the last part of `key`; both are indices into the pack.
    """

    query: Ints
    key: Ints


@dataclass(frozen=True)
class Pack:
    """A packed batch.

    Attributes:
        token_T, position_T, subtree_end_T: the tokens, their positions in their own paths, and the tree mask.
        chains: the same mask as runs of one path each.
        scored_S, parent_S: indices of the tokens that are trained, and of their parent tokens.
        logprob_S: log-probabilities under the policy that sampled them.
        pull_S, push_S: weights per token.
    """

    token_T: Ints
    position_T: Ints
    subtree_end_T: Ints
    chains: tuple[Chain, ...]
    scored_S: Ints
    parent_S: Ints
    logprob_S: Floats
    pull_S: Floats
    push_S: Floats


def packs(shares: Sequence[Share], token_budget: int, process: int = 0, processes: int = 1) -> list[Pack]:
    """Lay the scored blocks of a mini-batch out in packs of at most `token_budget` tokens.

    A tree over the budget is cut into pieces, the shared prefix repeated once per piece; a single path over the
    budget makes a pack of its own. Peak memory follows the budget, not the tree. Of several processes each gets the
    packs of its part of the pieces, which may be none.
    """
    cut = [piece for share in shares for piece in pieces(share, token_budget)]
    batches: list[list[Piece]] = []
    room = 0
    for piece in balanced(cut, processes)[process]:
        if piece.size > room:
            batches.append([])
            room = token_budget
        batches[-1].append(piece)
        room -= piece.size
    return [_lay_out(batch) for batch in batches]


def balanced(cut: Sequence[Piece], processes: int) -> list[list[Piece]]:
    """Pieces shared out so that all processes get about as many tokens: the largest first, to whom has the fewest."""
    load = [0] * processes
    owner = [0] * len(cut)
    for index in sorted(range(len(cut)), key=lambda i: -cut[i].size):
        owner[index] = load.index(min(load))
        load[owner[index]] += cut[index].size
    return [[piece for piece, own in zip(cut, owner, strict=True) if own == process] for process in range(processes)]


def pieces(share: Share, token_budget: int) -> Iterator[Piece]:
    """Cut a share into pieces within the budget; every scored block is scored in exactly one of them."""
    tree = share.tree
    wanted = set(share.scored)
    held: dict[int, None] = {}
    scored: list[int] = []
    size = len(tree.prompt)
    for block in depth_first(tree):
        if block not in wanted:
            continue
        line = _line(tree, block)
        more = sum(len(tree.blocks[b]) for b in line if b not in held)
        if scored and size + more > token_budget:
            yield Piece(share, tuple(held), frozenset(scored))
            held, scored, size = {}, [], len(tree.prompt)
            more = sum(len(tree.blocks[b]) for b in line)
        held.update(dict.fromkeys(line))
        scored.append(block)
        size += more
    if scored:
        yield Piece(share, tuple(held), frozenset(scored))


def depth_first(tree: RolloutTree) -> list[int]:
    """All blocks, each before the blocks below it, subtrees together."""
    children: dict[int | None, list[int]] = {}
    for index, block in enumerate(tree.blocks):
        children.setdefault(block.parent, []).append(index)
    order: list[int] = []
    stack = children.get(None, [])[::-1]
    while stack:
        block = stack.pop()
        order.append(block)
        stack += children.get(block, [])[::-1]
    return order


def _line(tree: RolloutTree, block: int) -> list[int]:
    """The block and its ancestors, root first."""
    line = [block]
    while (parent := tree.blocks[line[-1]].parent) is not None:
        line.append(parent)
    return line[::-1]


def _lay_out(batch: Sequence[Piece]) -> Pack:
    parts: list[dict[str, Ints | Floats]] = []
    chains: list[Chain] = []
    offset = 0
    for piece in batch:
        part, mine = _lay_out_piece(piece, offset)
        parts.append(part)
        chains += mine
        offset += piece.size
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Pack(chains=tuple(chains), **joined)  # type: ignore[arg-type]


def _lay_out_piece(piece: Piece, offset: int) -> tuple[dict[str, Ints | Floats], list[Chain]]:
    """One piece, its indices counted from `offset`. `piece.blocks` stand depth first already."""
    tree, share = piece.share.tree, piece.share
    prompt = len(tree.prompt)
    span: dict[int, Ints] = {}  # block -> indices of its tokens
    last: dict[int | None, int] = {None: offset + prompt - 1}  # block -> index of its last token
    cursor = offset + prompt
    for block in piece.blocks:
        span[block] = np.arange(cursor, cursor + len(tree.blocks[block]))
        cursor += len(tree.blocks[block])
        last[block] = cursor - 1

    end: dict[int, int] = {}  # block -> index after the last token below it
    for block in reversed(piece.blocks):
        end[block] = max(end.get(block, 0), last[block] + 1)
        parent = tree.blocks[block].parent
        if parent is not None:
            end[parent] = max(end.get(parent, 0), end[block])

    scored = [block for block in piece.blocks if block in piece.scored]
    lengths = [len(tree.blocks[block]) for block in piece.blocks]
    part: dict[str, Ints | Floats] = {
        "token_T": np.concatenate([tree.prompt, *(tree.block_tokens(tree.blocks[b]) for b in piece.blocks)]),
        "position_T": np.concatenate(
            [np.arange(prompt)] + [prompt + np.arange(tree.blocks[b].start, tree.blocks[b].stop) for b in piece.blocks]
        ),
        "subtree_end_T": np.repeat([cursor, *(end[b] for b in piece.blocks)], [prompt, *lengths]),
        "scored_S": np.concatenate([span[b] for b in scored]),
        "parent_S": np.concatenate([np.r_[last[tree.blocks[b].parent], span[b]][:-1] for b in scored]),
        "logprob_S": np.concatenate([_block_logprobs(tree, b) for b in scored]),
        "pull_S": np.concatenate([np.full(len(span[b]), share.pull_B[b]) for b in scored]),
        "push_S": np.concatenate([np.full(len(span[b]), share.push_B[b]) for b in scored]),
    }
    return part, _chains(piece, span, offset)


def _block_logprobs(tree: RolloutTree, index: int) -> Floats:
    block = tree.blocks[index]
    branch = tree.branches[block.branch]
    return branch.logprobs[block.start - branch.start : block.stop - branch.start]


def _chains(piece: Piece, span: dict[int, Ints], offset: int) -> list[Chain]:
    """The prompt, then the blocks of each branch together: what they attend to is one path."""
    tree = piece.share.tree
    prompt = np.arange(offset, offset + len(tree.prompt))
    by_branch: dict[int, list[int]] = {}
    for block in piece.blocks:
        by_branch.setdefault(tree.blocks[block].branch, []).append(block)
    chains = [Chain(prompt, prompt)]
    for blocks in by_branch.values():
        blocks.sort(key=lambda b: tree.blocks[b].start)
        query = np.concatenate([span[b] for b in blocks])
        above = _line(tree, blocks[0])[:-1]
        chains.append(Chain(query, np.concatenate([prompt, *(span[b] for b in above), query])))
    return chains
