"""Muon: momentum whose step on a matrix is made orthogonal (Jordan et al. 2024).

`torch.optim.Muon` iterates in bfloat16 and one matrix at a time. On processors that only emulate bfloat16 that
takes longer than the forward and backward pass of a small model; this one works in float32 on all matrices of
one shape at once and costs a tenth of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

# The quintic a·x + b·x³ + c·x⁵ that moves every singular value in (0, 1] close to 1 in a few rounds.
QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum for two-dimensional weights: W ← W − lr · √max(1, rows/columns) · orth(momentum)."""

    def __init__(self, matrices: Iterable[torch.nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[torch.nn.Parameter]] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    by_shape.setdefault(weight.shape, []).append(weight)
            for (rows, columns), weights in by_shape.items():
                steps = orthogonal(torch.stack([self._momentum(weight, group["momentum"]) for weight in weights]))
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for weight, step in zip(weights, steps, strict=True):
                    weight.sub_(step, alpha=rate)

    def _momentum(self, weight: torch.nn.Parameter, momentum: float) -> torch.Tensor:
        """The gradient looked ahead along its running mean."""
        assert weight.grad is not None
        mean: torch.Tensor = self.state[weight].setdefault("mean", torch.zeros_like(weight))
        mean.lerp_(weight.grad, 1 - momentum)
        return weight.grad.lerp(mean, momentum)


def orthogonal(matrices: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """The nearest matrices (…, rows, columns) with all singular values about 1 (0.7 to 1.2), by Newton-Schulz."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(rounds):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
