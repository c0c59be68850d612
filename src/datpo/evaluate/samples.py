"""Sample and score files: a header line, then exactly n rows for each problem.

Both kinds of file hold one row per (problem, sample); a score row says what the verifier made of the sample.
What is read here is complete: a truncated file, a missing or a doubled row ends in an error, because a metric
over part of the samples looks exactly like a metric over all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.files import Row, located_rows
from datpo.core.kinds import AMOUNT, NAME, OBJECT, TEXT, Kinds, check_kinds, list_of, map_of, one_of, or_null, whole
from datpo.core.problem import Problem, load_problems, questions_hash
from datpo.core.seeds import seed

VERDICTS = ("right", "wrong", "no_answer", "timeout", "bad_key", "missing")
# How samples were drawn ...
DRAWN: Kinds = {
    "version": one_of(1),
    **dict.fromkeys(("scale", "model", "method", "run", "benchmark", "domain"), NAME),
    "seed": whole(),
    **dict.fromkeys(("n", "problems"), whole(1)),
    "questions": NAME,
    "temperature": AMOUNT,
    "max_new_tokens": whole(1),
    "prompt": OBJECT,
    "sampling_seed": whole(),
    **dict.fromkeys(("engine", "precision", "checkpoint"), NAME),
    "versions": map_of(TEXT),
}
PROMPT: Kinds = {"template": NAME, "format": TEXT}
IN_PROMPTS: Kinds = {"stop": list_of(TEXT)}  # of some
# ... and graded.
GRADED: Kinds = {
    "checker": NAME,
    "truncated": one_of("graded", "wrong"),
    "duplicates": whole(),
    "samples_sha256": NAME,
    "keys_sha256": NAME,
}
HEADERS: dict[str, Kinds] = {"samples": DRAWN, "scores": {**DRAWN, **GRADED}}
IN_HEADERS: Kinds = {"at": NAME, "threads": whole(1), "table_k": whole(1)}  # of some
_ROW: Kinds = {"problem": NAME, "sample": whole(), "tokens": whole(), "finish": TEXT}
ROWS: dict[str, Kinds] = {
    "samples": {**_ROW, "seed": whole(), "text": or_null(TEXT)},
    "scores": {**_ROW, "verdict": one_of(*VERDICTS), "answer": or_null(TEXT), "class": or_null(whole())},
}


def read_samples(path: str | Path) -> tuple[Row, list[Row]]:
    """The header of a samples file and its rows, problem by problem in order of first appearance.

    Raises:
        InputError: no or a wrong header, several greedy samples of a problem, a row that is missing, doubled or
            incomplete, or one drawn from another seed than its own; the file and the problem are named.
    """
    header, rows = _read(Path(path), "samples")
    for row in rows:
        _check_sample(f"{path}: problem {row['problem']!r}, sample {row['sample']}", row, header)
    return header, rows


def read_scores(path: str | Path) -> tuple[Row, list[Row]]:
    """The header of a scores file and its rows, problem by problem in order of first appearance.

    Raises:
        InputError: as `read_samples`, an unknown verdict, or a class that the verdict contradicts.
    """
    header, rows = _read(Path(path), "scores")
    for row in rows:
        needs, may = row["verdict"] == "right", row["verdict"] in ("right", "wrong")
        if (needs and row["class"] is None) or (not may and row["class"] is not None):
            raise InputError(
                f"{path}: problem {row['problem']!r}, sample {row['sample']}: verdict {row['verdict']!r} with class "
                f"{row['class']!r}; right answers have a class, and what is no answer has none; score again"
            )
    if header["duplicates"] > len(rows) - header["problems"]:
        raise InputError(f"{path}: the header counts {header['duplicates']} duplicates among {len(rows)} samples")
    return header, rows


def sample_seed(header: Mapping[str, Any], problem: str, sample: int) -> int:
    """The seed of one sample: a function of the header's sampling seed and benchmark, the problem and the number."""
    return seed(header["sampling_seed"], header["benchmark"], problem, sample)


