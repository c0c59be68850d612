"""Sampling with a Hugging Face model, on a CPU or a GPU.

Rows stand right-padded in one cache, each with its own length. A context is prefilled once, whatever the number of
requests for it and for what it begins with (forks of one rollout), and so are the words with which all contexts begin;
a request with a source starts from that continuation's kept keys and values; rows that have finished leave the batch.
The last context token is always fed by the first decode step, so a fork needs no prefill at all.

Suffixes: R rows, P cache positions, V vocabulary, G key-value heads, D head size.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from datpo.core.engine import Continuation, EngineReport, Request
from datpo.core.tree import Floats, Ints
from datpo.learn.policy import Policy

SHORTER = 0.8  # rows whose keys reach less than this share of their neighbours' attend apart from them
FEWEST = 16  # rows, though, that are worth a call of their own
SHARED = 32  # tokens with which all contexts begin, as chats do, that are


class RaggedAttention:
    """Keys and values of rows with their own lengths, (layers, 2, R, G, P, D), and attention over them.

    A call writes the new keys and values of every row at its own positions, then attends to what lies before.
    """

    def __init__(self, kv: Tensor) -> None:
        self.kv = kv
        self.position_RT = torch.zeros(0)
        self.rows = torch.arange(kv.shape[2], device=kv.device)[:, None]
        self.groups: list[tuple[slice, int, Tensor]] = []

    def aim(self, position_RT: Tensor, reaches: Sequence[tuple[int, int, int]] = ()) -> None:
        """Set the positions at which the next call's tokens stand; row r, token t sees keys 0..position.

        `reaches` are runs of rows (start, stop, keys) that attend to so many keys at most; by default one run of all.
        """
        self.position_RT = position_RT
        self.rows = torch.arange(len(position_RT), device=position_RT.device)[:, None]
        self.groups = []
        for start, stop, reach in reaches or [(0, len(position_RT), int(position_RT.max()) + 1)]:
            keys = torch.arange(reach, device=position_RT.device)
            self.groups.append((slice(start, stop), reach, (keys <= position_RT[start:stop, :, None])[:, None]))

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Write (R, G, T, D) keys and values, and attend (R, H, T, D) queries to each row's own past."""
        for slot, new in enumerate((key, value)):
            self.kv[layer, slot, self.rows, :, self.position_RT] = new.transpose(1, 2).to(self.kv.dtype)
        query = query.to(self.kv.dtype)
        outs = [
            _attended(query[rows], *self.kv[layer, :, rows, :, :reach], mask, scale)
            for rows, reach, mask in self.groups
        ]
        return outs[0] if len(outs) == 1 else torch.cat(outs)


