"""The plain way to update and to sample: each block or leaf path a sequence of its own.

Written as a careful user of transformers would: sequences sorted by length and filled into micro-batches up to the
same token budget, padded on the right so that causal SDPA needs no mask, log-probabilities of the trained tokens only,
the head in the same checkpointed chunks, the same loss. Nothing is shared between sequences; that is the one thing
packing adds. Sampling is transformers' own `generate`, or the released code's loop (its file `datpo/training`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datpo.core.engine import Request
from datpo.core.tree import Floats, Ints, RolloutTree
from datpo.engines.hf import HFEngine, RaggedAttention, draw
from datpo.learn.loss import clipped_loss, token_logprobs
from datpo.learn.minibatch import CreditedTree, Unit
from datpo.learn.policy import Policy
from datpo.methods.base import Method


@dataclass(frozen=True)
class Flat:
    """A unit as a sequence: all its tokens, and of the trained ones, which stand last, what the loss needs."""

    tokens: Ints
    old: Floats
    advantages: Floats


def sequences(method: Method, trees: Sequence[CreditedTree], units: Sequence[Unit]) -> list[Flat]:
    """Prompt, prefix and own tokens of every unit."""
    made = []
    for unit in units:
        credited = trees[unit.tree]
        grown = credited.tree
        path = [unit.index] if method.unit == "blocks" else list(grown.path(unit.index))
        first = grown.blocks[path[0]]
        own = np.concatenate([grown.block_tokens(grown.blocks[block]) for block in path])
        old = np.concatenate([_old(grown, block) for block in path])
        value = credited.advantages[path] if credited.advantages.ndim == 1 else credited.advantages[unit.index, path]
        lengths = [len(grown.blocks[block]) for block in path]
        prefix = grown.prefix(first.branch, first.start)
        made.append(Flat(np.concatenate([grown.prompt, prefix, own]), old, np.repeat(value, lengths)))
    return made


def _old(grown: RolloutTree, block: int) -> Floats:
    it = grown.blocks[block]
    branch = grown.branches[it.branch]
    return branch.logprobs[it.start - branch.start : it.stop - branch.start]


def accumulate(policy: Policy, method: Method, made: Sequence[Flat], token_budget: int, logit_budget: int) -> float:
    """Add the gradient of a mini-batch's loss (token mean), micro-batch by micro-batch; returns the loss."""
    policy.model.set_attn_implementation("sdpa")
    policy.model.train(policy.model.is_gradient_checkpointing)  # as the packed update: layers computed again, or not
    device = policy.device
    normaliser = float(sum(len(one.old) for one in made))
    total = 0.0
    for batch in micro_batches(made, token_budget):
        longest = max(len(one.tokens) for one in batch)
        token_RT = np.zeros((len(batch), longest), dtype=np.int64)
        rows, places, tokens = [], [], []
        for row, one in enumerate(batch):
            token_RT[row, : len(one.tokens)] = one.tokens
            first = len(one.tokens) - len(one.old)
            rows.append(np.full(len(one.old), row))
            places.append(np.arange(first - 1, len(one.tokens) - 1))
            tokens.append(one.tokens[first:])
        hidden = policy.model.model(
            input_ids=torch.as_tensor(token_RT, device=device), use_cache=False
        ).last_hidden_state
        row_S, place_S, token_S = (
            torch.as_tensor(np.concatenate(parts), device=device) for parts in (rows, places, tokens)
        )
        hidden_SD = hidden[row_S, place_S]
        logp_S = token_logprobs(
            hidden_SD, policy.model.lm_head, token_S, max(1, logit_budget // policy.model.config.vocab_size), 1.0
        )
        advantage_S = np.concatenate([one.advantages for one in batch])
        given = (np.concatenate([one.old for one in batch]), np.maximum(advantage_S, 0), np.maximum(-advantage_S, 0))
        tensors = [torch.as_tensor(each, dtype=logp_S.dtype, device=device) for each in given]
        loss, _ = clipped_loss(logp_S, *tensors, method.clip_range, normaliser)
        loss.backward()
        total += float(loss.detach())
    policy.model.eval()
    policy.model.set_attn_implementation("datpo")
    return total


def micro_batches(made: Sequence[Flat], token_budget: int) -> Iterator[list[Flat]]:
    """Sequences of like length together, padded tokens within the budget."""
    batch: list[Flat] = []
    for one in sorted(made, key=lambda each: -len(each.tokens)):
        if batch and len(batch[0].tokens) * (len(batch) + 1) > token_budget:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


@torch.no_grad()
def generate(policy: Policy, requests: Sequence[Request]) -> list[Ints]:
    """`transformers.generate` on left-padded prompts, with its cache; a batch runs until its longest row ends."""
    policy.model.set_attn_implementation("sdpa")
    torch.manual_seed(requests[0].seed)
    longest = max(len(request.context) for request in requests)
    token_RT = np.zeros((len(requests), longest), dtype=np.int64)
    mask_RT = np.zeros((len(requests), longest), dtype=np.int64)
    for row, request in enumerate(requests):
        token_RT[row, longest - len(request.context) :] = request.context
        mask_RT[row, longest - len(request.context) :] = 1
    out = policy.model.generate(
        input_ids=torch.as_tensor(token_RT),
        attention_mask=torch.as_tensor(mask_RT),
        do_sample=True,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        max_new_tokens=max(request.max_new_tokens for request in requests),
        pad_token_id=0,
    )
    policy.model.set_attn_implementation("datpo")
    return [row.numpy() for row in out[:, longest:]]


class Static(HFEngine):
    """Rows stay until the longest has ended."""

    compact_below = 0.0


class PrefilledAgain(HFEngine):
    """Every branch's context is run again, though its base rollout has just been through the model."""

    def _prefill(self, kv: Tensor, groups: Mapping[bytes, list[int]], requests: Sequence[Request]) -> None:
        alone = {b"%d" % row: [row] for row in sorted(row for rows in groups.values() for row in rows)}
        super()._prefill(kv, alone, requests)


@torch.no_grad()
def released_generation(policy: Policy, requests: Sequence[Request]) -> list[Ints]:
    """The released code's loop: one token a step for all rows from the shortest context on, until the last row ends.

    Rows whose context is longer are given its tokens until it is used up; rows that have ended stay.
    """
    config = policy.model.config
    contexts = [request.context for request in requests]
    ends = np.array([len(request.context) + request.max_new_tokens for request in requests])
    shortest, last = min(map(len, contexts)), int(ends.max())
    size = config.hidden_size // config.num_attention_heads
    kv = torch.zeros(
        (config.num_hidden_layers, 2, len(requests), config.num_key_value_heads, last, size), dtype=policy.model.dtype
    )
    attend = RaggedAttention(kv)
    token_RT = np.zeros((len(requests), last), dtype=np.int64)
    given = np.array([len(context) for context in contexts])
    for row, context in enumerate(contexts):
        token_RT[row, : len(context)] = context
    uniform_RT = np.random.default_rng(requests[0].seed).random((len(requests), last))
    before = 0
    for here in range(shortest, last):
        position = torch.arange(before, here).expand(len(requests), -1)
        attend.aim(position)
        hidden = policy.hidden(torch.as_tensor(token_RT[:, before:here]), position, attend)
        logits = policy.model.lm_head(hidden[:, -1]).float()
        drawn, _, _ = draw(logits, torch.as_tensor(uniform_RT[:, here]))
        token_RT[:, here] = np.where(here < given, token_RT[:, here], drawn.numpy())
        before = here
    return [token_RT[row, given[row] : ends[row]] for row in range(len(requests))]
