"""All runs at equal steps, tokens and updates in one table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from datpo.core.errors import InputError
from datpo.core.files import whole_file
from datpo.evaluate.bootstrap import Interval
from datpo.report.markup import interval_text, markdown, pipe_table
from datpo.report.paper import AVERAGE
from datpo.report.runs import METHOD_LABELS

HEADER = (
    *("at equal", "run", "avg@k", "pass@k", "avg@k − GRPO", "pass@k − GRPO", "steps", "updates", "generated tokens"),
    *("trained tokens", "leaves per question", "entropy at end", "wall time"),
)
NOTES = (
    "Percent, the mean over benchmarks and training seeds, with 95 % intervals over problems; ± is the standard "
    "deviation between seeds. Differences are paired by problem, seeds averaged; a variant is held against GRPO's of "
    "the same name.",
    "Each training is read where it first had spent its steps, tokens or updates, so what a method anneals has got as "
    "far as its training had: the share of the budget that was to last longest. The tables beside this have the rest.",
)


def budget_table(tables: list[Path], differences: list[Path], out: Path) -> None:
    """Put the tables of runs that have spent equally much under each other, as Markdown.

    Args:
        tables: files `…/at-UNIT/table2.csv`.
        differences: the `table2_differences.csv` beside each.
        out: the Markdown file.

    Raises:
        InputError: a table stands in no folder `at-UNIT`.
    """
    rows: list[list[str]] = []
    for table, paired in zip(tables, differences, strict=True):
        unit = table.parent.name.removeprefix("at-")
        if unit == table.parent.name:
            raise InputError(f"{table}: a table at equal budgets stands in a folder at-UNIT, such as at-tokens")
        frame, against = pd.read_csv(table), _against_grpo(pd.read_csv(paired))
        for row in frame.to_dict("records"):
            if row["method"] != "base" or not rows:
                rows.append(_cells(row, unit, against))
    with whole_file(out) as handle:
        handle.write("# Equal budgets\n\n")
        handle.write(pipe_table(HEADER, rows, 2) + "\n\n")
        handle.write("\n".join(f"- {note}" for note in NOTES) + "\n")


def _against_grpo(frame: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """The difference to GRPO in the average over benchmarks by model, run and metric, as text."""
    mine = frame[(frame["benchmark"] == AVERAGE) & frame["against"].str.startswith(METHOD_LABELS["grpo"])]
    return {
        (row["model"], row["run"], row["metric"]): interval_text(Interval(row["difference"], row["low"], row["high"]))
        for row in mine.to_dict("records")
    }


def _cells(row: dict[str, object], unit: str, against: dict[tuple[str, str, str], str]) -> list[str]:
    base = row["method"] == "base"
    scores = [_score(row, metric) for metric in ("avg", "pass")]
    gaps = [against.get((str(row["model"]), str(row["run"]), metric), "–") for metric in ("avg", "pass")]
    spent = ["–"] * 7 if base else _spent(row)
    return ["–" if base else unit, markdown(str(row["label"])), *scores, *gaps, *spent]


def _score(row: dict[str, object], metric: str) -> str:
    value, low, high, spread = (row[f"average_{metric}{part}"] for part in ("", "_low", "_high", "_seed_sd"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]" + ("" if pd.isna(spread) else f" ± {spread:.1f}")


def _spent(row: dict[str, object]) -> list[str]:
    whole = [f"{row[key]:,.0f}" for key in ("steps", "updates", "generated_tokens", "trained_tokens")]
    return [*whole, f"{row['leaves']:.1f}", f"{row['entropy_at_end']:.3f}", f"{row['seconds']:.0f} s"]
