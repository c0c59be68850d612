"""From a number of a table back to the raw files that it was counted from, and counted again from these.

The raw files are the verdicts and texts of single samples, the logs of trainings, and saved rollout trees. Which of
them are behind which row: docs/paper_index.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from io import StringIO
from pathlib import Path

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import Row, read_text
from datpo.core.kinds import Kinds, check_kinds, whole
from datpo.report.recount.logs import recount_log
from datpo.report.recount.scores import (
    Recount,
    Scored,
    read_scored,
    recount_difference,
    recount_sampling,
    recount_score,
)
from datpo.report.recount.trees import read_grown, recount_trees
from datpo.report.runs import Run

Written = Mapping[str, str]  # a row of a table, by column
Recounter = Callable[[Written], Recount]

# The columns by which a table is known, and the decimals of its numbers.
RUN = ("model", "method", "run")
STUDY = ("study", *RUN, "label", "benchmark", "column", "k", "value", "files")
SCORES = (*RUN, "label", "benchmark", "metric", "k", "value", "samples_sha256", "checkpoint", "files")
DIFFERENCES = (*RUN, "label", "against", "benchmark", "metric", "k", "difference", "files", "files_against")
FORKS = ("table", "model", "benchmark", "rule", "structure", "measure", "value")
PLACES = {STUDY: 4, SCORES: 2, DIFFERENCES: 2, FORKS: 5}
FEWER = {"forks": 2, "leaves": 2, "tokens": 2}
METRICS = ("avg", "pass", "maj")
AHEAD = ("ahead", "ahead_low", "ahead_high")  # of a row of a study beside the one it varies
AVERAGE, ALL = "Average", "all"  # of several benchmarks; problems of all of them
BOOTSTRAP: Kinds = {"bootstrap": whole(1), "seed": whole()}
LISTED = 5  # rows of an error


def trace(table: Path, /, row: list[str]) -> Iterator[Row]:
    """Trace each number of a table to its raw files, and count it anew from them, as one JSON object a row.

    An object has `row` (from 1, beneath the header), `number` (what it is), `written` and `counted` (by column of the
    table), `how`, the raw `files`, the `raw_rows` read of them, and `agrees`: whether each written number is the
    counted one, to its last digit. If not, or if a raw file cannot be read, `problem` says what is wrong.

    Args:
        table: a CSV below `results/SCALE/tables`: table1, table3 to table14, table2_scores or table2_differences.
        row: the number of a row; several if repeated, all if there is none.

    Raises:
        InputError: no such table or row; or, behind the last object, a number that does not agree, or a raw file that
            is missing or has changed.
    """
    columns, rows = _read(table)
    recount = _recounter(table, columns, rows)
    failed = []
    for number in _asked(table, row, len(rows)):
        traced = _traced(number, columns, rows[number - 1], recount)
        if not traced["agrees"]:
            failed.append(f"row {number} ({traced['number']}): {traced['problem']}")
        yield traced
    if failed:
        more = f"; and {len(failed) - LISTED} more" if len(failed) > LISTED else ""
        raise InputError(f"{table}: not what the raw files hold: {'; '.join(failed[:LISTED])}{more}")


def _read(table: Path) -> tuple[tuple[str, ...], list[Written]]:
    """What kind of table it is, by its columns, and its rows."""
    rows: list[Written] = list(csv.DictReader(StringIO(read_text(table))))
    kinds = [columns for columns in PLACES if rows and set(columns) <= set(rows[0])]
    if not kinds:
        raise InputError(
            f"{table}: no rows that say what they were counted from; give table1, table3 to table14, table2_scores or "
            "table2_differences, as CSV, from results/SCALE/tables"
        )
    return kinds[0], rows


def _asked(table: Path, words: Sequence[str], count: int) -> list[int]:
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= count:
            raise InputError(f"{table}: --row must be a number from 1 to {count}, not {word!r}")
    return [int(word) for word in words] or list(range(1, count + 1))


def _recounter(table: Path, columns: tuple[str, ...], rows: Sequence[Written]) -> Recounter:
    """What counts a row of this table anew; it reads each file once."""
    read, grown = cache(read_scored), cache(read_grown)

    def files(row: Written, column: str = "files") -> list[Path]:
        if not row[column]:
            raise InputError("the row names no file")
        return [_found(table, name) for name in row[column].split(" ")]

    def scored(row: Written, column: str = "files") -> list[Scored]:
        found = {file: read(file) for file in files(row, column)}
        for file, each in found.items():
            header = each.document["header"]
            run = [header[key] for key in RUN]
            if column == "files":
                _check_run(row, file, run)
            elif Run(*run).label != row["against"]:
                raise InputError(f"{file}: of the run {'/'.join(run)}, not {row['against']}")
            if row["benchmark"] not in (header["benchmark"], AVERAGE, ALL):
                raise InputError(f"{file}: of benchmark {header['benchmark']!r}, not the row's")
        return list(found.values())

    def of_study(row: Written) -> Recount:
        if row["column"] in METRICS:
            k = int(row["k"]) if row["k"] else None
            counted = recount_score(scored(row), row["column"], k)
            if not row.get("against"):
                return counted
            other = scored(_row_against(row, rows))
            ahead = recount_difference(scored(row), other, row["column"], k, pooled=False).numbers
            return counted._replace(numbers={**counted.numbers, **dict(zip(AHEAD, ahead.values(), strict=True))})
        for log in files(row):
            _check_run(row, log, log.resolve().parts[-5:-2])
        return recount_log(files(row), row["column"])

    def of_scores(row: Written) -> Recount:
        found = scored(row)
        for key in ("samples_sha256", "checkpoint"):
            if row[key].split(" ") != [each.document["header"][key] for each in found]:
                raise InputError(f"{row['files']}: counted from another {key} than the row names; make the table again")
        counted = recount_score(found, row["metric"], int(row["k"]))
        sampled = recount_sampling(found, row["metric"], int(row["k"]))
        return counted._replace(numbers={**counted.numbers, **sampled})

    def of_differences(row: Written) -> Recount:
        k = int(row["k"]) if row["k"] else None
        other = scored(row, "files_against")
        return recount_difference(scored(row), other, row["metric"], k, pooled=row["benchmark"] == ALL)

    def of_forks(row: Written) -> Recount:
        folder = table.resolve().parents[1]
        settings = read_settings(_shown(folder / "settings/explorations/forks.shown.yaml"))
        check_kinds("settings/explorations/forks.shown.yaml", settings, BOOTSTRAP)
        trees = _shown(folder / "explorations/forks/trees")
        random = {each["structure"] for each in rows if each["rule"] == "random"} - {row["structure"]}
        return recount_trees(
            grown(trees / f"{row['structure']}.jsonl"),
            grown(trees / f"{random.pop()}.jsonl") if random else None,
            row["measure"],
            (settings["bootstrap"], settings["seed"]),
        )

    return {STUDY: of_study, SCORES: of_scores, DIFFERENCES: of_differences, FORKS: of_forks}[columns]


def _check_run(row: Written, file: Path, found: Sequence[str]) -> None:
    if list(found) != [row[key] for key in RUN]:
        raise InputError(f"{file}: of the run {'/'.join(found)}, not the row's")


def _row_against(row: Written, rows: Sequence[Written]) -> Written:
    """The row that a variant's is held against."""
    same = ("model", "benchmark", "column")
    for other in rows:
        if other["label"] == row["against"] and all(other[key] == row[key] for key in same):
            return other
    raise InputError(f"against {row['against']!r}, of which there is no such row")


