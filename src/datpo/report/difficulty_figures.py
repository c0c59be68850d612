"""Figures about difficulty: group size against the problems trained on, and what a training did with each level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from datpo.core.errors import InputError
from datpo.report.averages import at_k, average, basis
from datpo.report.figures import draw_pass
from datpo.report.runs import Results
from datpo.report.scores import METRICS, Metric
from datpo.report.studies.data import base_of, study_results, study_training
from datpo.report.studies.study import Row, Study, load_study
from datpo.report.style import Look, draw_bars, figure, from_zero, legend_of, looks, ordered_looks, outer_labels, titles
from datpo.report.training import WORDS, AtLevel, Training, in_order_of_levels

Grid = Mapping[str, Mapping[int, Row]]  # the row trained on a subset with groups of a size
ASIDE = 0.07  # octaves between lines, so that their intervals do not hide each other
PARTS = {"whole training": 1.0, "last half of its steps": 0.5}
OF_LEVELS: dict[str, Callable[[AtLevel], float]] = {
    "leaves per problem": lambda level: level.leaves / level.problems,
    "PassRate (%)": lambda level: 100 * level.solved / level.problems,
}


def figure1(study: Path, metrics: list[Path], out: Path) -> None:
    """Show what larger groups are worth on easy, medium and hard training problems: avg@k and pass@k against G.

    Bars are 95 % intervals by bootstrap over problems, drawn anew within each benchmark. In as many passes over the
    problems a larger group takes more updates: of checkpoints after equally many the figure says so in its title.

    Args:
        study: whose rows have `numbers.roots` (G) and were trained on a `train.subset`.
        metrics: their metrics files, and those of the untrained model if it is to be shown.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: rows without a group size or with the same one, missing metrics, or such that cannot be compared.
    """
    plan = load_study(study)
    results, grid = study_results(plan, metrics), _grid(plan)
    look = ordered_looks(list(grid))
    note = f"Scale: {plan.scale}. {basis(results)} Bars: 95 % intervals by bootstrap over problems."
    legend = {f"trained on {subset} problems": look[subset] for subset in grid} | _untrained_legend(results)
    with figure(out, titles(plan.models, _when(results)), len(METRICS), legend, note, across=2, height=2.4) as groups:
        for model, panels in zip(plan.models, groups, strict=True):
            for panel, metric in zip(panels, METRICS, strict=True):
                _draw_sizes(panel, results, grid, model, metric, look)
                panel.set_title(at_k(results, metric))
            outer_labels(panels, "group size G", "%")


def figure7(study: Path, metrics: list[Path], out: Path) -> None:
    """Show pass@k against k for every group size: subset by subset of the training problems, benchmark by benchmark.

    Args, Raises: see `figure1`.
    """
    plan = load_study(study)
    results, grid = study_results(plan, metrics), _grid(plan)
    sizes = [f"G = {size}" for size in sorted({size for rows in grid.values() for size in rows})]
    look, untrained = ordered_looks(sizes), _untrained_legend(results)
    note = f"Scale: {plan.scale}. Lines: means over seeds. Bands: 95 % intervals by bootstrap over problems."
    pairs = list(product(plan.models, grid))
    of_models = dict(zip(plan.models, titles(plan.models, _when(results)), strict=True))
    named = [", ".join(filter(None, (of_models[model], f"trained on {subset} problems"))) for model, subset in pairs]
    with figure(out, named, len(results.benchmarks), look | untrained, note) as groups:
        for (model, subset), panels in zip(pairs, groups, strict=True):
            lines = {f"G = {size}": (row.of(model), look[f"G = {size}"]) for size, row in sorted(grid[subset].items())}
            if base_of(model) in results.runs:
                lines |= {name: (base_of(model), untrained[name]) for name in untrained}
            for panel, benchmark in zip(panels, results.benchmarks, strict=True):
                draw_pass(panel, results, lines, benchmark)
            outer_labels(panels, "k", "pass@k (%)")


def figure5(study: Path, logs: list[Path], out: Path) -> None:
    """Show what a training spent on each level of difficulty, and how often that found a right answer.

    Leaves per problem, and the share of problems with a right leaf (PassRate), by level of the training problems: over
    the whole training and over the last half of its steps. Thin lines: seeds; bold: their mean.

    Args:
        study: whose trainings are shown.
        logs: their training logs, the rows with `levels`.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: a missing log, or one whose rows do not say what was rolled out by level.
    """
    plan = load_study(study)
    training = study_training(plan, logs)
    rows = {row.label: row for row in plan.rows if row.trained}
    look = looks(list(training))
    legend = {label: look[row.of(plan.models[0])] for label, row in rows.items()}
    note = (
        f"Scale: {plan.scale}. By level of the training problems. PassRate: problems with a right leaf, of those "
        "rolled out. Thin: seeds; bold: their mean."
    )
    kinds = list(product(OF_LEVELS, PARTS))
    with figure(out, titles(plan.models), len(kinds), legend, note, across=len(PARTS), height=2.0) as groups:
        for model, panels in zip(plan.models, groups, strict=True):
            of_model = {label: training[row.of(model)] for label, row in rows.items()}
            for panel, (quantity, part) in zip(panels, kinds, strict=True):
                _draw_levels(panel, of_model, quantity, PARTS[part], legend)
                panel.set_title(part)
            outer_labels(panels, "level")
            for panel, (quantity, _) in zip(panels[:: len(PARTS)], kinds[:: len(PARTS)], strict=True):
                panel.set_ylabel(quantity)


def _grid(study: Study) -> Grid:
    """The trained rows by subset of the training problems and by group size, subsets in the study's order."""
    grid: dict[str, dict[int, Row]] = {}
    for row in study.rows:
        if not row.trained:
            continue
        size, subset = row.numbers.get("roots"), row.train.get("subset") or "all"
        if type(size) is not int:
            raise InputError(f"study {study.study!r}: row {row.label!r} has no group size, numbers.roots")
        twin = grid.setdefault(subset, {}).setdefault(size, row)
        if twin is not row:
            raise InputError(
                f"study {study.study!r}: rows {twin.label!r} and {row.label!r} both train on {subset} problems in "
                f"groups of {size}"
            )
    if not grid:
        raise InputError(f"study {study.study!r}: no row is a training")
    return grid


