"""Metrics files as a report reads them: whole, and each mean the one that the rows beneath it give."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row, read_json
from datpo.core.kinds import NAME, OBJECT, SHARE, Kinds, check_kinds, list_of, map_of, or_null, whole
from datpo.evaluate.metrics import SETTINGS, values_at_k
from datpo.evaluate.samples import check_header

DOCUMENT: Kinds = {
    **dict.fromkeys(("header", "settings", "avg", "runs", "rates"), OBJECT),
    **dict.fromkeys(("n", "problems"), whole(1)),
    **dict.fromkeys(("pass", "maj"), map_of(OBJECT)),
    "per_problem": list_of(OBJECT),
}
MEAN: Kinds = {"value": SHARE, "low": or_null(SHARE), "high": or_null(SHARE)}
RUNS: Kinds = {
    **dict.fromkeys(("count", "n"), whole(1)),
    "avg": list_of(SHARE),
    **dict.fromkeys(("pass", "maj"), map_of(list_of(SHARE))),
}
RATES: Kinds = dict.fromkeys(("truncated", "no_answer", "duplicate", "timeout", "missing"), SHARE)
PROBLEM: Kinds = {"problem": NAME, "n": whole(1), "correct": whole(), "maj": map_of(SHARE)}


def read_metrics(path: Path) -> Row:
    """The document that `metrics` wrote.

    Raises:
        InputError: a key is missing or holds another kind of value, its parts speak of different numbers of samples or
            problems or of different k, or a mean is not that of its problems.
    """
    document: Row = read_json(path)
    check_kinds(str(path), document, DOCUMENT)
    check_header(f"{path}: the header", document["header"], "scores")
    parts = {"settings": SETTINGS, "avg": MEAN, "runs": RUNS, "rates": RATES}
    for name, kinds in parts.items():
        check_kinds(f"{path}: {name}", document[name], kinds)
    for metric in ("pass", "maj"):
        for k, mean in document[metric].items():
            check_kinds(f"{path}: {metric}@{k}", mean, MEAN)
    for number, row in enumerate(document["per_problem"], start=1):
        check_kinds(f"{path}: row {number} of per_problem", row, PROBLEM)
    _check_sizes(path, document)
    _check_means(path, document)
    return document


def _check_sizes(path: Path, document: Row) -> None:
    """One n, one set of problems, one set of k, one number of evaluation runs."""
    header, runs, rows = document["header"], document["runs"], document["per_problem"]
    ks = {str(k) for k in document["settings"]["k"]}
    if not ks or not set(document["pass"]) == set(document["maj"]) == ks:
        raise _odd(path, f"pass has k = {', '.join(document['pass'])}, its settings ask for {', '.join(sorted(ks))}")
    for key in ("n", "problems"):
        if header[key] != document[key]:
            raise _odd(path, f"{key} is {document[key]}, and {header[key]} in its header")
    if document["problems"] != len(rows):
        raise _odd(path, f"{len(rows)} rows of per_problem, but problems is {document['problems']}")
    seen: set[str] = set()
    for row in rows:
        if row["problem"] in seen:
            raise _odd(path, f"problem {row['problem']!r} stands twice in per_problem")
        seen.add(row["problem"])
        if not row["correct"] <= row["n"] <= document["n"] or set(row["maj"]) != ks:
            raise _odd(path, f"problem {row['problem']!r}: {row['correct']} right of {row['n']}, maj of {row['maj']}")
    lengths = {len(means) for means in (runs["avg"], *runs["pass"].values(), *runs["maj"].values())}
    if runs["count"] != document["settings"]["runs"] or not lengths <= {0, runs["count"]}:
        raise _odd(path, f"runs: {runs['count']} evaluation runs and lists of {sorted(lengths)} means")


def _check_means(path: Path, document: Row) -> None:
    values: dict[str, Any] = {"avg": (document["avg"], list(values_at_k(document, 1).values()))}
    for k in document["settings"]["k"]:
        try:
            values[f"pass@{k}"] = (document["pass"][str(k)], list(values_at_k(document, k).values()))
        except InputError as error:
            raise _odd(path, str(error)) from None
        votes = [row["maj"][str(k)] for row in document["per_problem"]]
        values[f"maj@{k}"] = (document["maj"][str(k)], votes)
    for name, (mean, of_problems) in values.items():
        if not math.isclose(mean["value"], float(np.mean(of_problems)), abs_tol=1e-9):
            raise _odd(path, f"its {name} is not the mean of its per_problem rows")


def _odd(path: Path, what: str) -> InputError:
    return InputError(f"{path}: {what}; was it altered by hand? compute the metrics again")
