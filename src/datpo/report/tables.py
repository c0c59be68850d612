"""The main table: every run of every model on every benchmark (the paper's Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from datpo.evaluate.bootstrap import Interval
from datpo.report.accounts import Account, accounts
from datpo.report.notes import DIFFERENCES_HEADING, table_notes
from datpo.report.paper import AVERAGE, Paper, load_paper
from datpo.report.runs import Results, Run, benchmark_label, load_results
from datpo.report.score_rows import rate_rows, score_rows, with_averages
from datpo.report.scores import (
    Column,
    Difference,
    Score,
    column_k,
    columns,
    differences,
    scores,
)
from datpo.report.sheet import Cell, Content, Gap, Part, write_sheet, write_text
from datpo.report.training import load_training

ACCOUNT_COLUMNS = (
    *("seeds", "steps", "leaves per question", "tokens per question", "generated tokens", "trained tokens", "updates"),
    *("entropy at end", "zero-signal", "wall time"),
)
ACCOUNT_DIGITS = {
    "steps": 1,
    "leaves": 1,
    "tokens_per_question": 1,
    "generated_tokens": None,
    "trained_tokens": None,
    "updates": 1,
    "entropy_at_end": 4,
    "zero_signal": 4,
    "seconds": 1,
}
RATES_HEADING = "Samples cut off / without an answer / that repeat another of their problem, in percent"
Rows = list[list[Content]]


@dataclass(frozen=True)
class Table:
    """All that stands in the main table."""

    results: Results
    scores: Mapping[tuple[Run, Column], Score]
    costs: Mapping[Run, Account]
    differences: Sequence[Difference]
    paper: Paper

    def published(self, run: Run, column: Column) -> float | None:
        """The paper's value of a cell, at the paper's scale only."""
        return self.paper.value(self.results, run, column) if self.results.scale == "paper" else None

    def title(self, column: Column) -> tuple[str, str]:
        """The heading of a column: benchmark, and metric with its k."""
        benchmark, metric = column
        name = AVERAGE if benchmark is None else benchmark_label(benchmark)
        return name, f"{metric}@{column_k(self.results, column) or 'k'}"


def table2(metrics: list[Path], logs: list[Path], published: Path, out: Path) -> None:
    """Put all runs side by side: what they score, how sure that is, and what their training took.

    Writes `table2.csv`, `table2_scores.csv` (every score with how it was made), `table2_differences.csv`, `table2.md`,
    `table2.tex` (booktabs) and `table2.html` into a folder.

    Args:
        metrics: metrics files of all runs (the base model's too), seeds and benchmarks.
        logs: training logs `…/MODEL/METHOD/RUN/seedN/metrics.jsonl` of all trained runs.
        published: the paper's numbers (YAML, section `table2`); shown only if the scale is `paper`.
        out: the folder.

    Raises:
        InputError: runs that cannot stand in one table (another n, a missing benchmark, k, seed or log).
    """
    results = load_results(metrics)
    table = Table(
        results,
        scores(results, columns(results)),
        accounts(results, load_training(logs)),
        differences(results),
        load_paper(published),
    )
    notes = table_notes(results, table.scores, table.costs, table.paper)
    out = Path(out)
    write_text(out / "table2.csv", _wide(table).to_csv(index=False))
    write_text(out / "table2_scores.csv", with_averages(score_rows(results), results).to_csv(index=False))
    write_text(out / "table2_differences.csv", _long(table).to_csv(index=False))
    write_sheet(out / "table2", f"Benchmarks at scale {results.scale}{_equal(results)}", _parts(table), notes)


def _equal(results: Results) -> str:
    return f", at equal {results.at}" if results.at else ""


def _parts(table: Table) -> list[Part]:
    def header(titles: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return [("", "model"), ("", "run"), *titles]

    account = [("", name) for name in ACCOUNT_COLUMNS]
    benchmarks = [("", benchmark_label(name)) for name in table.results.benchmarks]
    parts = [
        Part("", header(_titles(table)), _score_rows(table)),
        Part("What each training took", header(account), _account_rows(table)),
        Part(RATES_HEADING, header(benchmarks), _rate_rows(table)),
    ]
    if table.differences:
        differences = _difference_rows(table)
        parts.append(Part(DIFFERENCES_HEADING, header(_titles(table)), differences))
    return parts


def _wide(table: Table) -> pd.DataFrame:
    """One row a run; scores in percent with one decimal."""
    rows = []
    for run in table.results.runs:
        row: dict[str, object] = {"scale": table.results.scale, **asdict(run), "label": run.label}
        row["seeds"] = len(table.results.seeds(run))
        for column in columns(table.results):
            name = f"{column[0] or 'average'}_{column[1]}"
            row |= {f"{name}{part}": value for part, value in _score_fields(table, run, column).items()}
        cost = table.costs.get(run)
        for key, digits in ACCOUNT_DIGITS.items():
            row[key] = "" if cost is None else round(getattr(cost, key), digits)
        rows.append(row)
    return pd.DataFrame(rows)


def _score_fields(table: Table, run: Run, column: Column) -> dict[str, object]:
    """The parts of a cell by the end of their column's name."""
    (value, low, high), spread, mark = table.scores[run, column]
    fields: dict[str, object] = {
        "": round(value, 1),
        "_low": round(low, 1),
        "_high": round(high, 1),
        "_seed_sd": None if spread is None else round(spread, 1),
        "_best": mark == "best",
        "_k": column_k(table.results, column) or "",
    }
    if table.results.scale == "paper":
        paper = table.published(run, column)
        fields |= {"_paper": paper, "_minus_paper": None if paper is None else round(value - paper, 1)}
    return fields


def _long(table: Table) -> pd.DataFrame:
    """One row a difference, in percentage points, with the metrics files of both runs."""
    header = [*("model", "method", "run", "label", "against"), *("benchmark", "metric", "k"), *Interval._fields]
    header += ["files", "files_against"]
    rows = [
        [
            *asdict(found.run).values(),
            found.run.label,
            found.against.label,
            found.benchmark or AVERAGE,
            found.metric,
            column_k(table.results, (found.benchmark, found.metric)) or "",
            *(round(value, 2) for value in found.interval),
            *(_files(table.results, run, found.benchmark) for run in (found.run, found.against)),
        ]
        for found in table.differences
    ]
    return pd.DataFrame(rows, columns=header).rename(columns={"value": "difference"})


def _files(results: Results, run: Run, benchmark: str | None) -> str:
    named = results.benchmarks if benchmark is None else [benchmark]
    return " ".join(str(result.path) for name in named for result in results.of(run, name))


def _score_rows(table: Table) -> Rows:
    return [
        [
            run.model,
            run.label,
            *(Cell(table.scores[run, column], table.published(run, column)) for column in columns(table.results)),
        ]
        for run in table.results.runs
    ]


def _account_rows(table: Table) -> Rows:
    rows: Rows = []
    for run in table.results.runs:
        cost = table.costs.get(run)
        cells = [None] * (len(ACCOUNT_COLUMNS) - 1) if cost is None else _account_cells(cost)
        rows.append([run.model, run.label, str(len(table.results.seeds(run))), *cells])
    return rows


def _account_cells(cost: Account) -> list[str]:
    return [
        f"{cost.steps:,.0f}",
        f"{cost.leaves:,.1f}",
        f"{cost.tokens_per_question:,.1f}",
        f"{cost.generated_tokens:,.0f}",
        f"{cost.trained_tokens:,.0f}",
        f"{cost.updates:,.0f}",
        f"{cost.entropy_at_end:.3f}",
        f"{cost.zero_signal:.2f}",
        _duration(cost.seconds),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _rate_rows(table: Table) -> Rows:
    rows = rate_rows(table.results)
    return [[run.model, run.label, *rows[run]] for run in table.results.runs]


def _difference_rows(table: Table) -> Rows:
    rows: dict[tuple[Run, Run], list[Content]] = {}
    for found in table.differences:
        head: list[Content] = [found.run.model, f"{found.run.label} − {found.against.label}"]
        rows.setdefault((found.run, found.against), head).append(Gap(found.interval))
    return list(rows.values())


def _titles(table: Table) -> list[tuple[str, str]]:
    return [table.title(column) for column in columns(table.results)]
