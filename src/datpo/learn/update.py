"""One step's update: epochs of shuffled mini-batches, each one optimiser step over its packs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import AutocastKwargs

from datpo.core.seeds import generator
from datpo.learn.loss import LossHealth, clipped_loss
from datpo.learn.minibatch import CreditedTree, Grouping, MiniBatch, gather, split, units_of
from datpo.learn.pack import packs
from datpo.learn.policy import Policy
from datpo.learn.processes import Processes
from datpo.methods.base import Method


@dataclass(frozen=True)
class UpdateSettings:
    """Numbers of the update; the keys of `train:` in the run's configuration."""

    epochs: int
    minibatch: Grouping
    minibatch_size: int
    gradient_clip: float
    token_budget: int
    logit_budget: int
    temperature: float
    max_new_tokens: int


@dataclass
class UpdateReport:
    """What happened in one step's update."""

    updates: int = 0
    trained_tokens: int = 0
    losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    health: list[LossHealth] = field(default_factory=list)
    sampler_gap: float | None = None

    def summary(self) -> dict[str, Any]:
        """The numbers for the log; None where nothing was trained."""
        tokens = sum(health.tokens for health in self.health)
        return {
            "updates": self.updates,
            "trained_tokens": self.trained_tokens,
            "loss": float(np.mean(self.losses)) if self.losses else None,
            "grad_norm": float(np.mean(self.gradient_norms)) if self.gradient_norms else None,
            "ratio_mean": sum(health.ratio_sum for health in self.health) / tokens if tokens else None,
            "ratio_min": min((health.ratio_min for health in self.health), default=None),
            "ratio_max": max((health.ratio_max for health in self.health), default=None),
            "clip_share": sum(health.clipped for health in self.health) / tokens if tokens else None,
            "sampler_gap": self.sampler_gap,
        }


# Autocast's cache would keep a copy of every weight until the end of a pack's forward pass. A pack uses each once, but
# for the head's in its chunks.
NO_CACHE = AutocastKwargs(cache_enabled=False)


class Learner:
    """A policy with its optimiser; accelerate sees to device, precision and processes.

    Weights, gradients and moments are float32; in bfloat16, matrix products work on copies made as they are needed.
    """

    def __init__(self, policy: Policy, optimizer: torch.optim.Optimizer, accelerator: Accelerator) -> None:
        self.policy, self.optimizer, self.accelerator = policy, optimizer, accelerator
        self.processes = Processes(accelerator)
        self.parameters = [p for p in policy.model.parameters() if p.requires_grad]

    def update(
        self, method: Method, trees: Sequence[CreditedTree], settings: UpdateSettings, seed: int, step: int
    ) -> UpdateReport:
        """Train on one step's trees: `epochs` passes over all units in freshly shuffled mini-batches.

        Gradients are there only meanwhile: the rollout can have their room.
        """
        report = UpdateReport()
        units = units_of(trees)
        for epoch in range(settings.epochs):
            rng = generator(seed, "minibatches", step, epoch)
            for chosen in split(units, settings.minibatch_size, settings.minibatch, rng):
                batch = gather(method, trees, chosen, settings.max_new_tokens)
                self._minibatch(method, batch, settings, report)
        self.optimizer.zero_grad(set_to_none=True)
        return report

    def _minibatch(self, method: Method, batch: MiniBatch, settings: UpdateSettings, report: UpdateReport) -> None:
        self.clear_gradients()
        mine = self.accumulate(method, batch, settings)
        self.processes.add_up(parameter.grad for parameter in self.parameters)
        losses, health = zip(*self.processes.each(mine), strict=True)
        norm = self.accelerator.clip_grad_norm_(self.parameters, settings.gradient_clip)
        self.optimizer.step()
        if report.updates == 0:  # nothing has moved yet: the ratio is 1 but for rounding
            report.sampler_gap = max((h.gap_max for each in health for h in each), default=None)
        report.updates += 1
        report.trained_tokens += batch.trained_tokens
        report.losses.append(sum(losses))
        report.gradient_norms.append(float(norm))
        report.health += [h for each in health for h in each]

    def clear_gradients(self) -> None:
        """Zeros, also where there are none: AdamW skips a parameter without, whose moments must move all the same."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            else:
                parameter.grad.zero_()

    def accumulate(self, method: Method, batch: MiniBatch, settings: UpdateSettings) -> tuple[float, list[LossHealth]]:
        """Add this process's part of the gradient of a mini-batch's loss, pack by pack; returns its part of the loss.

        The normaliser is the whole mini-batch's, so parts add up.
        """
        total, reports = 0.0, []
        for pack in packs(batch.shares, settings.token_budget, self.processes.index, self.processes.count):
            with self.accelerator.autocast(NO_CACHE):
                logp_S = self.policy.pack_logprobs(pack, settings.logit_budget, settings.temperature)
            tensors = [
                torch.as_tensor(x, dtype=logp_S.dtype, device=logp_S.device)
                for x in (pack.logprob_S, pack.pull_S, pack.push_S)
            ]
            loss, health = clipped_loss(logp_S, *tensors, method.clip_range, batch.normaliser)
            self.accelerator.backward(loss)
            total += float(loss.detach())
            reports.append(health)
        return total, reports
