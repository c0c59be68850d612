"""The paper's Tables 3 to 5 and 8 to 14 by one function: runs in rows; scores, and what training took, in columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import Interval
from datpo.report.accounts import account
from datpo.report.notes import DIFFERENCES_HEADING
from datpo.report.runs import Results, Run, benchmark_label
from datpo.report.scores import Column, Metric, Score, column_k, difference, scores
from datpo.report.sheet import Cell, Content, Gap, Part, write_sheet, write_text
from datpo.report.studies.data import study_results, study_training
from datpo.report.studies.notes import study_notes
from datpo.report.studies.published import AVERAGE, TITLES, Published, load_published
from datpo.report.studies.study import LOG_COLUMNS, SCORE_COLUMNS, Row, Study, load_study
from datpo.report.training import Training

STEP = "seconds per step"
LOG_TITLES = {
    "tokens_per_question": ("", "tokens per question"),
    "leaves": ("", "leaves per question"),
    "hours": ("", "hours"),
    "seconds_rollout": (STEP, "rollout"),
    "seconds_diversity": (STEP, "diversity"),
    "seconds_update": (STEP, "update"),
    "seconds_other": (STEP, "other"),
    "seconds_step": (STEP, "whole step"),
}
SCORE_DIGITS = 1
AHEAD = ("ahead", "ahead_low", "ahead_high")
NO_INTERVAL = Interval(math.nan, math.nan, math.nan)
LOG_DIGITS = {"tokens_per_question": 1, "leaves": 1, "hours": 1}  # the rest: 2, as in the paper
MOST_DIGITS = 4


class Heading(NamedTuple):
    """A column: of `SCORE_COLUMNS` on a benchmark (or `Average`), or of `LOG_COLUMNS` on none."""

    column: str
    benchmark: str | None


class Entry(NamedTuple):
    """A number of the table, by how much it is ahead of the row it is held against, and the files behind it."""

    row: Row
    run: Run
    heading: Heading
    score: Score
    ahead: Interval | None
    paper: float | None
    n: str
    k: int | None
    files: Sequence[Path]


@dataclass(frozen=True)
class StudyTable:
    """All that stands in the table of a study; results are None if it shows no scores."""

    study: Study
    results: Results | None
    training: Mapping[Run, Sequence[Training]]
    published: Published

    @property
    def headings(self) -> list[Heading]:
        """The columns in their order; all scores of a benchmark stand beside each other."""
        metrics = [column for column in self.study.columns if column in SCORE_COLUMNS]
        several = [AVERAGE] if len(self.study.benchmarks) > 1 else []
        found: list[Heading] = []
        for column in self.study.columns:
            if column in LOG_COLUMNS:
                found.append(Heading(column, None))
            elif column == metrics[0]:
                found += [Heading(metric, name) for name in [*self.study.benchmarks, *several] for metric in metrics]
        return found

    def paper(self, run: Run, label: str, heading: Heading) -> float | None:
        """The paper's number for a cell, at the paper's scale only; an average only over the same benchmarks."""
        if self.study.scale != "paper":
            return None
        if heading.benchmark == AVERAGE and not self.published.averages_over(self.study.benchmarks):
            return None
        return self.published.value(run.model, label, heading.benchmark, heading.column)

    def ahead(self, run: Run, heading: Heading) -> Interval | None:
        """By how much a score is above that of the row it is held against, in points, paired by problem."""
        against = self.study.against
        if self.results is None or against is None or run == against.of(run.model):
            return None
        return difference(self.results, run, against.of(run.model), score_column(heading))

    def title(self, heading: Heading) -> tuple[str, str]:
        """The heading of a column: benchmark, and metric with its k; or what it says of the training."""
        if heading.benchmark is None or self.results is None:
            return LOG_TITLES[heading.column]
        k = column_k(self.results, score_column(heading)) or "k"
        return benchmark_label(heading.benchmark), f"{heading.column}@{k}"


def score_column(heading: Heading) -> Column:
    """A heading as `report.scores` knows it."""
    return None if heading.benchmark == AVERAGE else heading.benchmark, cast(Metric, heading.column)


def study_table(study: Path, metrics: list[Path], logs: list[Path], published: Path, out: Path) -> None:
    """Write the table of a study: each of its runs, on each of its benchmarks, and what its training took.

    Writes `NAME.csv` (a row a number, with the files it came from), `NAME.md`, `NAME.tex` (booktabs) and `NAME.html`
    into a folder, NAME being the study's.

    Args:
        study: settings of the study.
        metrics: metrics files of all its runs, seeds and benchmarks; none if it shows no scores.
        logs: training logs `…/MODEL/METHOD/RUN/seedN/metrics.jsonl` of all its trained runs and seeds.
        published: the paper's numbers (YAML, a section of the study's name); shown only if the scale is `paper`.
        out: the folder.

    Raises:
        InputError: a run, seed or benchmark of the study without its files, or files that cannot stand in one table.
    """
    table = _load(load_study(study), metrics, logs, published)
    entries = _entries(table)
    name, out = table.study.study, Path(out)
    write_text(out / f"{name}.csv", _tidy(table, entries).to_csv(index=False))
    title = f"{TITLES.get(name, name)}, at scale {table.study.scale}"
    write_sheet(
        out / name,
        title,
        [_scores_part(table, entries), *_ahead_parts(table, entries)],
        study_notes(
            table.study,
            table.results,
            table.training,
            table.published,
            marked=any(entry.score.mark for entry in entries),
        ),
    )


def _load(study: Study, metrics: Sequence[Path], logs: Sequence[Path], published: Path) -> StudyTable:
    scored = bool(set(study.columns) & set(SCORE_COLUMNS))
    if scored != bool(metrics):
        needs = "needs metrics files and was given none" if scored else "shows no scores but was given metrics files"
        raise InputError(f"study {study.study!r} {needs}")
    results = _rows_alone(study, study_results(study, metrics)) if scored else None
    return StudyTable(study, results, study_training(study, logs), load_published(published, study.study))


def _rows_alone(study: Study, results: Results) -> Results:
    """Without runs that are no row and seeds that are not asked for: the best is the best of what is shown."""
    rows = {row.of(model): row for model in study.models for row in study.rows}
    return Results(
        tuple(
            result
            for result in results.everything
            if result.run in rows and (result.seed in study.seeds or not rows[result.run].trained)
        )
    )


def _entries(table: StudyTable) -> list[Entry]:
    columns = [score_column(heading) for heading in table.headings if heading.benchmark is not None]
    found = {} if table.results is None else scores(table.results, columns)
    entries = []
    for model in table.study.models:
        for row in table.study.rows:
            run = row.of(model)
            for heading in table.headings:
                paper = table.paper(run, row.label, heading)
                if heading.benchmark is not None and table.results is not None:
                    column = score_column(heading)
                    made = _made(table.results, run, column)
                    ahead = table.ahead(run, heading)
                    entries.append(Entry(row, run, heading, found[run, column], ahead, paper, *made))
                elif row.trained:
                    logs = table.training[run]
                    files = [log.path for log in logs]
                    score = log_score(logs, heading.column)
                    entries.append(Entry(row, run, heading, score, None, paper, "", None, files))
    return entries


def _made(results: Results, run: Run, column: Column) -> tuple[str, int | None, list[Path]]:
    """n, k and the metrics files of a score."""
    named = results.benchmarks if column[0] is None else [column[0]]
    of_cell = [result for name in named for result in results.of(run, name)]
    n = " ".join(str(n) for n in dict.fromkeys(result.document["n"] for result in of_cell))
    return n, column_k(results, column), [result.path for result in of_cell]


def log_score(logs: Sequence[Training], column: str) -> Score:
    """The mean over seeds of what a training took, and its spread; of one training there is no interval."""
    seeds = [_of_training(log, column) for log in logs]
    spread = float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None
    return Score(NO_INTERVAL._replace(value=float(np.mean(seeds))), spread)


def _of_training(log: Training, column: str) -> float:
    took = account([log.steps])
    if column == "hours":
        return took.seconds / 3600
    if column == "seconds_step":
        return took.seconds / took.steps
    if column.startswith("seconds_"):
        if column not in log.steps:
            raise InputError(f"{log.path}: no step has the key {column!r}; is this a training log?")
        return float(log.steps[column].mean())
    return float(getattr(took, column))


def _tidy(table: StudyTable, entries: Sequence[Entry]) -> pd.DataFrame:
    """One row a number."""
    against = table.study.against.label if table.study.against else ""
    return pd.DataFrame(
        {
            "study": table.study.study,
            "scale": table.study.scale,
            "model": entry.run.model,
            "label": entry.row.label,
            "method": entry.run.method,
            "run": entry.run.run,
            "benchmark": entry.heading.benchmark or "",
            "column": entry.heading.column,
            "n": entry.n,
            "k": "" if entry.k is None else entry.k,
            **dict(zip(Interval._fields, (round(value, 4) for value in entry.score.interval), strict=True)),
            "seed_sd": None if entry.score.spread is None else round(entry.score.spread, 4),
            "mark": entry.score.mark,
            "against": against if entry.ahead else "",
            **dict(zip(AHEAD, (round(value, 4) for value in entry.ahead or NO_INTERVAL), strict=True)),
            "paper": entry.paper,
            "difference": None if entry.paper is None else round(entry.score.interval.value - entry.paper, 4),
            "files": " ".join(map(str, entry.files)),
        }
        for entry in entries
    )


def _scores_part(table: StudyTable, entries: Sequence[Entry]) -> Part:
    digits = {heading: _digits(heading, entries) for heading in table.headings}
    cells = {(entry.run, entry.heading): Cell(entry.score, entry.paper, digits[entry.heading]) for entry in entries}
    rows: list[list[Content]] = [
        [model, row.label, *(cells.get((row.of(model), heading)) for heading in table.headings)]
        for model in table.study.models
        for row in table.study.rows
    ]
    return Part("", [("", "model"), ("", "run"), *map(table.title, table.headings)], rows)


def _ahead_parts(table: StudyTable, entries: Sequence[Entry]) -> list[Part]:
    """The paired differences to the row that the others are held against, if there is one."""
    against, headings = table.study.against, [heading for heading in table.headings if heading.benchmark is not None]
    if against is None or not headings:
        return []
    gaps = {(entry.run, entry.heading): Gap(entry.ahead, SCORE_DIGITS) for entry in entries if entry.ahead}
    rows: list[list[Content]] = [
        [model, f"{row.label} − {against.label}", *(gaps[row.of(model), heading] for heading in headings)]
        for model in table.study.models
        for row in table.study.rows
        if row != against
    ]
    return [Part(DIFFERENCES_HEADING, [("", "model"), ("", "run"), *map(table.title, headings)], rows)]


def _digits(heading: Heading, entries: Sequence[Entry]) -> int:
    """As many decimals as the paper has; of what training took two digits of the smallest number, if those are more."""
    if heading.benchmark is not None:
        return SCORE_DIGITS
    values = [entry.score.interval.value for entry in entries if entry.heading == heading]
    least = min((value for value in values if value > 0), default=1.0)
    return min(MOST_DIGITS, max(LOG_DIGITS.get(heading.column, 2), 1 - math.floor(math.log10(least))))
