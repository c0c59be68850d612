"""How long a run trains, and where along the way it keeps a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from datpo.learn.state import RunState


@dataclass(frozen=True)
class Duration:
    """How many rollout `steps`, generated `tokens`, optimiser `updates` or `passes` over the problems; of several, all.

    Attributes:
        amounts: how much of each unit.
        problems: in one pass.
        checkpoints: amounts of those units at which a checkpoint is kept.
    """

    amounts: Mapping[str, float]
    problems: int
    checkpoints: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def fraction(self, state: RunState) -> float:
        """The share that is spent of the one that will last longest, 0 to 1."""
        return min(1.0, *(spent / self.amounts[unit] for unit, spent in self._spent(state).items()))

    def reached(self, state: RunState) -> set[str]:
        """The units that are spent, and each amount of a checkpoint that is, `UNIT-AMOUNT`."""
        spent = self._spent(state)
        amounts = {f"{unit}-{amount}": (unit, amount) for unit in self.checkpoints for amount in self.checkpoints[unit]}
        whole = {unit: (unit, amount) for unit, amount in self.amounts.items()}
        return {name for name, (unit, amount) in (whole | amounts).items() if spent[unit] >= amount}

    def kept(self, name: str) -> bool:
        """Whether what is reached has a checkpoint of its own: the one unit that a run lasts is its end."""
        return name not in self.amounts or len(self.amounts) > 1

    def over(self, state: RunState) -> bool:
        """Whether all are spent."""
        return self.reached(state) >= set(self.amounts)

    def _spent(self, state: RunState) -> dict[str, float]:
        spent = {
            "steps": state.step,
            "tokens": state.tokens,
            "updates": state.updates,
            "passes": (state.drawn - len(state.planted)) / self.problems,  # planted ones wait for the next step
        }
        return {unit: float(spent[unit]) for unit in self.amounts}
