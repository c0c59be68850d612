"""What the paper reports in its Table 2, and whether our methods stand in the same order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import Interval
from datpo.report.runs import METHOD_LABELS, Results, Run, benchmark_label
from datpo.report.scores import METRICS, Column, Metric

AVERAGE = "Average"


@dataclass(frozen=True)
class Paper:
    """The paper's Table 2: percent by model, method, benchmark (or Average) and metric."""

    table: dict[str, dict[str, dict[str, tuple[float, float]]]]
    benchmarks: tuple[str, ...]

    def value(self, results: Results, run: Run, column: Column) -> float | None:
        """The paper's number for a cell of ours; None where it has none that means the same.

        Its average stands beside ours only if ours is over the same benchmarks.
        """
        ours = {benchmark_label(name) for name in results.benchmarks}
        if not run.named_after_method or (column[0] is None and ours != set(self.benchmarks)):
            return None
        name = AVERAGE if column[0] is None else benchmark_label(column[0])
        cell = self._rows(run.model).get(run.label, {}).get(name)
        return None if cell is None else cell[METRICS.index(column[1])]

    def knows(self, model: str) -> bool:
        """Whether the paper trained this model."""
        return bool(self._rows(model))

    def higher(self, a: str, b: str, metric: Metric, model: str | None) -> bool:
        """Whether method `a` has the higher average than `b`, for one model or (None) for all of them."""
        models = [self._rows(model)] if model else list(self.table.values())
        index = METRICS.index(metric)
        return all(a in rows and b in rows and rows[a][AVERAGE][index] > rows[b][AVERAGE][index] for rows in models)

    def _rows(self, model: str) -> dict[str, dict[str, tuple[float, float]]]:
        return {name.lower(): rows for name, rows in self.table.items()}.get(model.lower(), {})


def load_paper(published: Path) -> Paper:
    """Read the section `table2` of the published numbers: for every model, rows of [avg@k, pass@k] pairs.

    Raises:
        InputError: the file or its section is missing or has another shape.
    """
    try:
        section = yaml.safe_load(Path(published).read_text(encoding="utf-8"))["table2"]
        names = [str(name) for name in section["benchmarks"]]
        table = {
            str(model): {str(method): _cells(names, cells) for method, cells in rows.items()}
            for model, rows in section.items()
            if model != "benchmarks"
        }
    except FileNotFoundError:
        raise InputError(f"{published}: no such file") from None
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{published}: section 'table2' is missing or not as expected ({error})") from None
    return Paper(table, tuple(name for name in names if name != AVERAGE))


def _cells(names: list[str], cells: Any) -> dict[str, tuple[float, float]]:
    pairs = zip(names, cells, strict=True)
    return {name: (float(average), float(passed)) for name, (average, passed) in pairs}


def order_sentences(
    results: Results,
    paper: Paper,
    values: Callable[[Run, Column], float],
    gap: Callable[[Run, Run, Column], Interval],
) -> list[str]:
    """For each model and metric one sentence: which methods stand the other way round than in the paper.

    A model of the paper is held against its own rows; any other against the pairs of methods on whose order
    all models of the paper agree. Averages over benchmarks are compared.

    Args:
        results: whose methods are compared; variants are left out.
        paper: the published numbers.
        values: our value of a cell.
        gap: our paired difference of two runs in a column.
    """
    sentences = []
    for model in results.models:
        known = model if results.scale == "paper" and paper.knows(model) else None
        runs = [run for run in results.of_model(model) if run.named_after_method]
        runs = [run for run in runs if run.method in METHOD_LABELS]
        for metric in METRICS:
            column: Column = (None, metric)
            pairs = [pair for a, b in combinations(runs, 2) for pair in ((a, b), (b, a))]
            ordered = [(a, b) for a, b in pairs if paper.higher(a.label, b.label, metric, known)]
            reversed_ = [(a, b) for a, b in ordered if values(a, column) < values(b, column)]
            if not ordered:
                continue
            told = [_told(a, b, gap(b, a, column)) for a, b in reversed_]
            sentences.append(_sentence(model, metric, told, len(ordered), known is not None))
    return sentences


def _told(a: Run, b: Run, ahead: Interval) -> str:
    sure = "an interval without 0" if ahead.low > 0 else "an interval that includes 0"
    points = f"{ahead.value:.1f}" if ahead.value >= 0.05 else "less than 0.1"
    return f"{b.label} is above {a.label} by {points} points ({sure})"


def _sentence(model: str, metric: Metric, told: list[str], ordered: int, own_rows: bool) -> str:
    reference = "" if own_rows else " (as far as its models agree)"
    if not told:
        return f"{model}: the order of methods by average {metric}@k agrees with the paper's{reference}."
    return (
        f"{model}: the order of methods by average {metric}@k differs from the paper's{reference} in "
        f"{len(told)} of {ordered} pairs: {'; '.join(told)}."
    )
