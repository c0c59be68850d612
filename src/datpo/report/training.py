"""Training logs: what each step of a run looked like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.core.kinds import OBJECT, Kinds, check_kinds, map_of, whole
from datpo.report.runs import Run

LOGGED = (
    *("step", "reward", "zero_signal", "entropy", "response_length", "truncated", "ratio_max", "clip_share"),
    *("prompts", "leaves", "trained_tokens", "reached", "tokens_per_question", "updates", "total_tokens"),
    *("total_updates", "seconds"),
)
SPENT = {"steps": "step", "tokens": "total_tokens", "updates": "total_updates"}  # the column of each unit
WORDS = {"steps": "steps", "tokens": "generated tokens", "updates": "updates"}
LEVEL: Kinds = dict.fromkeys(("problems", "leaves", "solved"), whole())


class AtLevel(NamedTuple):
    """What was rolled out for the problems of one level."""

    problems: int
    leaves: int
    solved: int  # problems with a right leaf


@dataclass(frozen=True)
class Training:
    """How one seed of a run was trained: its log, one row a step."""

    path: Path
    run: Run
    seed: int
    steps: pd.DataFrame

    def until(self, at: str | None) -> pd.DataFrame:
        """The steps up to the one that first had spent its `at` (`tokens`, ...); all of them for None.

        Raises:
            InputError: the training never had.
        """
        if at is None:
            return self.steps
        there = [at in reached for reached in self.steps["reached"]]
        if not any(there):
            raise InputError(f"{self.path}: no step of this log says that it reached its {at}")
        return self.steps.iloc[: there.index(True) + 1]

    def spent(self, unit: str, at: str | None = None) -> float:
        """How many steps, tokens or updates it took to a checkpoint on the way, or (None) to the end.

        Raises:
            InputError: an unknown unit, or a checkpoint that the training never came to.
        """
        if unit not in SPENT:
            raise InputError(f"{self.path}: no column of this log counts {unit!r}; known are {', '.join(SPENT)}")
        return float(self.until(at)[SPENT[unit]].iloc[-1])

    def levels(self, share: float = 1.0) -> dict[str, AtLevel]:
        """Problems, leaves and solved problems by level, summed over the last `share` of the steps.

        Levels ascend; problems without one are under "none", at the end.

        Raises:
            InputError: a step does not say.
        """
        sums: dict[str, list[int]] = {}
        rows = self.steps.iloc[-max(1, round(share * len(self.steps))) :].to_dict("records")
        for row in rows:
            place = f"{self.path}: step {row['step']}"
            check_kinds(place, row, {"levels": map_of(OBJECT)})
            for level, counts in row["levels"].items():
                check_kinds(f"{place}: level {level}", counts, LEVEL)
                before = sums.setdefault(level, [0] * len(LEVEL))
                sums[level] = [total + counts[key] for total, key in zip(before, LEVEL, strict=True)]
        return {level: AtLevel(*sums[level]) for level in sorted(sums, key=in_order_of_levels)}


def in_order_of_levels(level: str) -> tuple[float, str]:
    """A sort key: levels ascend, what is no number stands behind."""
    return (float(level) if level.isdecimal() else float("inf"), level)


def load_training(paths: Iterable[Path]) -> list[Training]:
    """Read training logs; what each belongs to stands in its path, `…/model/method/run/seedN/metrics.jsonl`.

    A log of the base model is passed over: its pre-training is part of no method's budget.

    Raises:
        InputError: a path of another shape, an empty log, a missing column, or steps out of order.
    """
    found = [(Path(path), *_identity(Path(path))) for path in paths]
    return [Training(path, run, seed, _steps(path)) for path, run, seed in found if run.method != "base"]


def _identity(path: Path) -> tuple[Run, int]:
    parts = path.resolve().parts
    seed = re.fullmatch(r"seed(\d+)", parts[-2]) if len(parts) >= 5 else None
    if seed is None:
        raise InputError(f"{path}: a training log stands at MODEL/METHOD/RUN/seedN/{path.name}")
    return Run(*parts[-5:-2]), int(seed[1])


def _steps(path: Path) -> pd.DataFrame:
    steps = pd.DataFrame(read_jsonl(path))
    if steps.empty:
        raise InputError(f"{path}: no step in this log; has the training begun?")
    for column in LOGGED:
        if column not in steps:
            raise InputError(f"{path}: no step has the key {column!r}; is this a training log?")
    if not steps["step"].is_monotonic_increasing or not steps["step"].is_unique:
        raise InputError(f"{path}: its steps are not in ascending order; did two jobs write to it?")
    return steps
