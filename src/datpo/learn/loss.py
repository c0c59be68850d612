"""The one loss of every method, and log-probabilities without tokens x vocabulary in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def clipped_loss(
    logp_S: Tensor,
    old_S: Tensor,
    pull_S: Tensor,
    push_S: Tensor,
    clip: tuple[float, float],
    normaliser: float,
) -> tuple[Tensor, LossHealth]:
    """-sum [pull min(r, 1 + hi) - push max(r, 1 - lo)] / Z with r = exp(logp - old): PPO's clipped objective.

    All tensors are (S,), weights non-negative; see `minibatch` for where pull, push and Z come from.
    """
    low, high = clip
    ratio_S = torch.exp(logp_S - old_S)
    gain_S = pull_S * ratio_S.clamp(max=1 + high) - push_S * ratio_S.clamp(min=1 - low)
    with torch.no_grad():
        clipped_S = ((pull_S > 0) & (ratio_S > 1 + high)) | ((push_S > 0) & (ratio_S < 1 - low))
        health = LossHealth(
            tokens=len(ratio_S),
            ratio_sum=float(ratio_S.sum()),
            ratio_min=float(ratio_S.min()),
            ratio_max=float(ratio_S.max()),
            clipped=int(clipped_S.sum()),
            gap_max=float((logp_S - old_S).abs().max()),
        )
    return -gain_S.sum() / normaliser, health


@dataclass(frozen=True)
class LossHealth:
    """Sums over the trained tokens of a pack; `gap_max` is the largest |logp - old| in nats."""

    tokens: int
    ratio_sum: float
    ratio_min: float
    ratio_max: float
    clipped: int
    gap_max: float


def token_logprobs(hidden_SD: Tensor, head: torch.nn.Linear, token_S: Tensor, chunk: int, temperature: float) -> Tensor:
    """log p(token) at each hidden state (S,) at the temperature of sampling, `chunk` rows of logits at a time.

    The logits of a chunk are computed again in the backward pass, so memory is chunk x vocabulary.
    """
    parts = [
        checkpoint(_chunk_logprobs, head, hidden, token, temperature, use_reentrant=False)
        for hidden, token in zip(hidden_SD.split(chunk), token_S.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def _chunk_logprobs(head: torch.nn.Linear, hidden_SD: Tensor, token_S: Tensor, temperature: float) -> Tensor:
    logits = head(hidden_SD)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return -functional.cross_entropy(logits / temperature, token_S, reduction="none")