def _found(table: Path, name: str) -> Path:
    """A file by its path in a table, which begins where the workflow ran: in a folder above the table."""
    above = (folder / name for folder in table.resolve().parents)
    return _shown(next((path for path in above if path.exists()), Path(name)))


def _shown(path: Path) -> Path:
    """The path from here, if it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _traced(number: int, columns: tuple[str, ...], row: Written, recount: Recounter) -> Row:
    traced: Row = {"row": number, "number": _what(columns, row)}
    try:
        found = recount(row)
        written = {column: _number(column, row[column]) for column in found.numbers if column in row}
    except (InputError, ValueError) as error:
        return traced | {
            "written": row["difference" if columns == DIFFERENCES else "value"],
            "counted": None,
            "agrees": False,
            "problem": str(error),
        }
    counted = {column: None if value is None else round(value, 6) for column, value in found.numbers.items()}
    odd = [
        f"{column} is {value}, counted {counted[column]}"
        for column, value in written.items()
        if not _same(value, found.numbers[column], FEWER.get(column, PLACES[columns]))
    ]
    traced |= {"written": written, "counted": {column: counted[column] for column in written}, "how": found.how}
    traced |= {"files": [str(file) for file in found.files], "raw_rows": found.raw_rows, "agrees": not odd}
    return traced | ({"problem": ", ".join(odd)} if odd else {})


def _what(columns: tuple[str, ...], row: Written) -> str:
    if columns == FORKS:
        return f"{row['table']}: {row['measure']} of {row['rule']}, {row['model']} on {row['benchmark']}"
    name = row["column" if columns == STUDY else "metric"]
    metric = f"{name}@{row['k'] or 'k'} on {row['benchmark']}" if name in METRICS else name
    spent = "" if row.get("at", "end") == "end" else f" at equal {row['at']}"
    of = f"{row['label']} − {row['against']}" if columns == DIFFERENCES else row["label"]
    return f"{row.get('study', 'table2')}: {metric} of {of}{spent}, {row['model']}"


def _number(column: str, text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{column} is {text!r}, which is no number") from None


def _same(written: float | None, counted: float | None, places: int) -> bool:
    if written is None or counted is None:
        return written is counted
    return math.isclose(written, counted, rel_tol=1e-9, abs_tol=0.5 * 10**-places * (1 + 1e-6))