def _when(results: Results) -> str:
    """Where in training the checkpoints are, if not at its end: `after equally many updates`, `after 500 updates`."""
    if results.at is None:
        return ""
    unit, _, amount = results.at.partition("-")
    return f"after {f'{int(amount):,}' if amount else 'equally many'} {WORDS.get(unit, unit)}"


def _untrained_legend(results: Results) -> dict[str, Look]:
    return legend_of([base_of(model) for model in results.models if base_of(model) in results.runs])


def _draw_sizes(panel: Any, results: Results, grid: Grid, model: str, metric: Metric, look: Mapping[str, Look]) -> None:
    for index, (subset, rows) in enumerate(grid.items()):
        sizes = sorted(rows)
        beside = [size * 2 ** (ASIDE * (index - (len(grid) - 1) / 2)) for size in sizes]
        found = [average(results, rows[size].of(model), metric) for size in sizes]
        draw_bars(panel, subset, beside, found, look[subset])
    if (base := base_of(model)) in results.runs:
        value, low, high = average(results, base, metric)
        line = looks([base])[base]
        panel.axhspan(low, high, color=line["color"], alpha=0.12, linewidth=0)
        panel.axhline(value, label=base.label, color=line["color"], linestyle=line["linestyle"])
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(sorted({size for rows in grid.values() for size in rows})))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))


def _draw_levels(
    panel: Any,
    training: Mapping[str, Sequence[Training]],
    quantity: str,
    share: float,
    look: Mapping[str, Look],
) -> None:
    """A quantity against the level, a line for each run; levels that it never met are left out of its line."""
    of = {label: [_by_level(log, quantity, share) for log in logs] for label, logs in training.items()}
    levels = sorted({level for seeds in of.values() for seed in seeds for level in seed}, key=in_order_of_levels)
    for label, seeds in of.items():
        value_SL = np.array([[seed.get(level, np.nan) for level in levels] for seed in seeds])
        if len(seeds) > 1:
            for value_L in value_SL:
                panel.plot(range(len(levels)), value_L, color=look[label]["color"], linewidth=0.5, alpha=0.45)
        panel.plot(range(len(levels)), np.mean(value_SL, axis=0), label=label, **look[label])
    panel.set_xticks(range(len(levels)), levels)
    from_zero(panel, 1)


def _by_level(log: Training, quantity: str, share: float) -> dict[str, float]:
    return {level: OF_LEVELS[quantity](sums) for level, sums in log.levels(share).items() if sums.problems}
