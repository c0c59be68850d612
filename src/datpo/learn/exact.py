"""What the policy itself says of tokens that another engine sampled from it: exact log-probabilities and entropies.

The continuations are laid out behind their contexts so that a prefix that several of them share stands once, and run
through the same packed forward pass as in the update. So the ratio of new to old probabilities starts at 1.

Suffixes: S sampled tokens of a pack, D hidden size, C context tokens, T tokens of a continuation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from datpo.core.tree import Floats, Ints
from datpo.learn.pack import Chain, Pack
from datpo.learn.policy import Policy

Sampled = tuple[Ints, Ints]  # a context, and what was sampled behind it
Said = tuple[Floats, Floats]  # log-probabilities and entropies (T,) of a continuation


@torch.no_grad()
def exact(
    policy: Policy, sampled: Sequence[Sampled], token_budget: int, logit_budget: int, temperature: float
) -> list[Said]:
    """Log-probabilities and entropies (nats) of every continuation's tokens at the temperature of sampling, in order.

    Memory is bounded as in the update: packs of at most `token_budget` tokens, of whose logits no more than
    `logit_budget` exist at one time.
    """
    said: dict[int, Said] = {}
    chunk = max(1, logit_budget // policy.model.config.vocab_size)
    for pack, rows in sampled_packs(sampled, token_budget):
        hidden_SD, token_S = policy.scored_hidden(pack)
        parts = [
            _of_chunk(policy.model.lm_head, *each, temperature)
            for each in zip(hidden_SD.split(chunk), token_S.split(chunk), strict=True)
        ]
        logprob_S, entropy_S = (torch.cat(part).double().cpu().numpy() for part in zip(*parts, strict=True))
        ends = np.cumsum([len(sampled[row][1]) for row in rows])[:-1]
        said.update(zip(rows, zip(np.split(logprob_S, ends), np.split(entropy_S, ends), strict=True), strict=True))
    return [said[row] for row in range(len(sampled))]


def _of_chunk(head: torch.nn.Linear, hidden_SD: Tensor, token_S: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    logp_SV = torch.log_softmax(head(hidden_SD).float() / temperature, dim=-1)
    return logp_SV.gather(1, token_S[:, None])[:, 0], torch.special.entr(logp_SV.exp()).sum(-1)


def sampled_packs(sampled: Sequence[Sampled], token_budget: int) -> Iterator[tuple[Pack, list[int]]]:
    """Packs of all continuations, each with the numbers of those it scores, in the order of its scored tokens.

    In the order of their contexts every context shares most with the one before it. One continuation that is over the
    budget with its context makes a pack of its own.
    """
    sheet = _Sheet()
    for row in sorted(range(len(sampled)), key=lambda i: sampled[i][0].tolist()):
        context_C, token_T = sampled[row]
        if sheet.rows and sheet.size + len(context_C) - sheet.shared(context_C) + len(token_T) > token_budget:
            yield sheet.pack(), sheet.rows
            sheet = _Sheet()
        sheet.add(row, context_C, token_T)
    if sheet.rows:
        yield sheet.pack(), sheet.rows


class _Sheet:
    """A pack under way: continuations laid out behind their contexts, depth first."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.size = 0
        self.context_C: Ints = np.zeros(0, dtype=np.int64)  # the last one, and where its tokens stand
        self.place_C: Ints = np.zeros(0, dtype=np.int64)
        self.tokens: list[Ints] = []
        self.positions: list[Ints] = []
        self.chains: list[Chain] = []
        self.scored: list[Ints] = []
        self.parents: list[Ints] = []

    def shared(self, context_C: Ints) -> int:
        """How many tokens of a context stand here already, as those of the last one."""
        least = min(len(context_C), len(self.context_C))
        same = context_C[:least] == self.context_C[:least]
        return least if same.all() else int(same.argmin())

    def add(self, row: int, context_C: Ints, token_T: Ints) -> None:
        """Lay out what is new of a context, and the continuation behind it."""
        shared = self.shared(context_C)
        self.place_C = self._continue(self.place_C[:shared], context_C[shared:])
        self.context_C = context_C
        place = self._continue(self.place_C, token_T)
        self.scored.append(place[len(context_C) :])
        self.parents.append(place[len(context_C) - 1 : -1])
        self.rows.append(row)

    def _continue(self, path: Ints, new: Ints) -> Ints:
        """Where the tokens of a path stand that goes on with the tokens `new`."""
        if not len(new):
            return path
        own = np.arange(self.size, self.size + len(new))
        self.size += len(new)
        self.tokens.append(new)
        self.positions.append(np.arange(len(path), len(path) + len(new)))
        key = np.concatenate([path, own])
        self.chains.append(Chain(own, key))
        return key

    def pack(self) -> Pack:
        """The pack; nothing in it has a weight."""
        end_T = np.zeros(self.size, dtype=np.int64)
        for chain in self.chains:  # those below a token come after it, the last of them last
            end_T[chain.key] = chain.query[-1] + 1
        scored_S = np.concatenate(self.scored)
        nothing_S = np.zeros(len(scored_S))
        return Pack(
            token_T=np.concatenate(self.tokens),
            position_T=np.concatenate(self.positions),
            subtree_end_T=end_T,
            chains=tuple(self.chains),
            scored_S=scored_S,
            parent_S=np.concatenate(self.parents),
            logprob_S=nothing_S,
            pull_S=nothing_S,
            push_S=nothing_S,
        )