def finished_samples(raw: bytes, header: Mapping[str, Any]) -> dict[str, list[Row]]:
    """The problems whose samples are all in `raw`, what an interrupted job has written of its rows.

    It is read up to the first line that is no whole row; behind it nothing can be trusted. A problem counts if its
    samples are 0 to n - 1, each once and from its own seed.
    """
    rows: dict[str, list[Row]] = {}
    for line in raw.split(b"\n")[:-1]:
        try:
            row = json.loads(line.decode("utf-8"))
            check_kinds("", row, ROWS["samples"])
            _check_sample("", row, header)
        except (ValueError, RecursionError, InputError):
            break
        rows.setdefault(row["problem"], []).append(row)
    numbers = list(range(header["n"]))
    return {problem: mine for problem, mine in rows.items() if [row["sample"] for row in mine] == numbers}


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
        InputError: a problem stands in only one of the two files, asks for something else there, or, if the rows are
            scores, has another answer key there.
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
    if header["kind"] == "scores" and keys_hash(list(problems.values())) != header["keys_sha256"]:
        raise InputError(f"{path}: graded by other answer keys than {problems_path} has now; score the samples again")
    return problems


def scores_header(
    header: Mapping[str, Any],
    rows: Sequence[Row],
    samples: Path,
    known: Mapping[str, Problem],
    checker: str,
    truncated: str,
) -> Row:
    """The samples' header with how they were graded; `duplicates` counts texts that repeat an earlier one exactly."""
    texts = [(row["problem"], row["text"]) for row in rows if row["text"] is not None]
    return {
        **header,
        "kind": "scores",
        "checker": checker,
        "truncated": truncated,
        "duplicates": len(texts) - len(set(texts)),
        "samples_sha256": hashlib.sha256(Path(samples).read_bytes()).hexdigest(),
        "keys_sha256": keys_hash(list(known.values())),
    }


def keys_hash(problems: Sequence[Problem]) -> str:
    """SHA-256 over the answer keys (ids and answers, in any order)."""
    keys = sorted((problem.id, problem.answer) for problem in problems)
    return hashlib.sha256(json.dumps(keys).encode()).hexdigest()


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


def check_header(place: str, header: Any, kind: str) -> None:
    """Refuse the header of a samples or scores file that does not say how they were made.

    Raises:
        InputError: a key is missing or holds another kind of value, or several samples were drawn greedily.
    """
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = repr(header.get("kind")) if header and isinstance(header, dict) else "nothing"
        raise InputError(f"{place} must be a header with kind {kind!r}, found {found}")
    check_kinds(place, header, HEADERS[kind], IN_HEADERS)
    check_kinds(f"{place}: prompt", header["prompt"], PROMPT, IN_PROMPTS)
    if header["temperature"] == 0 and header["n"] > 1:
        raise InputError(
            f"{place}: temperature 0: greedy samples are one sample, {header['n']} times, and "
            "every metric over them would look exact; sample at a temperature above 0"
        )


def _read(path: Path, kind: str) -> tuple[Row, list[Row]]:
    (_, header), *lines = [*located_rows(path)] or [("", {})]
    check_header(f"{path}: the first line", header, kind)
    for place, row in lines:
        check_kinds(place, row, ROWS[kind])
    groups = _complete(path, header, [row for _, row in lines])
    return header, [row for group in groups.values() for row in group]


def _check_sample(place: str, row: Row, header: Mapping[str, Any]) -> None:
    if row["text"] is not None and row["finish"] not in ("stop", "length"):
        raise InputError(f"{place}: 'finish' must be 'stop' or 'length', not {row['finish']!r}")
    if row["seed"] != sample_seed(header, row["problem"], row["sample"]):
        raise InputError(
            f"{place}: seed {row['seed']} is not the one that sampling seed {header['sampling_seed']} gives it on "
            f"{header['benchmark']!r}; the row was drawn or copied from elsewhere: delete the file and sample again"
        )


def _complete(path: Path, header: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows by problem, once it is certain that none is doubled or missing."""
    n, seen = header["n"], set()
    for row in rows:
        name, sample = row["problem"], row["sample"]
        if sample >= n:
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
