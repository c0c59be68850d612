"""How long a run trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datpo.learn.state import RunState


@dataclass(frozen=True)
class Duration:
    """Rollout `steps`, generated `tokens`, optimiser `updates`; of several, until all are spent."""

    amounts: Mapping[str, float]

    def fraction(self, state: RunState) -> float:
        """The share that is spent of the one that will last longest, 0 to 1."""
        return min(1.0, *(spent / self.amounts[unit] for unit, spent in self._spent(state).items()))

    def reached(self, state: RunState) -> set[str]:
        """Those that are spent."""
        return {unit for unit, spent in self._spent(state).items() if spent >= self.amounts[unit]}

    def over(self, state: RunState) -> bool:
        """Whether all are spent."""
        return self.reached(state) == set(self.amounts)

    def _spent(self, state: RunState) -> dict[str, float]:
        spent = {"steps": state.step, "tokens": state.tokens, "updates": state.updates}
        return {unit: float(spent[unit]) for unit in self.amounts}
