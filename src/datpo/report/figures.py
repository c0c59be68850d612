"""Figures over whatever runs there are: pass@k against k, and how training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import Floats, Interval, intervals
from datpo.report.runs import Results, Run, benchmark_label, in_order, load_results
from datpo.report.style import Look, draw_line, figure, from_zero, legend_of, looks, outer_labels, titles
from datpo.report.training import Training, load_training

SMOOTH = 0.1  # share of a run's steps in its running mean
POINTS = 200  # of a mean over seeds
LABELS = 9  # that fit under a panel
VALIDATION = "validation_avg"  # looked at every so many steps only
CURVES = {
    "reward": "reward",
    VALIDATION: "right on the validation split",
    "zero_signal": "zero-signal share",
    "entropy": "entropy (nats/token)",
    "response_length": "response length (tokens)",
    "truncated": "truncated share",
    "no_answer": "share without an answer",
    "tokens_per_question": "tokens per question",
    "updates": "updates per step",
    "ratio_min": "smallest ratio",
    "ratio_max": "largest ratio",
    "ratio_mean": "mean ratio",
    "clip_share": "clipped share",
    "sampler_gap": "gap to the sampler (nats)",
    "grad_norm": "gradient norm",
    "sibling_diversity": "sibling diversity",
}
SHARES = ("zero_signal", "truncated", "no_answer", "clip_share")
AGAINST = {
    "steps": ("step", 1.0),
    "tokens": ("total_tokens", 1.0),
    "hours": ("seconds", 3600.0),
}  # column, a unit's worth
AXES = {"steps": "steps", "tokens": "generated tokens", "hours": "hours of training"}


def pass_at_k_figure(metrics: list[Path], out: Path) -> None:
    """Show how far the chance of one right answer grows with the number of tries, benchmark by benchmark.

    One line a run: pass@k (Chen et al. 2021) of every problem, averaged over its seeds and over problems, with
    its 95 % interval by bootstrap over problems as a band. Seeds are averaged, not poured together: the
    samples of several checkpoints differ more than those of any one of them.

    Args:
        metrics: metrics files of all runs, seeds and benchmarks.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: runs that cannot stand in one figure (see `datpo.report.runs.load_results`).
    """
    results = load_results(metrics)
    look = looks(results.runs)
    note = f"Scale: {results.scale}. Lines: means over seeds. Bands: 95 % intervals by bootstrap over problems."
    groups = titles(results.models)
    with figure(out, groups, len(results.benchmarks), legend_of(results.runs), note) as drawn:
        for model, panels in zip(results.models, drawn, strict=True):
            lines = {run.label: (run, look[run]) for run in results.of_model(model)}
            for panel, benchmark in zip(panels, results.benchmarks, strict=True):
                draw_pass(panel, results, lines, benchmark)
            outer_labels(panels, "k", "pass@k (%)")


def learning_curves(logs: list[Path], out: Path, against: str = "tokens") -> None:
    """Show how training went, against what was spent on it: the same budget is the same place.

    A thin line a seed, smoothed by a running mean; a bold line a run: the mean of its seeds as far as all of
    them go. A quantity that some log lacks is left out.

    Args:
        logs: training logs `…/MODEL/METHOD/RUN/seedN/metrics.jsonl`.
        out: the PNG; an SVG is written beside it.
        against: `steps`, `tokens` (generated) or `hours` (validation not counted).

    Raises:
        InputError: no log of a trained run, a log that cannot be read, or another `against`.
    """
    if against not in AGAINST:
        raise InputError(f"curves are drawn against {', '.join(AGAINST)}, not {against!r}")
    training = load_training(logs)
    if not training:
        raise InputError("no training logs given: the figure needs the metrics.jsonl of a trained run")
    runs = in_order(log.run for log in training)
    models = list(dict.fromkeys(run.model for run in runs))
    note = f"Running means over {100 * SMOOTH:.0f} % of steps (validation: as it is). Thin: seeds; bold: their mean."
    curves = [column for column in CURVES if _is_logged(column, training)]
    with figure(out, titles(models), len(curves), legend_of(runs), note) as groups:
        for model, panels in zip(models, groups, strict=True):
            of_model = [log for log in training if log.run.model == model]
            for panel, column in zip(panels, curves, strict=True):
                _draw_curves(panel, of_model, column, runs, against)
            outer_labels(panels, AXES[against])


def pass_curve(results: Results, run: Run, benchmark: str) -> dict[int, Interval]:
    """For every k of a benchmark a run's pass@k, in percent, with its interval over problems."""
    found = results.of(run, benchmark)
    values_KP = [
        100 * np.mean([[value for _, value in sorted(seed.at_k(k).items())] for seed in found], axis=0)
        for k in found[0].ks
    ]
    return dict(zip(found[0].ks, intervals(np.transpose(values_KP), *results.bootstrap), strict=True))


def draw_pass(panel: Any, results: Results, lines: Mapping[str, tuple[Run, Look]], benchmark: str) -> None:
    """pass@k against k of some runs on one benchmark, a line with its band each."""
    faint = min(0.13, 0.4 / len(lines))  # many bands lie on each other
    for name, (run, look) in lines.items():
        curve = pass_curve(results, run, benchmark)
        draw_line(panel, name, list(curve), list(curve.values()), look, faint)
    ks = results.of(results.runs[0], benchmark)[0].ks
    if panel.get_ylim()[0] < 0:  # the margin below curves that touch zero
        from_zero(panel, 1)
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(ks[:: -(-len(ks) // LABELS)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
    panel.set_title(benchmark_label(benchmark))


def smoothed(log: Training, column: str, against: str = "tokens") -> tuple[Floats, Floats]:
    """What was spent so far, and a column's centred running mean over a share of the steps; validation as it is."""
    steps = log.steps.dropna(subset=[VALIDATION]) if column == VALIDATION else log.steps
    window = 1 if column == VALIDATION else max(1, round(SMOOTH * len(steps)))
    values = pd.to_numeric(steps[column], errors="coerce")
    mean = values.rolling(window, center=True, min_periods=1).mean()
    spent, unit = AGAINST[against]
    return steps[spent].to_numpy(dtype=float) / unit, mean.to_numpy(dtype=float)


def mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean of the seeds' curves where equally much was spent, from where all have begun to where one ends."""
    grid = np.linspace(max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves), POINTS)
    return grid, np.mean([np.interp(grid, x, y) for x, y in curves], axis=0)


def _is_logged(column: str, training: Sequence[Training]) -> bool:
    """Whether all logs have a column, and some a number in it."""
    return all(column in log.steps for log in training) and any(log.steps[column].notna().any() for log in training)


def _draw_curves(panel: Any, training: Sequence[Training], column: str, runs: Sequence[Run], against: str) -> None:
    look = looks(runs)
    for run in in_order(log.run for log in training):
        curves = [smoothed(log, column, against) for log in training if log.run == run]
        style = {key: look[run][key] for key in ("color", "linestyle")}
        if len(curves) > 1:
            for spent, values in curves:
                panel.plot(spent, values, color=look[run]["color"], linewidth=0.5, alpha=0.45)
        marked = {"marker": look[run]["marker"], "markevery": (POINTS // 10, POINTS // 5)}
        panel.plot(*mean_curve(curves), linewidth=1.6, label=run.label, **style, **marked)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    if against != "hours":  # 20m would be read as minutes
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    if column in SHARES:  # a share that stays at zero should look like zero
        from_zero(panel, 0.01)
    panel.set_title(CURVES[column])
