"""The plain way to train a tree: every block or leaf path its own sequence, no packing, no sharing."""

from __future__ import annotations

import numpy as np
import torch


def unit_rows(method, trees, units):
    """(context, tokens, old log-probs, advantages, tokens of all the tree's units) of each unit, one row each."""
    rows = []
    for unit in units:
        credited = trees[unit.tree]
        tree, advantages = credited.tree, credited.advantages
        path = _path(method, tree, unit.index)
        first = tree.blocks[path[0]]
        context = np.concatenate([tree.prompt, tree.prefix(first.branch, first.start)])
        tokens = np.concatenate([tree.block_tokens(tree.blocks[b]) for b in path])
        old = np.concatenate(
            [
                tree.branches[tree.blocks[b].branch].logprobs[
                    tree.blocks[b].start - tree.branches[tree.blocks[b].branch].start :
                ][: len(tree.blocks[b])]
                for b in path
            ]
        )
        own = advantages[path] if advantages.ndim == 1 else advantages[unit.index, path]
        of_tree = sum(len(tree.blocks[b]) for index in credited.units for b in _path(method, tree, index))
        rows.append((context, tokens, old, np.repeat(own, [len(tree.blocks[b]) for b in path]), of_tree))
    return rows


def _path(method, tree, index):
    return [index] if method.unit == "blocks" else list(tree.path(index))


def sequence_logprobs(policy, context, tokens):
    model = policy.model
    model.set_attn_implementation("sdpa")
    ids = torch.as_tensor(np.concatenate([context, tokens]))[None]
    logits = model(input_ids=ids, use_cache=False).logits[0, len(context) - 1 : -1]
    model.set_attn_implementation("datpo")
    return torch.log_softmax(logits, -1).gather(1, torch.as_tensor(tokens)[:, None])[:, 0]


def plain_loss(method, logprobs, rows, longest_response):
    """min(rA, clip(r)A), aggregated as the method says, straight from the textbook."""
    sums, lengths = [], []
    for logp, (_, tokens, old, advantage, _) in zip(logprobs, rows, strict=True):
        ratio = torch.exp(logp - torch.as_tensor(old, dtype=logp.dtype))
        a = torch.as_tensor(advantage, dtype=logp.dtype)
        low, high = method.clip
        clipped = ratio.clamp(1 - low, 1 + high)
        sums.append(torch.minimum(ratio * a, clipped * a).sum())
        lengths.append(len(tokens))
    if method.aggregate == "token_mean":
        return -sum(sums) / sum(lengths)
    if method.aggregate == "sequence_mean":
        return -sum(s / n for s, n in zip(sums, lengths, strict=True)) / len(sums)
    if method.aggregate == "tree_mean":  # each tree's token mean, weighted by the share of the tree that is there
        of_tree = [row[4] for row in rows]
        shares = sum(n / whole for n, whole in zip(lengths, of_tree, strict=True))
        return -sum(s / whole for s, whole in zip(sums, of_tree, strict=True)) / shares
    return -sum(s / longest_response for s in sums) / len(sums)
