"""Figures of scores along the training: from the untrained model over checkpoints on the way to the end."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from datpo.report.averages import at_k, average
from datpo.report.runs import benchmark_label
from datpo.report.scores import Metric
from datpo.report.studies.data import Point, load_along
from datpo.report.studies.study import load_study
from datpo.report.style import Look, draw_line, figure, looks, titles
from datpo.report.training import WORDS

ASIDE = 0.012  # of an axis, between the bars of two runs
BARS = "Bars: mean and standard deviation of the evaluation runs of one checkpoint, where there are several."


class Spread(NamedTuple):
    """Mean and standard deviation of the evaluation runs of a checkpoint, in percent; means over seeds."""

    mean: float
    deviation: float


def figure4(study: Path, metrics: list[Path], logs: list[Path], out: Path) -> None:
    """Show avg@k along the training: where methods rise, level off or fall.

    From the untrained model at 0 over the study's checkpoints to the end, each at what its log says was spent; bands
    are 95 % intervals by bootstrap over problems. Means over seeds.

    Args:
        study: its rows, and its `checkpoints`.
        metrics: metrics files of all checkpoints, of the ends and of the untrained models.
        logs: training logs of all rows.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: a checkpoint without metrics or that a log does not know, or what cannot be compared.
    """
    _along(study, metrics, logs, out, "avg")


def figure11(study: Path, metrics: list[Path], logs: list[Path], out: Path) -> None:
    """Show pass@k along the training: whether coverage is lost on the way.

    As `figure4`. Where samples were drawn in several evaluation runs, bars show the mean of their pass@k and its
    standard deviation, which is what the paper shows: how far the same checkpoint's samples scatter, not how far other
    problems would move it.

    Args, Raises: see `figure4`.
    """
    _along(study, metrics, logs, out, "pass")


def _along(study: Path, metrics: list[Path], logs: list[Path], out: Path, metric: Metric) -> None:
    plan = load_study(study)
    along = load_along(plan, metrics, logs)
    rows = {row.label: row for row in plan.rows if row.trained}
    look = looks([row.of(model) for model in plan.models for row in rows.values()])
    legend = {label: look[row.of(plan.models[0])] for label, row in rows.items()}
    places = list(product(along.end.benchmarks, plan.checkpoints))
    bars = [BARS] if metric == "pass" else []
    note = ["At 0: the untrained model. Bands: 95 % intervals by bootstrap over problems.", *bars]
    with figure(out, titles(plan.models), len(places), legend, f"Scale: {plan.scale}. {' '.join(note)}") as groups:
        for model, panels in zip(plan.models, groups, strict=True):
            for panel, (benchmark, unit) in zip(panels, places, strict=True):
                points = {label: along.points(row.of(model), unit) for label, row in rows.items()}
                _draw_scores(panel, points, metric, benchmark, legend)
                if metric == "pass":
                    _draw_spreads(panel, points, benchmark, legend)
                panel.set_title(benchmark_label(benchmark))
                panel.set_xlabel(WORDS[unit])
                panel.set_ylabel(f"{at_k(along.end, metric, [benchmark])} (%)")


def _draw_scores(
    panel: Any, lines: dict[str, list[Point]], metric: Metric, benchmark: str, look: dict[str, Look]
) -> None:
    for label, points in lines.items():
        found = [average(point.results, point.run, metric, [benchmark]) for point in points]
        draw_line(
            panel, label, [point.amount for point in points], found, look[label], faint=min(0.13, 0.4 / len(lines))
        )
    panel.xaxis.set_major_locator(MaxNLocator(5))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))


def _draw_spreads(panel: Any, lines: dict[str, list[Point]], benchmark: str, look: dict[str, Look]) -> None:
    end = max(points[-1].amount for points in lines.values())
    for index, (label, points) in enumerate(lines.items()):
        aside = ASIDE * end * (index - (len(lines) - 1) / 2)
        spreads = {point.amount + aside: spread for point in points if (spread := spread_of(point, benchmark))}
        if spreads:
            means, deviations = np.array(list(spreads.values())).T
            colour = look[label]["color"]
            panel.errorbar(list(spreads), means, deviations, fmt="_", color=colour, elinewidth=0.9, capsize=2)


def spread_of(point: Point, benchmark: str) -> Spread | None:
    """How far the evaluation runs of a checkpoint scatter in pass@k; None where there is one run, or k exceeds it."""
    k = str(point.results.table_k(benchmark))
    runs = [result.document["runs"]["pass"].get(k) for result in point.results.of(point.run, benchmark)]
    if not all(runs):
        return None
    values_SR = 100 * np.array(runs, dtype=float)
    return Spread(float(values_SR.mean()), float(np.sqrt(values_SR.var(axis=1, ddof=1).mean())))
