"""Sample and score files: a header line, then exactly n rows for each problem.

Both kinds of file hold one row per (problem, sample); a score row says what the verifier made of the sample.
What is read here is complete: a truncated file, a missing or a doubled row ends in an error, because a metric
over part of the samples looks exactly like a metric over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.files import Row, read_jsonl
from datpo.core.problem import Problem, load_problems, questions_hash

VERDICTS = ("right", "wrong", "no_answer", "timeout", "bad_key", "missing")
HEADER_KEYS = ("n", "problems", "questions", "temperature", "domain")
ROW_KEYS = {
    "samples": ("problem", "sample", "text", "tokens", "finish"),
    "scores": ("problem", "sample", "verdict", "answer", "class", "tokens", "finish"),
}


def read_samples(path: str | Path) -> tuple[Row, list[Row]]:
    """The header of a samples file and its rows, problem by problem in order of first appearance.

    Raises:
        InputError: no or a wrong header, several greedy samples of a problem, or a row that is missing,
            doubled or incomplete; the file and the problem are named.
    """
    header, rows = _read(Path(path), "samples")
    for row in rows:
        if row["text"] is not None and not isinstance(row["text"], str):
            raise InputError(f"{path}: problem {row['problem']!r}, sample {row['sample']}: `text` is not a string")
        if row["finish"] not in ("stop", "length") and row["text"] is not None:
            raise InputError(
                f"{path}: problem {row['problem']!r}, sample {row['sample']}: "
                f"`finish` is {row['finish']!r}, not 'stop' or 'length'"
            )
    return header, rows


def read_scores(path: str | Path) -> tuple[Row, list[Row]]:
    """The header of a scores file and its rows, problem by problem in order of first appearance.

    Raises:
        InputError: as `read_samples`, or an unknown verdict.
    """
    header, rows = _read(Path(path), "scores")
    for row in rows:
        if row["verdict"] not in VERDICTS:
            raise InputError(
                f"{path}: problem {row['problem']!r}, sample {row['sample']}: "
                f"unknown verdict {row['verdict']!r}; one of {', '.join(VERDICTS)}"
            )
    return header, rows


def by_problem(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each problem, samples ascending, problems in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["problem"], []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: int(row["sample"]))
    return groups


def matching_problems(path: Path, header: Row, rows: Sequence[Row], problems_path: Path) -> dict[str, Problem]:
    """The problems of `problems_path` by id, which are exactly the ones `rows` (of file `path`) speak about.

    Raises:
        InputError: a problem stands in only one of the two files, or asks for something else there.
    """
    problems = {problem.id: problem for problem in load_problems(problems_path)}
    sampled = {row["problem"] for row in rows}
    for lacking, ids in ((problems_path, sampled - set(problems)), (path, set(problems) - sampled)):
        if ids:
            raise InputError(
                f"{lacking}: has no problem {_listed(ids)}; {path} and {problems_path} must hold the same "
                "problems (were the samples drawn for another version of the file?)"
            )
    if questions_hash(list(problems.values())) != header["questions"]:
        raise InputError(
            f"{path}: drawn for problems with these ids but other texts than {problems_path} has now; delete the "
            "samples to draw them again"
        )
    return problems


def refuse_bad_keys(path: Path, rows: Sequence[Row]) -> None:
    """A key the checker cannot read would count every sample of its problem as wrong.

    Raises:
        InputError: lists the problems whose key could not be parsed.
    """
    ids = {row["problem"] for row in rows if row["verdict"] == "bad_key"}
    if ids:
        raise InputError(
            f"{path}: the checker cannot parse the answer of problem {_listed(ids)}; correct or remove these problems"
        )


def _read(path: Path, kind: str) -> tuple[Row, list[Row]]:
    lines = read_jsonl(path)
    if not lines or lines[0].get("kind") != kind:
        found = repr(lines[0].get("kind")) if lines else "nothing"
        raise InputError(f"{path}: the first line must be a header with kind {kind!r}, found {found}")
    header, rows = lines[0], lines[1:]
    _check_header(path, header)
    for number, row in enumerate(rows, start=2):
        absent = [key for key in ROW_KEYS[kind] if key not in row]
        if absent:
            raise InputError(f"{path}: line {number} has no {', '.join(absent)}")
    groups = _complete(path, header, rows)
    return header, [row for group in groups.values() for row in group]


def _check_header(path: Path, header: Mapping[str, Any]) -> None:
    if header.get("version") != 1:
        raise InputError(f"{path}: version {header.get('version')!r} of this file is not known here, only 1")
    for key in HEADER_KEYS:
        if key not in header:
            raise InputError(f"{path}: the header has no {key!r}")
    for key in ("n", "problems"):
        if type(header[key]) is not int or header[key] < 1:
            raise InputError(f"{path}: header {key!r} must be a whole number from 1, not {header[key]!r}")
    if header["temperature"] == 0 and header["n"] > 1:
        raise InputError(
            f"{path}: {header['n']} samples at temperature 0 are one sample {header['n']} times, and every "
            "metric over them would look exact; sample at a temperature above 0"
        )


def _complete(path: Path, header: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows by problem, once it is certain that none is doubled or missing."""
    n, seen = header["n"], set()
    for row in rows:
        name, sample = row["problem"], row["sample"]
        if type(sample) is not int or not 0 <= sample < n:
            raise InputError(f"{path}: problem {name!r}: sample {sample!r} is not in 0..{n - 1} (header n = {n})")
        if (name, sample) in seen:
            raise InputError(f"{path}: problem {name!r}: sample {sample} occurs twice")
        seen.add((name, sample))
    groups = by_problem(rows)
    for name, group in groups.items():
        if len(group) < n:
            absent = sorted(set(range(n)) - {row["sample"] for row in group})
            raise InputError(
                f"{path}: problem {name!r} has {len(group)} of {n} samples, sample {absent[0]} is missing "
                "(is the file truncated? delete it and sample again)"
            )
    if len(groups) != header["problems"]:
        last = f", the last is {next(reversed(groups))!r}" if groups else ""
        raise InputError(
            f"{path}: {len(groups)} problems, but the header promises {header['problems']}{last} "
            "(is the file truncated? delete it and sample again)"
        )
    return groups


def _listed(ids: set[str], limit: int = 20) -> str:
    shown = ", ".join(repr(name) for name in sorted(ids)[:limit])
    return shown if len(ids) <= limit else f"{shown} and {len(ids) - limit} more"
