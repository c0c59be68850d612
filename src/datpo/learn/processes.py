"""The processes of one training, a GPU each (`accelerate launch`), and how they share a step.

Each holds the whole policy and goes the same way through the training. They share out what takes time, growing trees
and running packs, and then each has everybody's: the step's trees, the summed gradients. All call the same method at
the same point; where there is one process, all of them leave things as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from accelerate import Accelerator
from torch import Tensor, distributed

from datpo.core.engine import Continuation, Engine, EngineReport, Request

T = TypeVar("T")


class Processes:
    """The processes that train together, seen from one of them.

    Attributes:
        index, count: which one this is, from 0, and of how many.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.index, self.count = accelerator.process_index, accelerator.num_processes

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files."""
        return self.index == 0

    def mine(self, items: Sequence[T]) -> list[T]:
        """What falls to this process of what all hold: every `count`-th item."""
        return list(items[self.index :: self.count])

    def whole(self, mine: Sequence[T]) -> list[T]:
        """What became of everybody's items, in the order that `mine` took them from."""
        parts = self.each(list(mine))
        whole = [None] * sum(map(len, parts))
        for index, part in enumerate(parts):
            whole[index :: self.count] = part  # type: ignore[assignment]
        return cast(list[T], whole)

    def each(self, mine: T) -> list[T]:
        """The values of all processes, by their index."""
        if self.count == 1:
            return [mine]
        values: list[T | None] = [None] * self.count
        distributed.all_gather_object(values, mine)
        return cast(list[T], values)

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Put into every tensor the sum of all processes' ones, in place."""
        if self.count > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)


@dataclass(frozen=True)
class SharedEngine:
    """An engine of which each process samples a part of the requests, none of which starts from a kept continuation."""

    engine: Engine
    processes: Processes

    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request, in order, in every process."""
        return self.processes.whole(self.engine.sample(self.processes.mine(requests), keep))

    def forget(self) -> None:
        """Drop the kept keys and values."""
        self.engine.forget()

    def report(self) -> EngineReport:
        """What all processes' engines have to say together."""
        return sum(self.processes.each(self.engine.report()), EngineReport())
