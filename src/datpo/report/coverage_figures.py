"""Figures of what a run covers: majority votes, and the problems that training gained and lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from datpo.core.errors import InputError
from datpo.core.tree import Ints
from datpo.evaluate.metrics import pass_at_k
from datpo.report.averages import at_k, average, basis, problem_values
from datpo.report.runs import Result, Results, Run, benchmark_label, load_results
from datpo.report.studies.data import base_of, study_results
from datpo.report.studies.study import load_study
from datpo.report.style import LINE, draw_dots, figure, legend_of, looks, name_rows, titles

ROOM = 0.75  # inches of a panel for its title and axis
MARKS = 8  # on a line


class Coverage(NamedTuple):
    """Problems solved at least once, in numbers; means over seeds.

    Attributes:
        lost, gained: by the untrained model alone, by the run alone.
        both, neither: the others.
        lost_by_chance, gained_by_chance: as many would be if the two were equally good at every problem.
    """

    lost: float
    gained: float
    both: float
    neither: float
    lost_by_chance: float
    gained_by_chance: float


def figure6(study: Path, metrics: list[Path], out: Path) -> None:
    """Show what the answer is worth that most of k samples agree on, and what voting gains over a single sample.

    maj@k, and maj@k - avg@k problem by problem, averaged over benchmarks, with 95 % intervals by bootstrap over
    problems: those of the gain are of paired differences.

    Args:
        study: whose rows are shown.
        metrics: their metrics files.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: missing metrics, or such that cannot be compared.
    """
    plan = load_study(study)
    results = study_results(plan, metrics)
    look = looks(results.runs)
    labels = [row.label for row in plan.rows]
    note = f"Scale: {plan.scale}. {basis(results)} Bars: 95 % intervals by bootstrap over problems, the gain's paired."
    with figure(out, titles(plan.models), 2, {}, note, across=2, height=ROOM + LINE * len(labels)) as groups:
        for model, (worth, gain) in zip(plan.models, groups, strict=True):
            runs = [row.of(model) for row in plan.rows]
            votes = [average(results, run, "maj") for run in runs]
            gains = [average(results, run, "maj", over="avg") for run in runs]
            draw_dots(worth, labels, votes, [look[run] for run in runs])
            draw_dots(gain, labels, gains, [look[run] for run in runs])
            gain.tick_params(labelleft=False)
            gain.axvline(0, color="0.6", linewidth=0.8, zorder=0)
            worth.set_xlabel(f"{at_k(results, 'maj')} (%)")
            gain.set_xlabel(f"{at_k(results, 'maj')} - avg@k (points)")


def gained_figure(metrics: list[Path], out: Path) -> None:
    """Show which problems a training gained and which it lost, against the untrained model.

    Bars: problems solved at least once in all samples by the untrained model alone (lost) and by the run alone
    (gained). A problem that is rarely solved comes and goes by luck, so a tick says how many would if the two were
    equally good at every problem: with all right samples of the two dealt out anew. Lines: the change of the share of
    right samples, problems sorted by it.

    Args:
        metrics: metrics files of the runs and of their untrained models.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: no untrained model, no other run, or what cannot be compared.
    """
    results = load_results(metrics)
    trained = [run for run in results.runs if run.method != "base"]
    for run in trained:
        if base_of(run.model) not in results.runs:
            raise InputError(f"{run}: no metrics of its untrained model, {base_of(run.model)}; give them too")
    if not trained:
        raise InputError("no metrics of a trained run given: there is nothing to hold against the untrained model")
    models = list(dict.fromkeys(run.model for run in trained))
    height = max(1.75, ROOM + 1.6 * LINE * max(len([run for run in trained if run.model == model]) for model in models))
    note = (
        f"Scale: {results.scale}. Left: problems solved in at least one of all samples by one of the two only; ticks: "
        "as many as chance would give two equally good ones. Right: share of right samples, trained minus untrained, "
        "problems sorted. Means over seeds."
    )
    named = [
        ", ".join(filter(None, (of_model, benchmark_label(benchmark))))
        for of_model, benchmark in product(titles(models), results.benchmarks)
    ]
    with figure(out, named, 2, legend_of(trained), note, across=2, height=height) as groups:
        for (model, benchmark), (bars, changes) in zip(product(models, results.benchmarks), groups, strict=True):
            runs = [run for run in trained if run.model == model]
            _draw_coverage(bars, results, runs, benchmark)
            _draw_changes(changes, results, runs, benchmark)


def coverage(results: Results, run: Run, benchmark: str) -> Coverage:
    """What a run solves beside its untrained model on one benchmark, the mean over pairs of their seeds."""
    pairs = product(results.of(base_of(run.model), benchmark), results.of(run, benchmark))
    return Coverage(*np.mean([_covered(base, trained) for base, trained in pairs], axis=0).tolist())


def _covered(base: Result, trained: Result) -> Coverage:
    (n_P, c_P), (m_P, d_P) = _counts(base), _counts(trained)
    before, after, ever = c_P > 0, d_P > 0, c_P + d_P > 0
    # The chance that none of a problem's right samples falls to one side when all n + m are dealt out anew.
    lost_P, gained_P = (
        np.array([1 - pass_at_k(*counts) for counts in zip(n_P + m_P, c_P + d_P, side_P, strict=True)]).ravel()
        for side_P in (m_P, n_P)
    )
    return Coverage(
        lost=float(np.sum(before & ~after)),
        gained=float(np.sum(after & ~before)),
        both=float(np.sum(before & after)),
        neither=float(np.sum(~ever)),
        lost_by_chance=float(lost_P[ever].sum()),
        gained_by_chance=float(gained_P[ever].sum()),
    )


def _counts(result: Result) -> tuple[Ints, Ints]:
    """Samples and right samples of every problem (P,), problems in ascending order of id."""
    rows = sorted(result.document["per_problem"], key=lambda row: str(row["problem"]))
    return np.array([row["n"] for row in rows]), np.array([row["correct"] for row in rows])


def _draw_coverage(panel: Any, results: Results, runs: Sequence[Run], benchmark: str) -> None:
    found = [coverage(results, run, benchmark) for run in runs]
    reach = 1.25 * max(1.0, *(max(of.lost, of.gained, of.lost_by_chance, of.gained_by_chance) for of in found))
    for row, of in enumerate(found):
        panel.barh(row, -of.lost, height=0.55, color="0.8", edgecolor="0.3", linewidth=0.6, hatch="////")
        panel.barh(row, of.gained, height=0.55, color="0.35", edgecolor="0.3", linewidth=0.6)
        for x, number, side in ((-0.98 * reach, f"−{of.lost:g}", "left"), (0.98 * reach, f"+{of.gained:g}", "right")):
            panel.text(x, row, number, ha=side, va="center", fontsize=7, fontweight="bold")
        chance = [-of.lost_by_chance, of.gained_by_chance]
        panel.plot(chance, [row, row], color="black", linestyle="none", marker="|", markersize=11, markeredgewidth=1.2)
    name_rows(
        panel, [f"{run.label}\nboth {of.both:g}, neither {of.neither:g}" for run, of in zip(runs, found, strict=True)]
    )
    panel.set_xlim(-reach, reach)
    panel.axvline(0, color="0.2", linewidth=0.8)
    panel.spines["left"].set_visible(False)
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):g}"))
    panel.set_xlabel("problems: lost (left), gained (right)")


def _draw_changes(panel: Any, results: Results, runs: Sequence[Run], benchmark: str) -> None:
    look = looks(runs)
    for run in runs:
        before_P = problem_values(results, base_of(run.model), benchmark, "avg")
        change_P = np.sort(problem_values(results, run, benchmark, "avg") - before_P)[::-1]
        share_P = 100 * (np.arange(len(change_P)) + 0.5) / len(change_P)
        apart = max(1, len(change_P) // MARKS)
        panel.plot(share_P, change_P, label=run.label, markevery=(apart // 2, apart), **look[run])
    panel.axhline(0, color="0.2", linewidth=0.8)
    panel.set_xlim(0, 100)
    panel.set_xlabel("problems, most gained first (%)")
    panel.set_ylabel("change (points)")
