"""Local files of problems, and what a row of any source says.

A source is read as it is: every row becomes a problem, whatever its text and key are worth (`checks`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.files import is_unicode, located_rows
from datpo.core.problem import Problem

FIELDS = {
    "id": ("id", "unique_id"),
    "problem": ("problem", "question"),
    "answer": ("answer",),
    "level": ("level",),
    "subject": ("subject", "type"),
    "source": ("source",),
}
"""A problem's fields -> the columns they usually stand in."""
NEEDED = ("problem", "answer")
# "Level 5", 5.0 and "Level ?" occur; -2 and 2.7 are no levels.
_LEVEL = re.compile(r"(?<![-−.\d])([0-9]{1,9})(?:\.0*)?(?![.\d])")


def load_file(path: str | Path, entry: Mapping[str, Any], name: str, source: str | None = None) -> list[Problem]:
    """Every row of a JSON Lines file as a problem, in its order; one without an id is called after its place.

    Args:
        path: the file.
        entry: a data entry of the configuration; of it count `fields`, a map from a problem's fields to columns where
            they are not the usual ones, `answer_after`, the mark behind which the key stands in its column, and
            `sha256`, the only content that will do.
        name: of the data set.
        source: where the file came from; a row's own source goes first.

    Raises:
        InputError: no such file, other bytes than `sha256`, no column for text or key, or a row whose text, key or id
            is missing or neither text nor a number.
    """
    if "sha256" in entry and file_hash(path) != entry["sha256"]:  # before anything is made of the content
        raise InputError(
            f"data set {name!r}: {source or path} has the SHA-256 {file_hash(path)}, not the `sha256` "
            f"{entry['sha256']} that is asked for; it is another file, or not whole"
        )
    rows = list(located_rows(path))
    if not rows:
        raise InputError(f"{path}: no problems in this file")
    columns = columns_of(entry, name, list(dict.fromkeys(column for _, row in rows for column in row)))
    return [
        problem_of_row(where, row, columns, f"{name}/{n}", source or str(path), entry.get("answer_after"))
        for n, (where, row) in enumerate(rows)
    ]


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r}: cannot be read ({error})") from None


def columns_of(entry: Mapping[str, Any], name: str, present: Sequence[str]) -> dict[str, str]:
    """Field -> the column it stands in: the one the entry names, else the first usual one."""
    named = entry.get("fields", {})
    usual = {field: next((each for each in FIELDS[field] if each in present), None) for field in FIELDS}
    columns = {field: named.get(field) or column for field, column in usual.items()}
    lost = [field for field in columns if columns[field] not in present and (field in named or field in NEEDED)]
    if lost:
        raise InputError(
            f"data set {name!r}: no column for {' and '.join(map(repr, lost))} among {list(present)}; name it under "
            "`fields`"
        )
    return {field: column for field, column in columns.items() if column}


def problem_of_row(
    where: str, row: Mapping[str, Any], columns: Mapping[str, str], default_id: str, source: str, mark: str | None
) -> Problem:
    """A row as a problem; what is empty stays empty. The key is what follows the last `mark` in its column."""
    texts = {field: _text(where, row, column, field) for field, column in columns.items()}
    if mark is not None and texts["answer"]:
        _, found, key = texts["answer"].rpartition(mark)
        if not found:
            raise InputError(
                f"{where}: {columns['answer']!r} holds no {mark!r}, after which `answer_after` has the key"
            )
        texts["answer"] = key.strip()
    level = _LEVEL.search(texts.get("level", ""))
    return Problem(
        id=texts.get("id") or default_id,
        problem=texts["problem"],
        answer=texts["answer"],
        level=int(level[1]) if level else None,
        subject=texts.get("subject") or None,
        source=texts.get("source") or source,
    )


def _text(where: str, row: Mapping[str, Any], column: str, field: str) -> str:
    """What a row has in a column, as text; "" for null."""
    value = row.get(column)
    if value is None and (column in row or field not in NEEDED):
        return ""
    return text_of(where, column, value)


def text_of(where: str, column: str, value: Any) -> str:
    """A value of a row as text, without spaces around it.

    Raises:
        InputError: it is neither text nor a finite number, or no whole text: half a surrogate pair stands in it.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where}: {column!r} must be text or a number, not {value!r:.80}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where}: {column!r} must be text or a finite number, not {value!r}")
    if not is_unicode(text := str(value)):
        raise InputError(f"{where}: {column!r} holds half a surrogate pair, which is no character: {text!r:.80}")
    return text.strip()


def check_rows(problems: Sequence[Problem], entry: Mapping[str, Any], name: str) -> None:
    """Refuse a source with another number of rows than the entry's `count`, or without an id that it says to `drop`.

    Raises:
        InputError: the numbers, or the ids, are told.
    """
    count = entry.get("count", len(problems))
    if len(problems) != count:
        raise InputError(
            f"data set {name!r}: the source has {len(problems)} rows where `count` says {count}; has it changed? "
            "Pin the revision that was meant, or look at what is new and correct `count`"
        )
    if missing := {str(each) for each in entry.get("drop", ())} - {problem.id for problem in problems}:
        raise InputError(f"data set {name!r}: ids under `drop` that are not there: {some(missing)}")


def some(ids: Iterable[str], most: int = 20) -> str:
    """The first few of many ids, readable in one line."""
    ids = sorted(ids)
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
