"""Forward influence: how much the later text of a base rollout looks back at each of its steps or tokens.

One extra forward pass over the finished rollouts reads the attention weights of every layer and head. With a_{q,k}
the weight a query token q gives a key token k, both in the response, only *far* pairs count: those at least `FAR`
steps (or tokens) apart. No head's weights outlive their chunk of queries.

`partial(step_influence, policy)` and `partial(token_influence, policy)` are rollout signals.

Suffixes: R rows, H heads, Q queries of a chunk, K keys they see, T tokens (prompt, response, padding), S steps, D head
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from datpo.core.tree import Floats, Ints
from datpo.learn.policy import Policy
from datpo.search.forks import NO_SENTENCE
from datpo.search.rollout import Leaf
from datpo.search.signals import step_numbers

FAR = 4  # steps between query and key (AttnRL, Delta); tokens in the released DATPO code
# Numbers in the largest tensor of attention weights (rows x heads x queries x keys) or of token pairs (rows x tokens x
# tokens): 16 MiB, of which about three live at a time. Only a lone row of more than 2,048 tokens has more pairs.
WEIGHTS = 2**22

Chunks = Iterator[tuple[slice, Tensor]]  # queries, and their weights (R, H, Q, K) on the keys 0..K


def step_influence(policy: Policy, leaves: Sequence[Leaf]) -> list[Floats]:
    """How much later steps look back at the step each token of a base rollout stands in (AttnRL's FCI).

        a_{j,k} = mean of a_{q,k'} over q in step j, k' in step k
        y_k     = max over layers and heads of  sum_{j >= k + 4} a_{j,k}

    The first step and tokens of no step (an end token) get 0; so do all, where there are fewer than 6 steps.

    Args:
        policy: the model whose attention is read.
        leaves: base rollouts, as trees and leaves.

    Returns:
        One array (T,) for each leaf: each token of its branch carries the y of its step.
    """
    numbers = [step_numbers(tree.branches[leaf], policy.decode).astype(np.int64) for tree, leaf in leaves]
    return _influences(policy, leaves, numbers, _StepWatch)


def token_influence(policy: Policy, leaves: Sequence[Leaf]) -> list[Floats]:
    """How much later tokens look back at each token of a base rollout (the released DATPO code).

        y_k = sum_{q >= k + 4} max over layers and heads of a_{q,k}

    Unlike in AttnRL the maximum is taken for each pair, before the sum. The last token does not look back: the release
    reads the attention of tokens that another one is sampled behind.

    Args:
        policy: the model whose attention is read.
        leaves: base rollouts, as trees and leaves.

    Returns:
        One array (T,) for each leaf, for the tokens of its branch.
    """
    lengths = [len(tree.branches[leaf].tokens) for tree, leaf in leaves]
    numbers = [np.r_[np.arange(length - 1), NO_SENTENCE] for length in lengths]
    return _influences(policy, leaves, numbers, _TokenWatch)


@torch.no_grad()
def _influences(
    policy: Policy, leaves: Sequence[Leaf], numbers: Sequence[Ints], watch_over: Callable[[Tensor], _Watch]
) -> list[Floats]:
    """What a watch finds for the tokens of each leaf's branch, in passes over rows of like length.

    `numbers` are the steps (T,) the tokens of each branch stand in.
    """
    starts = [len(tree.prompt) for tree, _ in leaves]
    tokens = [np.concatenate([tree.prompt, tree.branches[leaf].tokens]) for tree, leaf in leaves]
    steps = [
        np.pad(number_T, (start, 0), constant_values=NO_SENTENCE)
        for number_T, start in zip(numbers, starts, strict=True)
    ]
    found: dict[int, Floats] = {}
    for batch in _batches([len(row) for row in tokens]):
        token_RT = _padded([tokens[i] for i in batch], 0, policy.device)
        watch = watch_over(_padded([steps[i] for i in batch], NO_SENTENCE, policy.device))
        position_RT = torch.arange(token_RT.shape[1], device=policy.device).expand_as(token_RT)
        policy.hidden(token_RT, position_RT, _WatchedAttention(watch))
        influence_RT = watch.influence_RT().double().cpu().numpy()
        found |= {i: influence_RT[row, starts[i] : len(tokens[i])] for row, i in enumerate(batch)}
    return [found[i] for i in range(len(leaves))]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows by falling length, as many together as have at most `WEIGHTS` token pairs; a longer one goes alone."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    while order:
        count = max(1, WEIGHTS // lengths[order[0]] ** 2)
        yield order[:count]
        order = order[count:]


def _padded(rows: Sequence[Ints], padding: int, device: torch.device) -> Tensor:
    """Rows of their own lengths as one (R, T) tensor, padded on the right."""
    padded_RT = np.full((len(rows), max(map(len, rows))), padding)
    for padded_T, row in zip(padded_RT, rows, strict=True):
        padded_T[: len(row)] = row
    return torch.as_tensor(padded_RT, device=device)


class _Watch(Protocol):
    """Reads the attention weights of a batch, layer by layer."""

    def __call__(self, chunks: Chunks) -> None:
        """Take in the weights of one layer; they may be overwritten."""

    def influence_RT(self) -> Tensor:
        """The influence of every token, from all layers seen."""


class _StepWatch:
    """Far attention from step to step; `step_RT` numbers the step of each token, below 0 for none."""

    def __init__(self, step_RT: Tensor) -> None:
        self.step_RT = step_RT
        step_S = torch.arange(int(step_RT.max().clamp(min=0)) + 1, device=step_RT.device)
        inside_RTS = (step_RT[..., None] == step_S).float()
        self.mean_RTS = inside_RTS / inside_RTS.sum(1, keepdim=True).clamp(min=1)
        self.share_RT = self.mean_RTS.sum(-1)  # of a query in the mean of its step
        self.y_RS = torch.zeros(len(step_RT), len(step_S), device=step_RT.device)

    def __call__(self, chunks: Chunks) -> None:
        """Add up what looks back at each step in each head, and keep the largest head's.

        The queries are summed first, so that no head holds a table of steps x steps: where every token is a step
        that would be one of tokens x tokens.
        """
        y_RHS = torch.zeros(())
        for queries, weights_RHQK in chunks:
            keys = slice(weights_RHQK.shape[-1])
            far_RQK = self.step_RT[:, queries, None] >= self.step_RT[:, None, keys] + FAR
            far_RHQK = weights_RHQK.mul_((far_RQK * self.share_RT[:, queries, None])[:, None])
            y_RHS = y_RHS + far_RHQK.sum(2) @ self.mean_RTS[:, keys]
        self.y_RS = torch.maximum(self.y_RS, y_RHS.amax(1))

    def influence_RT(self) -> Tensor:
        """Each token carries its step's number; the first step and what is no step (below 0) carry 0."""
        return self.y_RS.gather(1, self.step_RT.clamp(min=0)) * (self.step_RT > 0)


class _TokenWatch:
    """The largest weight of every pair of tokens; `place_RT` numbers the response tokens, below 0 for others."""

    def __init__(self, place_RT: Tensor) -> None:
        self.response_RT = place_RT >= 0
        self.largest_RTT = torch.zeros(*place_RT.shape, place_RT.shape[1], device=place_RT.device)

    def __call__(self, chunks: Chunks) -> None:
        """Keep the largest weight of each pair over this layer's heads and those of the layers before."""
        for queries, weights_RHQK in chunks:
            so_far_RQK = self.largest_RTT[:, queries, : weights_RHQK.shape[-1]]
            so_far_RQK.copy_(torch.maximum(so_far_RQK, weights_RHQK.amax(1)))

    def influence_RT(self) -> Tensor:
        """The sum over far queries, padding left out; what it says of a prompt's tokens is of no account."""
        far_RTT = self.largest_RTT.tril(-FAR) * self.response_RT[..., None]
        return far_RTT.sum(1)


class _WatchedAttention:
    """Causal attention over right-padded rows whose weights a watch sees, in float32."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(R, H, T, D) attended; every row sees its own past."""
        sharing = query.shape[1] // key.shape[1]  # query heads of a key-value head
        key, value = (x.repeat_interleave(sharing, dim=1) for x in (key, value))
        with torch.autocast(query.device.type, enabled=False):  # it would round the weights
            self.watch(_chunks(query.float() * scale, key.float()))
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)


def _chunks(query: Tensor, key: Tensor) -> Chunks:
    """The weights of as many queries at a time as keep within `WEIGHTS` numbers."""
    rows, heads, length, _ = query.shape
    size = max(1, WEIGHTS // (rows * heads * length))
    for start in range(0, length, size):
        queries = slice(start, min(start + size, length))
        yield queries, _causal_weights(query[:, :, queries], key[:, :, : queries.stop])


def _causal_weights(query: Tensor, key: Tensor) -> Tensor:
    """(R, H, Q, K) softmax weights of the last Q of K tokens, each on itself and what stands before."""
    score_RHQK = query @ key.mT
    future_QK = torch.ones(score_RHQK.shape[2:], dtype=torch.bool, device=query.device)
    future_QK = future_QK.triu(1 + key.shape[2] - query.shape[2])
    return score_RHQK.masked_fill_(future_QK, -torch.inf).softmax(-1)
