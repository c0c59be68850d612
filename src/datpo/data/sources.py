"""Problems somebody else wrote: from a local file, or from a hub of data sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datpo.core.errors import InputError
from datpo.core.problem import Problem, load_problems

FIELDS = {
    "id": ("id", "unique_id"),
    "problem": ("problem", "question"),
    "answer": ("answer",),
    "level": ("level",),
    "subject": ("subject", "type"),
}
"""A problem's fields -> the columns they usually stand in."""


def load_source(entry: Mapping[str, Any], name: str) -> list[Problem]:
    """The problems that a data entry of the configuration names, in the order of their source.

    An entry is `{path}`, a JSON Lines file of problems, or `{hub}`, a data set of the Hugging Face hub, with
    optionally its `revision`, `subset`, `data_files` and `split` (as `datasets.load_dataset` knows them), and
    `fields`, a map from a problem's fields to columns where they are not the usual ones. In both kinds `count`
    is the number of rows the source must have, and `drop` lists the ids of rows to set aside.

    Raises:
        InputError: no such source, another number of rows than `count`, an id in `drop` that is not there, or a
            problem without text or key.
    """
    drop = {str(each) for each in entry.get("drop", ())}
    problems = load_problems(entry["path"]) if "path" in entry else _from_hub(entry, name, drop)
    count = entry.get("count", len(problems))
    if len(problems) != count:
        raise InputError(f"data set {name!r}: {len(problems)} problems where `count` says {count}")
    missing = drop - {problem.id for problem in problems}
    if missing:
        raise InputError(f"data set {name!r}: ids under `drop` that are not there: {_some(missing)}")
    return [problem for problem in problems if problem.id not in drop]


def check_distinct(problems: Iterable[Problem], name: str) -> None:
    """Refuse a set that holds one problem twice, by id or by text.

    Raises:
        InputError: the ids of the repeated problems are listed.
    """
    seen: dict[str, str] = {}
    twice = []
    for problem in problems:
        for key in _keys(problem):
            if key in seen:
                twice.append(f"{problem.id} = {seen[key]}")
                break
            seen[key] = problem.id
    if twice:
        raise InputError(f"data set {name!r} holds problems twice: {_some(twice)}; set one of each aside with `drop`")


def check_apart(problems: Iterable[Problem], name: str, train: Iterable[Problem]) -> None:
    """Refuse a set that shares a problem with the training set, by id or by text.

    Raises:
        InputError: the ids of the shared problems are listed.
    """
    taken = {key for problem in train for key in _keys(problem)}
    shared = [problem.id for problem in problems if taken & set(_keys(problem))]
    if shared:
        raise InputError(
            f"data set {name!r} shares problems with the training set: {_some(shared)}; set them aside with "
            "`drop` in one of the two (or, if only the ids are equal, leave `id` out of its `fields`)"
        )


def normalised(text: str) -> str:
    r"""A problem's text without what two copies of it may differ in.

    That is case, spacing, punctuation (a decimal point is none), dollar signs, braces and backslashes, and the
    size variants of a macro (`\dfrac`, `\left`).
    """
    text = re.sub(r"\\(left|right)(?![a-zA-Z])|\\[dt](?=frac)", "", text.casefold())
    text = re.sub(r"(?<![0-9])[.,]|[.,](?![0-9])", "", text)
    return re.sub(r"[\s;:!?$~{}\\'\"`]", "", text)


def _keys(problem: Problem) -> tuple[str, str]:
    """What two copies of a problem have in common, the one or the other."""
    return f"id {problem.id}", f"text {normalised(problem.problem)}"


def _from_hub(entry: Mapping[str, Any], name: str, drop: set[str]) -> list[Problem]:
    from datasets import load_dataset  # a slow import that only this door needs

    hub, revision, split = entry["hub"], entry.get("revision"), entry.get("split", "train")
    try:
        rows = load_dataset(
            hub, entry.get("subset"), data_files=entry.get("data_files"), revision=revision, split=split
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"data set {name!r}: cannot load {hub!r} ({error}); check its name, `revision` and `split`, "
            "or save it as a local file of problems and give the `path`"
        ) from None
    columns = {field: _column(field, entry, rows.column_names) for field in FIELDS}
    for field in ("problem", "answer"):
        if columns[field] not in rows.column_names:
            raise InputError(
                f"data set {name!r}: no column for {field!r} among {rows.column_names}; name it under `fields`"
            )
    source = f"{hub}@{revision or 'unpinned'}:{split}"
    return [_problem(row, columns, f"{name}/{index}", source, drop) for index, row in enumerate(rows)]


def _column(field: str, entry: Mapping[str, Any], present: Sequence[str]) -> str | None:
    """The column a field stands in: the one the entry names, else the first usual one; None if there is none."""
    usual = (column for column in FIELDS[field] if column in present)
    return entry.get("fields", {}).get(field) or next(usual, None)


def _problem(
    row: Mapping[str, Any], columns: Mapping[str, str | None], default_id: str, source: str, drop: set[str]
) -> Problem:
    """A row of a data set as a problem; one that is to be dropped may be empty."""
    values = {field: row.get(column) for field, column in columns.items() if column}
    texts = {field: str(value).strip() for field, value in values.items() if value is not None}
    id = texts.get("id") or default_id
    for field in ("problem", "answer"):
        if not texts.get(field) and id not in drop:
            raise InputError(f"{source}: problem {id!r}: field {field!r} is empty; set it aside with `drop`")
    level = re.search(r"[0-9]+", texts.get("level", ""))  # "Level 5" and "Level ?" occur
    return Problem(
        id=id,
        problem=texts.get("problem", ""),
        answer=texts.get("answer", ""),
        level=int(level[0]) if level else None,
        subject=texts.get("subject"),
        source=source,
    )


def _some(ids: Iterable[str], most: int = 20) -> str:
    """The first few of many ids, readable in one line."""
    ids = sorted(ids)
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
