"""Where two checkers differ: how often, and on which answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from datpo.core.errors import InputError
from datpo.core.files import Row, whole_file
from datpo.core.problem import Problem
from datpo.evaluate.samples import matching_problems, read_scores
from datpo.report.markup import markdown, pipe_table

IDENTITY = ("model", "method", "run", "seed", "benchmark")
SAME = (*IDENTITY, "samples_sha256", "truncated", "n")  # in the headers of both scores
HEADER = ("model", "run", "seed", "benchmark", "samples", "right: first", "right: second", "only first", "only second")
RUNS_IN_A_SHEET = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula begins so
ITEM = (*IDENTITY, "problem", "sample", "key", "first", "first_answer", "second", "second_answer")


def compare_checkers(scores: list[Path], others: list[Path], problems: list[Path], out: Path) -> None:
    """Count the samples that one of two checkers calls right and the other does not, and list them all.

    Writes `checkers.md`, a row for each checkpoint and benchmark, and `checkers.csv`, a row for each sample. Answers
    are what a model wrote: a cell that a spreadsheet would run as a formula begins with an apostrophe.

    Args:
        scores: scores files of the first checker.
        others: scores files of the second checker, of the same samples, in the same order.
        problems: the problems of each, in the same order.
        out: the folder.

    Raises:
        InputError: two files of different samples or keys, or scores by several pairs of checkers.
    """
    counts, items, names = [], [], set()
    for first, second, file in zip(scores, others, problems, strict=True):
        (header, rows), (other, other_rows) = read_scores(first), read_scores(second)
        if any(header[key] != other[key] for key in SAME):
            raise InputError(
                f"{second}: scores of other samples than {first} has, or cut off otherwise; score both again"
            )
        names.add((header["checker"], other["checker"]))
        known = matching_problems(first, header, rows, file)
        matching_problems(second, other, other_rows, file)
        theirs = {(row["problem"], row["sample"]): row for row in other_rows}
        pairs = [(row, theirs[row["problem"], row["sample"]]) for row in rows]
        counts.append(_counts(header, pairs))
        items += [_item(header, one, two, known) for one, two in pairs if _is_right(one) != _is_right(two)]
    if len(names) != 1:
        raise InputError(f"{len(names)} pairs of checkers; scores in one report must share theirs: {sorted(names)}")
    out = Path(out)
    with whole_file(out / "checkers.csv") as handle:
        handle.write(pd.DataFrame(items, columns=ITEM).map(_unrun).to_csv(index=False))
    with whole_file(out / "checkers.md") as handle:
        handle.write(_page(counts, *names.pop()))


def _is_right(row: Row) -> bool:
    return bool(row["verdict"] == "right")


def _counts(header: Mapping[str, Any], pairs: list[tuple[Row, Row]]) -> list[str]:
    rights = [(_is_right(one), _is_right(two)) for one, two in pairs]
    numbers = [
        len(pairs),
        sum(one for one, _ in rights),
        sum(two for _, two in rights),
        sum(one and not two for one, two in rights),
        sum(two and not one for one, two in rights),
    ]
    return [markdown(str(header[key])) for key in IDENTITY if key != "method"] + [f"{number:,}" for number in numbers]


def _unrun(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = cell.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair fits into no file
    return f"'{text}" if text.startswith(RUNS_IN_A_SHEET) else text


def _item(header: Mapping[str, Any], one: Row, two: Row, known: Mapping[str, Problem]) -> list[object]:
    return [
        *(header[key] for key in IDENTITY),
        *(one["problem"], one["sample"], known[one["problem"]].answer),
        *(one["verdict"], one["answer"], two["verdict"], two["answer"]),
    ]


def _page(counts: list[list[str]], first: str, second: str) -> str:
    return (
        "# Where two checkers differ\n\n"
        f"Samples called right by the first checker ({markdown(first)}) and by the second ({markdown(second)}). "
        "Every sample that only one of them calls right stands in checkers.csv, with key, answers and verdicts.\n\n"
        f"{pipe_table(HEADER, counts, 4)}\n"
    )
