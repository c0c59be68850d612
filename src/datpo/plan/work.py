"""What a job of a plan does: tokens, updates and operations, and the memory it needs."""

from __future__ import annotations

from dataclasses import dataclass

from datpo.plan.memory import Memory
from datpo.plan.ranges import Range


@dataclass(frozen=True)
class Work:
    """What a job does.

    Attributes:
        questions: problems whose trees are grown, or that are sampled.
        sampled: new tokens; validation in training included.
        trained: tokens in the losses of all updates.
        updates: optimiser steps.
        operations: floating-point operations of sampling and of training.
        memory: of its device, at its peak.
        generated: new tokens of training itself, as its log counts them.
    """

    questions: float
    sampled: Range
    trained: float
    updates: float
    operations: tuple[float, float]
    memory: Memory
    generated: Range

    @property
    def all_operations(self) -> float:
        """Operations in all."""
        return sum(self.operations)
