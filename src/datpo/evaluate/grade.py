"""Grading the responses in a file, to see what a checker makes of texts of any origin."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import Row, located_rows
from datpo.core.problem import Problem
from datpo.evaluate.verify import Domain, checker_of

Item = tuple[str | int, str, str]  # id, key, response
STARTS_A_WORKER: Item = ("", "f(x)+1", r"\boxed{1+f(y)}")


def grade_file(file: Path, /, checker: str = "own_unboxed") -> Iterator[Row]:
    """Print the verdict on each mathematical response in a JSON Lines file, one line each, in the order of the file.

    Verdicts are `right`, `wrong`, `no_answer`, `timeout` (over the limit of time or memory for one item) and
    `bad_key` (no answer can be compared with this key). docs/checker.md has the conventions.

    Args:
        file: rows with the keys `id`, `gold` and `response`; other keys are passed over. A `gold` or `response` of
            null is one that is missing.
        checker: `own_unboxed`, the default; `own`, the same without its guesses at answers that stand in no box, as
            in training and evaluation; or `datpo_release`, the one of DATPO's released code.

    Returns:
        Rows `{"id", "verdict", "extracted", "checker", "seconds"}`; `extracted` is null if there is no answer.

    Raises:
        InputError: an unknown checker; the file is missing, or a line is not JSON, lacks a key or holds something
            else in it; the file and the line are named, and nothing is graded.
    """
    domain = checker_of("math", checker)
    items = [_item(place, row) for place, row in located_rows(file)]
    return _graded(domain, items)


def _graded(domain: Domain, items: list[Item]) -> Iterator[Row]:
    """As many at a time as there are workers, so that the seconds of one hold no waiting for others."""
    at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(lambda item: _row(domain, item), [STARTS_A_WORKER] * at_once))
        yield from threads.map(lambda item: _row(domain, item), items)


def _row(domain: Domain, item: Item) -> Row:
    name, gold, response = item
    start = time.perf_counter()
    verdict = domain.grade(Problem(str(name), "", gold), response)
    seconds = time.perf_counter() - start
    return {
        "id": name,
        "verdict": verdict.verdict,
        "extracted": verdict.answer,
        "checker": domain.checker,
        "seconds": round(seconds, 6),
    }


def _item(place: str, row: Row) -> Item:
    for key in ("id", "gold", "response"):
        if key not in row:
            raise InputError(f"{place}: key {key!r} is missing")
    if type(row["id"]) not in (str, int):
        raise InputError(f"{place}: 'id' must be a string or a whole number, not {row['id']!r}")
    return row["id"], _text(place, row, "gold"), _text(place, row, "response")


def _text(place: str, row: Row, key: str) -> str:
    """The text under a key; numbers as written, "" for null."""
    value = row[key]
    if value is None:
        return ""
    if type(value) in (int, float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise InputError(f"{place}: {key!r} must be text, not {value!r}")
    return value
