"""Attention over packs and ragged batches, for any Hugging Face decoder.

One attention function, "datpo", is registered with transformers; the forward pass hands it a callable that knows
the layout at hand. Suffixes: H heads, G key-value heads, T tokens, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from datpo.learn.pack import Chain, Pack

Attend = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]  # layer, query, key, value, scale -> (1, H, T, D)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    attend: Attend,
    **_: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer; the layout comes in as `attend` and the mask is its business."""
    out = attend(module.layer_idx, query, key, value, scaling)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register("datpo", _attention)


class DenseTreeAttention:
    """The tree mask as a dense matrix: the oracle the other layouts are tested against."""

    def __init__(self, pack: Pack, device: torch.device) -> None:
        end = torch.as_tensor(pack.subtree_end_T, device=device)
        index = torch.arange(len(end), device=device)
        self.mask = (index[None, :] <= index[:, None]) & (index[:, None] < end[None, :])

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, H, T, D) attended under the mask."""
        return _sdpa(query, key, value, self.mask, scale)


class ChainAttention:
    """The tree mask as paths: chains of like lengths are gathered into padded groups, one call each.

    All keys and values are gathered by a single `index_select` (one for each group would cost groups x T in the
    backward pass). Work and memory grow with the sum over chains of query x key lengths.

    Attributes:
        length: tokens that the model has to be fed: those of the pack.
    """

    def __init__(self, pack: Pack, device: torch.device) -> None:
        self.length = len(pack.token_T)
        groups = [_padded(group) for group in grouped(pack.chains)]
        self.shapes = [(query.shape, key.shape) for query, key, _ in groups]
        self.masks = [torch.as_tensor(mask, device=device)[:, None] for _, _, mask in groups]
        query_index = np.concatenate([query.ravel() for query, _, _ in groups])
        key_index = np.concatenate([key.ravel() for _, key, _ in groups])
        self.query_index = torch.as_tensor(np.maximum(query_index, 0), device=device)
        self.key_index = torch.as_tensor(np.maximum(key_index, 0), device=device)
        slots = np.flatnonzero(query_index >= 0)  # where each token's own query stands
        home = np.empty(len(pack.token_T), dtype=np.int64)
        home[query_index[slots]] = slots
        self.home = torch.as_tensor(home, device=device)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, H, T, D) attended chain by chain."""
        queries = query[0].index_select(1, self.query_index).split([c * n for (c, n), _ in self.shapes], dim=1)
        sizes = [c * n for _, (c, n) in self.shapes]
        keys = key[0].index_select(1, self.key_index).split(sizes, dim=1)
        values = value[0].index_select(1, self.key_index).split(sizes, dim=1)
        outs = []
        for (q_shape, k_shape), q, k, v, mask in zip(self.shapes, queries, keys, values, self.masks, strict=True):
            q, k, v = (x.unflatten(1, shape).transpose(0, 1) for x, shape in ((q, q_shape), (k, k_shape), (v, k_shape)))
            outs.append(_sdpa(q, k, v, mask, scale).transpose(0, 1).flatten(1, 2))
        return torch.cat(outs, dim=1).index_select(1, self.home)[None]


def _sdpa(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=scale, enable_gqa=query.shape[1] != key.shape[1]
    )


def grouped(chains: Sequence[Chain], waste: float = 1.3) -> list[list[Chain]]:
    """Chains of like size together, so that padding costs at most `waste` times the work of each group."""
    order = sorted(chains, key=lambda chain: (len(chain.query), len(chain.key)), reverse=True)
    groups: list[list[Chain]] = []
    width, depth, area = 0, 0, 0
    for chain in order:
        mine = len(chain.query) * len(chain.key)
        depth_here = max(depth, len(chain.key))
        if groups and width * depth_here * (len(groups[-1]) + 1) <= waste * (area + mine):
            groups[-1].append(chain)
            depth, area = depth_here, area + mine
        else:
            groups.append([chain])
            width, depth, area = len(chain.query), len(chain.key), mine
    return groups


def _padded(group: Sequence[Chain]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query and key indices, padded with -1, and the mask (chains, queries, keys)."""
    width, depth = max(len(c.query) for c in group), max(len(c.key) for c in group)
    query = np.full((len(group), width), -1)
    key = np.full((len(group), depth), -1)
    reach = np.zeros((len(group), width, 1), dtype=np.int64)  # the last key each query sees
    for row, chain in enumerate(group):
        query[row, : len(chain.query)] = chain.query
        key[row, : len(chain.key)] = chain.key
        above = len(chain.key) - len(chain.query)
        reach[row, : len(chain.query), 0] = above + np.arange(len(chain.query))
    return query, key, np.arange(depth) <= reach
