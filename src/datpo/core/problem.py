"""Problems: what is asked, and the key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import Row, read_jsonl, write_jsonl


@dataclass(frozen=True)
class Problem:
    """One question with its key.

    `level` runs from 1 (easiest); `source` says where the problem comes from.
    """

    id: str
    problem: str
    answer: str
    level: int | None = None
    subject: str | None = None
    source: str = ""


def load_problems(path: str | Path) -> list[Problem]:
    """Read problems from JSON Lines with the keys `id, problem, answer` and optionally `level, subject, source`.

    Raises:
        InputError: no problems, a missing or empty field, or an id that occurs twice; the id or line is named.
    """
    problems: list[Problem] = []
    seen: set[str] = set()
    for number, row in enumerate(read_jsonl(path), start=1):
        where = f"{path}: problem {row.get('id', f'in row {number}')!r}"
        problem = problem_of(where, row)
        if problem.id in seen:
            raise InputError(f"{where}: the id occurs twice; ids must be unique within a file")
        seen.add(problem.id)
        problems.append(problem)
    if not problems:
        raise InputError(f"{path}: no problems in this file")
    return problems


def problem_of(where: str, row: Row) -> Problem:
    """The problem that a row of a file describes.

    Raises:
        InputError: a missing or empty field; `where` the row stands is told.
    """
    for key in ("id", "problem", "answer"):
        if row.get(key) is None or not str(row[key]).strip():
            raise InputError(f"{where}: field {key!r} is missing or empty")
    return Problem(
        id=str(row["id"]),
        problem=str(row["problem"]),
        answer=str(row["answer"]),
        level=row.get("level"),
        subject=row.get("subject"),
        source=str(row.get("source") or ""),
    )


def questions_hash(problems: Sequence[Problem]) -> str:
    """SHA-256 over what is asked (ids and texts, in any order); a corrected answer key does not change it."""
    asked = sorted((problem.id, problem.problem) for problem in problems)
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def save_problems(path: str | Path, problems: Sequence[Problem]) -> None:
    """Write problems as JSON Lines, whole or not at all."""
    write_jsonl(path, (asdict(problem) for problem in problems))
