"""From a number of a table back to the raw files that it was counted from, and counted again from these.

The raw files are the verdicts and texts of single samples, the logs of trainings, and saved rollout trees. Which of
them are behind which row: docs/paper_index.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.report.recount.table import DIFFERENCES, FORKS, METRICS, SCORES, STUDY, Table, Written, read_table

# Decimals of a table's numbers.
PLACES = {STUDY: 4, SCORES: 2, DIFFERENCES: 2, FORKS: 5}
FEWER = {"forks": 2, "leaves": 2, "tokens": 2}
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
    whole = read_table(table)
    failed = []
    for number in _asked(table, row, len(whole.rows)):
        traced = _traced(number, whole)
        if not traced["agrees"]:
            failed.append(f"row {number} ({traced['number']}): {traced['problem']}")
        yield traced
    if failed:
        more = f"; and {len(failed) - LISTED} more" if len(failed) > LISTED else ""
        raise InputError(f"{table}: not what the raw files hold: {'; '.join(failed[:LISTED])}{more}")


def _asked(table: Path, words: Sequence[str], count: int) -> list[int]:
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= count:
            raise InputError(f"{table}: --row must be a number from 1 to {count}, not {word!r}")
    return [int(word) for word in words] or list(range(1, count + 1))


def _traced(number: int, table: Table) -> Row:
    row = table.rows[number - 1]
    traced: Row = {"row": number, "number": _what(table.kind, row)}
    try:
        found = table.recount(row)
        written = {column: _number(column, row[column]) for column in found.numbers if column in row}
    except (InputError, ValueError) as error:
        return traced | {
            "written": row["difference" if table.kind == DIFFERENCES else "value"],
            "counted": None,
            "agrees": False,
            "problem": str(error),
        }
    counted = {column: None if value is None else round(value, 6) for column, value in found.numbers.items()}
    odd = [
        f"{column} is {value}, counted {counted[column]}"
        for column, value in written.items()
        if not _same(value, found.numbers[column], FEWER.get(column, PLACES[table.kind]))
    ]
    traced |= {"written": written, "counted": {column: counted[column] for column in written}, "how": found.how}
    traced |= {"files": [str(file) for file in found.files], "raw_rows": found.raw_rows, "agrees": not odd}
    return traced | ({"problem": ", ".join(odd)} if odd else {})


def _what(kind: tuple[str, ...], row: Written) -> str:
    if kind == FORKS:
        return f"{row['table']}: {row['measure']} of {row['rule']}, {row['model']} on {row['benchmark']}"
    name = row["column" if kind == STUDY else "metric"]
    metric = f"{name}@{row['k'] or 'k'} on {row['benchmark']}" if name in METRICS else name
    spent = "" if row.get("at", "end") == "end" else f" at equal {row['at']}"
    of = f"{row['label']} − {row['against']}" if kind == DIFFERENCES else row["label"]
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
