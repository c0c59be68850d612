"""Two ways of doing one thing, timed in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Timed = Callable[[], float]  # does the work, returns its CPU seconds


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: what is done.
        against: the other way of doing it, or what is measured if there is none.
        ours, theirs: medians in `unit`.
        ratio, low, high: median of the repeats' ratios theirs / ours, and their least and most.
        target: what the ratio (or, without another way, our value) should be.
        met: whether it is.
        limit: what no packing or reuse could beat, where that is known: theirs / ours in tokens.
        peer: versions in the other side's environment, where it has one of its own.
    """

    name: str
    against: str
    ours: float
    theirs: float | None
    unit: str
    ratio: float | None
    low: float | None
    high: float | None
    target: str
    met: bool
    limit: float | None = None
    peer: str = ""


def cpu(work: Callable[[], object]) -> Timed:
    """The CPU seconds of this process that a piece of work takes: other jobs on the machine count little."""

    def timed() -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    return timed


def wall(work: Callable[[], object]) -> Timed:
    """The seconds on the clock, for work that is spread over processes."""

    def timed() -> float:
        before = time.perf_counter()
        work()
        return time.perf_counter() - before

    return timed


def compared(
    name: str,
    against: str,
    ours: Timed,
    theirs: Timed,
    least: float,
    repeats: int,
    limit: float | None = None,
    within: float | None = None,
    warm: bool = True,
    unit: str = "CPU s",
) -> Row:
    """Ours and theirs in turn, after one unmeasured round of both.

    Args:
        name: what is done.
        against: the other way of doing it.
        ours: our way.
        theirs: the other way.
        least: the ratio theirs / ours to reach.
        repeats: measured rounds.
        limit: the ratio that nothing could exceed.
        warm: whether there is that unmeasured round; minutes long, it is left out.
        unit: of the times.
        within: how near to the limit the ratio has to be as well, e.g. 1.35: limit / ratio at most that.
    """
    if warm:
        ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    ratios = [b / a for a, b in pairs]
    ratio = float(np.median(ratios))
    target = [f">= {least:g}x"] if least else []
    met = ratio >= least
    if limit is not None and within is not None:
        target.append(f"<= {within:g}x of the limit")
        met = met and limit / ratio <= within
    return Row(
        name, against, *(float(np.median(side)) for side in zip(*pairs, strict=True)), unit,
        ratio, min(ratios), max(ratios), ", ".join(target), met, limit,
    )  # fmt: skip


def single(name: str, what: str, work: Timed, most: float, unit: str, repeats: int, scale: float = 1.0) -> Row:
    """Something with a limit of its own: the median of some repeats, after one that is not measured."""
    work()
    seconds = float(np.median([work() for _ in range(repeats)])) * scale
    return Row(name, what, seconds, None, unit, None, None, None, f"< {most:g} {unit}", seconds < most)