def _attended(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    """(R, H, T, D). A single token's heads that share keys stand as queries of one head: keys are read once for all."""
    attention = functional.scaled_dot_product_attention
    if query.shape[2] > 1:
        return attention(query, keys, values, mask, scale=scale, enable_gqa=keys.shape[1] != query.shape[1])
    folded = query.reshape(len(query), keys.shape[1], -1, query.shape[3])
    return attention(folded, keys, values, mask.expand(-1, -1, folded.shape[2], -1), scale=scale).reshape(query.shape)


def reaches(position_R: Ints, fewest: int | None = None) -> list[tuple[int, int, int]]:
    """Runs of rows (start, stop, keys) of like reach, where positions descend; short rows do not pay for long ones.

    A run has `fewest` rows (default `FEWEST`) or more, but for the last.
    """
    fewest = FEWEST if fewest is None else fewest
    runs, start = [], 0
    for row in range(len(position_R)):
        if row - start >= fewest and position_R[row] + 1 < SHORTER * (position_R[start] + 1):
            runs.append((start, row, int(position_R[start]) + 1))
            start = row
    return [*runs, (start, len(position_R), int(position_R[start]) + 1)]


class HFEngine:
    """Samples token by token from a policy; pure multinomial at the given temperature.

    Attributes:
        at_once: requests that are worth handing over together where somebody wants them in parts.
        compact_below: share of rows still alive below which the cache is copied without the finished ones.

    Args:
        policy: the model that is sampled as it is now; call `forget` after an update.
        batch: rows decoded together at most.
        temperature: divides the logits; log-probabilities and entropies are those of the tempered distribution.
    """

    compact_below = 0.8

    def __init__(self, policy: Policy, batch: int, temperature: float = 1.0) -> None:
        self.policy = policy
        self.batch = self.at_once = batch
        self.temperature = temperature
        self.end_tokens = np.array(sorted(policy.end_tokens))
        self._kept: dict[int, Tensor] = {}
        self._handles = itertools.count()

    @torch.no_grad()
    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request, in order.

        A row's draw depends on its own seed and distribution alone, not on its neighbours.
        """
        # Long contexts first: rows of a batch advance together, so they stay in descending order.
        order = sorted(range(len(requests)), key=lambda i: -len(requests[i].context))
        done: dict[int, Continuation] = {}
        for start in range(0, len(requests), self.batch):
            chosen = order[start : start + self.batch]
            done.update(zip(chosen, self._sample_batch([requests[i] for i in chosen], keep), strict=True))
        return [done[i] for i in range(len(requests))]

    def forget(self) -> None:
        """Drop the kept keys and values."""
        self._kept.clear()

    def report(self) -> EngineReport:
        """Nothing: what draws is the policy itself."""
        return EngineReport()

    def _sample_batch(self, requests: Sequence[Request], keep: bool) -> list[Continuation]:
        drawn = _Drawn(requests)
        attend = RaggedAttention(self._start_cache(requests))
        rows = np.arange(len(requests))  # the requests still in the batch
        handles = [next(self._handles) for _ in requests]
        last_R = np.array([request.context[-1] for request in requests])
        while len(rows):
            last_R = self._decode_step(drawn, rows, last_R, attend)
            done_R = drawn.finish(rows, last_R, self.end_tokens)
            if keep:
                for r in np.flatnonzero(done_R):
                    cached = drawn.context[rows[r]] + drawn.length[rows[r]] - 1
                    self._kept[handles[rows[r]]] = attend.kv[:, :, r, :, :cached].clone()
            alive_R = drawn.length[rows] == 0
            if alive_R.mean() < self.compact_below or not alive_R.any():
                attend.kv = attend.kv[:, :, torch.as_tensor(alive_R, device=attend.kv.device)]
                rows, last_R = rows[alive_R], last_R[alive_R]
        return [drawn.continuation(i, handle) for i, handle in enumerate(handles)]

    def _decode_step(self, drawn: _Drawn, rows: Ints, last_R: Ints, attend: RaggedAttention) -> Ints:
        """Feed every row's newest token and draw the next one.

        Rows that have finished but not left yet go along; what is drawn for them is never read.
        """
        device = self.policy.device
        position_R = np.minimum(drawn.context[rows] + drawn.step - 1, attend.kv.shape[4] - 1)
        position_R1 = torch.as_tensor(position_R, device=device)[:, None]
        attend.aim(position_R1, reaches(position_R))
        hidden = self.policy.hidden(torch.as_tensor(last_R, device=device)[:, None], position_R1, attend)
        logits_RV = self.policy.model.lm_head(hidden[:, -1]).float() / self.temperature
        uniform_R = torch.as_tensor(drawn.uniform_RN[rows, drawn.step], device=device)
        token_R, logprob_R, entropy_R = (x.cpu().numpy() for x in draw(logits_RV, uniform_R))
        drawn.add(rows, token_R, logprob_R, entropy_R)
        return token_R

    def _start_cache(self, requests: Sequence[Request]) -> Tensor:
        """A cache that holds all but the last context token of every row."""
        config = self.policy.model.config
        heads = config.num_key_value_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        positions = max(len(request.context) - 1 + request.max_new_tokens for request in requests)
        shape = (config.num_hidden_layers, 2, len(requests), heads, positions, size)
        kv = torch.zeros(shape, dtype=self._dtype(), device=self.policy.device)
        fresh: dict[bytes, list[int]] = {}
        for row, request in enumerate(requests):
            if request.source is None:
                begun = request.context[:-1].tobytes()
                home = begun if begun in fresh else next((known for known in fresh if known.startswith(begun)), begun)
                fresh.setdefault(home, []).append(row)
            else:  # stale keys behind the fork point are masked by position until they are overwritten
                known = self._kept[request.source][..., : len(request.context) - 1, :]
                kv[:, :, row, :, : known.shape[3]] = known
        self._prefill(kv, fresh, requests)
        return kv

    def _dtype(self) -> torch.dtype:
        """The number format of keys and values: autocast's where it is on, so that the learner sees the same ones."""
        kind = self.policy.device.type
        found: torch.dtype = (
            torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.policy.model.dtype
        )
        return found

    def _prefill(self, kv: Tensor, groups: Mapping[bytes, list[int]], requests: Sequence[Request]) -> None:
        """Run each context once, and what all begin with once for all; those of like length stand beside each other.

        A long context would pad all others to its own length. A group's first row has its context, with which the
        others' begin; contexts come in descending order.
        """
        homes = [rows for rows in groups.values() if len(requests[rows[0]].context) > 1]
        contexts = [requests[rows[0]].context[:-1] for rows in homes]
        known = kv[:, :, :1, :, :0]
        if len(contexts) > 1 and (common := _common(contexts)) >= SHARED:
            known = self._run([contexts[0][:common]], common, known)
        lengths = np.array([len(context) for context in contexts])
        for start, stop, longest in reaches(lengths - 1, fewest=1) if contexts else ():
            found = self._run(contexts[start:stop], longest, known)
            counts = [len(rows) for rows in homes[start:stop]]
            rows = torch.as_tensor(np.concatenate(homes[start:stop]), device=kv.device)
            home = torch.as_tensor(np.repeat(np.arange(stop - start), counts), device=kv.device)
            kv[:, :, rows, :, :longest] = found[:, :, home]

    def _run(self, contexts: Sequence[Ints], longest: int, known: Tensor) -> Tensor:
        """Keys and values of contexts padded to one length; those of what they begin with are `known`."""
        layers, _, _, heads, common, size = known.shape
        token = np.zeros((len(contexts), longest - common), dtype=np.int64)
        for row, context in enumerate(contexts):
            token[row, : len(context) - common] = context[common:]
        attend = RaggedAttention(known.new_zeros((layers, 2, len(contexts), heads, longest, size)))
        attend.kv[..., :common, :] = known
        if longest > common:
            position = torch.arange(common, longest, device=known.device).expand(len(contexts), -1)
            attend.aim(position)
            self.policy.hidden(torch.as_tensor(token, device=known.device), position, attend)
        return attend.kv


def _common(contexts: Sequence[Ints]) -> int:
    """How many tokens all contexts begin with."""
    shortest = min(map(len, contexts))
    same = np.all([context[:shortest] == contexts[0][:shortest] for context in contexts], axis=0)
    return int(np.argmin(np.append(same, False)))


class _Drawn:
    """What has been drawn for a batch of requests: R rows, at most N new tokens each; all rows start together."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.context = np.array([len(request.context) for request in requests])
        self.limit = np.array([request.max_new_tokens for request in requests])
        shape = (len(requests), int(self.limit.max()))
        self.uniform_RN = np.zeros(shape)
        for row, request in enumerate(requests):
            self.uniform_RN[row, : request.max_new_tokens] = np.random.default_rng(request.seed).random(
                request.max_new_tokens
            )
        self.token_RN = np.zeros(shape, dtype=np.int64)
        self.logprob_RN, self.entropy_RN = np.zeros(shape), np.zeros(shape)
        self.length = np.zeros(len(requests), dtype=np.int64)  # 0 while a row is alive
        self.stopped = np.zeros(len(requests), dtype=bool)
        self.step = 0

    def add(self, rows: Ints, token_R: Ints, logprob_R: Floats, entropy_R: Floats) -> None:
        """Record one more token for each of `rows`."""
        self.token_RN[rows, self.step] = token_R
        self.logprob_RN[rows, self.step] = logprob_R
        self.entropy_RN[rows, self.step] = entropy_R
        self.step += 1

    def finish(self, rows: Ints, token_R: Ints, end_tokens: Ints) -> np.ndarray:
        """Close the rows that just drew an end token or reached their limit; says which (R,)."""
        alive = self.length[rows] == 0
        stopped = alive & np.isin(token_R, end_tokens)
        done = stopped | (alive & (self.limit[rows] <= self.step))
        self.stopped[rows[stopped]] = True
        self.length[rows[done]] = self.step
        return done

    def continuation(self, row: int, handle: int) -> Continuation:
        """The finished continuation of one row."""
        length = self.length[row]
        return Continuation(
            self.token_RN[row, :length].copy(),
            self.logprob_RN[row, :length].copy(),
            self.entropy_RN[row, :length].copy(),
            "stop" if self.stopped[row] else "length",
            handle,
        )


def draw(logits_RV: Tensor, uniform_R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens by inverse transform of uniform numbers, their log-probabilities, and entropies in nats; (R,) each."""
    logp_RV = torch.log_softmax(logits_RV, dim=-1)
    p_RV = logp_RV.exp()
    cumulative_RV = p_RV.double().cumsum(-1)
    target_R1 = (uniform_R.double() * cumulative_RV[:, -1])[:, None]
    token_R = torch.searchsorted(cumulative_RV, target_R1, right=True)[:, 0].clamp(max=logits_RV.shape[1] - 1)
    logprob_R = logp_RV.gather(1, token_R[:, None])[:, 0]
    return token_R, logprob_R, torch.special.entr(p_RV).sum(-1)
