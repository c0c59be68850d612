"""pass@k of every run taken apart: what its mean chance would give, less the gap of its unequal problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.report.documents import read_metrics
from datpo.report.runs import Run, in_order
from datpo.report.theory.gap import Decomposition, decompose

IDENTITY = ("model", "method", "run", "seed", "at", "benchmark", "n", "problems")


@dataclass(frozen=True)
class Measured:
    """pass@k of one checkpoint on one benchmark, taken apart for every k of its metrics file.

    Attributes:
        at: the checkpoint's place in its training; None at the end.
        n: samples of a problem.
        change: what is above the base model's, k by k; none for the base model, or without one.
    """

    run: Run
    seed: int
    at: str | None
    benchmark: str
    n: int
    problems: int
    parts: tuple[Decomposition, ...]
    change: tuple[Decomposition, ...] = ()

    @property
    def identity(self) -> Row:
        """Which checkpoint and benchmark, under the names of the table's columns."""
        return {**asdict(self.run), **{name: getattr(self, name) for name in IDENTITY[3:]}}


def measure(metrics: Sequence[Path], scale: str) -> list[Measured]:
    """Take pass@k of every metrics file apart; models as first met, then methods in the paper's order.

    Raises:
        InputError: no metrics, two files of one checkpoint and benchmark, or a file of another scale.
    """
    if not metrics:
        raise InputError("no metrics files given: the decomposition of pass@k needs at least one")
    found: dict[tuple[Any, ...], tuple[Path, Measured]] = {}
    for path in metrics:
        of_file = _measured(path, scale)
        key = (of_file.run, of_file.seed, of_file.at, of_file.benchmark)
        if key in found:
            raise InputError(f"{path}: same checkpoint and benchmark as {found[key][0]}; give one of them")
        found[key] = (path, of_file)
    everything = [of_file for _, of_file in found.values()]
    bases = {(each.run.model, each.benchmark): each for each in reversed(everything) if each.run.method == "base"}
    order = in_order(each.run for each in everything)
    return [
        _against(each, bases.get((each.run.model, each.benchmark)))
        for each in sorted(
            everything, key=lambda each: (order.index(each.run), each.benchmark, each.seed, str(each.at))
        )
    ]


def _measured(path: Path, scale: str) -> Measured:
    document = read_metrics(path)
    header, rows = document["header"], document["per_problem"]
    if header["scale"] != scale:
        raise InputError(f"{path}: of the scale {header['scale']!r}, not {scale!r}")
    run = Run(header["model"], header["method"], header["run"])
    ks = sorted(document["settings"]["k"])
    return Measured(
        run=run,
        seed=header["seed"],
        at=header.get("at"),
        benchmark=header["benchmark"],
        n=document["n"],
        problems=document["problems"],
        parts=tuple(decompose([row["n"] for row in rows], [row["correct"] for row in rows], ks)),
    )


def _against(measured: Measured, base: Measured | None) -> Measured:
    if base is None or measured.run.method == "base":
        return measured
    before = {part.k: part for part in base.parts}
    change = tuple(_difference(part, before[part.k]) for part in measured.parts if part.k in before)
    return replace(measured, change=change)


def _difference(part: Decomposition, base: Decomposition) -> Decomposition:
    after, before = ([*asdict(each).values()][1:] for each in (part, base))
    return Decomposition(part.k, *np.subtract(after, before).tolist())
