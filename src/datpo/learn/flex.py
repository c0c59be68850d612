"""Attention over packs on a GPU: the tree mask as blocks, of which FlexAttention computes those that are not empty.

Suffixes: H heads, G key-value heads, T tokens, D head size, N blocks of `BLOCK` tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from datpo.core.tree import Ints
from datpo.learn.pack import Pack

BLOCK = 128  # tokens; FlexAttention's own


class FlexTreeAttention:
    """The tree mask, k <= q < subtree_end[k], as a block mask: work and memory follow what is attended.

    Attributes:
        length: tokens that the model has to be fed: those of the pack and, behind them, some that see only themselves.
    """

    def __init__(self, pack: Pack, device: torch.device) -> None:
        end_T = padded_ends(pack.subtree_end_T)
        self.length = len(end_T)
        self.mask = tree_block_mask(end_T, device)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, H, T, D) attended under the mask."""
        # Rotary embeddings leave float32 behind, and autocast, which mends that elsewhere, does not know this kernel.
        query, key = query.to(value.dtype), key.to(value.dtype)
        shared = query.shape[1] != key.shape[1]
        out = fused()(query, key, value, block_mask=self.mask, scale=scale, enable_gqa=shared)
        assert isinstance(out, Tensor)
        return out


@cache
def fused() -> Callable[..., Any]:
    """The kernel, compiled at its first call and once more, for every length, at the first other length.

    `fullgraph`: to fall back to eager attention would take memory for all pairs of tokens, so that is an error.
    """
    return torch.compile(flex_attention, fullgraph=True)


def padded_ends(subtree_end_T: Ints) -> Ints:
    """`subtree_end` of a pack that is filled up to whole blocks; each filler sees itself and is seen by no other.

    There are at least two blocks: the compiler takes a size of 1 for a constant.
    """
    length = max(2, -(-len(subtree_end_T) // BLOCK)) * BLOCK
    return np.concatenate([subtree_end_T, np.arange(len(subtree_end_T), length) + 1])


def tree_block_mask(end_T: Ints, device: torch.device) -> BlockMask:
    """The block mask of k <= q < end[k], without a table of tokens x tokens.

    Key k is seen by queries k to end[k] - 1, which is a run; so are the blocks that see a block of keys, from itself to
    that of its latest end. Those that see all of it lie behind it and before its earliest end.
    """
    end_NB = end_T.reshape(-1, BLOCK)
    query_N1 = np.arange(len(end_NB))[:, None]
    key_N = np.arange(len(end_NB))
    seen = (key_N <= query_N1) & (query_N1 <= (end_NB.max(axis=1) - 1) // BLOCK)
    whole = (key_N < query_N1) & (query_N1 < end_NB.min(axis=1) // BLOCK)
    end = torch.as_tensor(end_T, device=device)

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < end[key])

    blocks = (*_listed(seen & ~whole, device), *_listed(whole, device))
    return BlockMask.from_kv_blocks(*blocks, BLOCK_SIZE=BLOCK, mask_mod=sees)


def _listed(chosen_NN: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each block of queries how many blocks of keys are chosen, (1, 1, N), and these first, (1, 1, N, N)."""
    order_NN = np.argsort(~chosen_NN, axis=1, kind="stable")
    count, order = (
        torch.as_tensor(x.astype(np.int32), device=device)[None, None] for x in (chosen_NN.sum(1), order_NN)
    )
    return count, order
