"""pass@k, avg@k and maj@k: fractions of problems, with intervals over problems.

Suffixes: P problems, K values of k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import Row, write_json
from datpo.core.kinds import Kinds, check_kinds, list_of, one_of, whole
from datpo.core.problem import Problem
from datpo.evaluate.bootstrap import Floats, Interval, Run, intervals
from datpo.evaluate.majority import NO_VOTE, maj_at_k
from datpo.evaluate.samples import by_problem, matching_problems, read_scores, refuse_bad_keys

SETTINGS: Kinds = {
    "k": list_of(whole(1)),
    "bootstrap": whole(1, 100_000),
    "seed": whole(),
    "missing": one_of("exclude", "wrong"),
    "runs": whole(1),
}


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike, problems: Sequence[str] | None = None) -> Floats:
    """The chance that at least one of k samples is right, without bias, from n samples of which c are right.

        pass@k = 1 - C(n-c, k) / C(n, k) = 1 - prod_{j<k} (n-c-j) / (n-j)          (Chen et al. 2021, eq. 1)

    Args:
        n: samples of each problem, scalar or (P,).
        c: right samples of each problem, same shape.
        k: scalar or (K,).
        problems: the problems' ids, for the error message.

    Returns:
        Fractions of shape n.shape + k.shape.

    Raises:
        InputError: k above n (it cannot be estimated), k below 1, or c outside 0..n; the problem is named.
    """
    n_P, c_P = np.broadcast_arrays(np.atleast_1d(n).astype(int), np.atleast_1d(c).astype(int))
    k_K = np.atleast_1d(k).astype(int)
    names = list(problems) if problems is not None else [str(index) for index in range(len(n_P))]
    if k_K.size == 0 or k_K.min() < 1:
        raise InputError(f"pass@k needs k from 1, not {k_K.tolist()}")
    for name, total, right in zip(names, n_P.tolist(), c_P.tolist(), strict=True):
        if k_K.max() > total:
            raise InputError(
                f"pass@{k_K.max()} cannot be estimated for problem {name!r}, which has {total} samples; "
                "ask for a smaller k or draw more samples"
            )
        if not 0 <= right <= total:
            raise InputError(f"problem {name!r}: {right} right samples of {total}")
    drawn = np.arange(k_K.max())
    # A factor of 0 stands where the wrong samples run out, so the product is exactly 0 from there on.
    wrong_left = np.maximum(n_P[:, None] - c_P[:, None] - drawn, 0)
    all_wrong = np.cumprod(wrong_left / (n_P[:, None] - drawn), axis=1)
    return np.asarray((1 - all_wrong[:, k_K - 1]).reshape(np.shape(n) + np.shape(k)), dtype=float)


def avg_at_k(rewards: Sequence[Sequence[float]], problems: Sequence[str] | None = None) -> Floats:
    """The share of right samples of each problem (P,), whose mean is avg@k.

    So problems weigh the same however many samples they have; pooling the samples would not.

    Args:
        rewards: for each problem those of its samples.
        problems: the problems' ids, for the error message.

    Raises:
        InputError: no problem, or one without samples.
    """
    if not rewards:
        raise InputError("avg@k over no problems does not exist")
    for index, samples in enumerate(rewards):
        if not samples:
            name = problems[index] if problems is not None else index
            raise InputError(f"problem {name!r}: no sample is left to average; sample it again")
    return np.array([np.mean(samples) for samples in rewards])


def values_at_k(metrics: Mapping[str, Any], k: int) -> Run:
    """pass@k of every problem of one run (k = 1: its avg), from the run's metrics document."""
    rows = metrics["per_problem"]
    names = [str(row["problem"]) for row in rows]
    values = pass_at_k([row["n"] for row in rows], [row["correct"] for row in rows], k, names)
    return dict(zip(names, values.tolist(), strict=True))


def metrics_file(config: Path, scores: Path, problems: Path, out: Path) -> None:
    """Count what a checkpoint got right on a benchmark, and write it with 95 % intervals over problems.

    Args:
        config: YAML with `k` (a list), `bootstrap` (draws), `seed`, `missing`: samples lost to an engine
            error are left out ("exclude", which lowers n of their problem) or count as "wrong"; and `runs`:
            evaluation runs the samples are split into.
        scores: a scores file.
        problems: the benchmark's problems.
        out: the metrics as JSON; values are fractions, an interval's ends are null if there is one problem
            only.

    Raises:
        InputError: k above the number of samples of a problem, an incomplete file, an unknown key, a bad key.
    """
    settings = _settings(config)
    header, rows = read_scores(scores)
    known = matching_problems(scores, header, rows, problems)
    refuse_bad_keys(scores, rows)
    write_json(out, {"header": header, **benchmark_metrics(settings, rows, known, header)})


def benchmark_metrics(
    settings: Mapping[str, Any], rows: Sequence[Row], known: Mapping[str, Problem], header: Mapping[str, Any]
) -> dict[str, Any]:
    """The metrics document of one benchmark, without its header: see `metrics_file`."""
    groups = by_problem(rows)
    names, ks = list(groups), list(settings["k"])
    kept = [_kept(group, settings["missing"]) for group in groups.values()]
    value_PV = _values(kept, names, ks, settings["seed"])
    # in the order of their ids, as everywhere: the same problems are drawn in whatever order a file has them
    by_id = sorted(range(len(names)), key=names.__getitem__)
    found = intervals(value_PV[by_id], settings["bootstrap"], settings["seed"])
    return {
        "settings": {key: settings[key] for key in SETTINGS},
        "n": header["n"],
        "problems": len(names),
        "avg": _document(found[0]),
        "pass": {str(k): _document(interval) for k, interval in zip(ks, found[1 : 1 + len(ks)], strict=True)},
        "maj": {str(k): _document(interval) for k, interval in zip(ks, found[1 + len(ks) :], strict=True)},
        "runs": _runs(settings, groups, header["n"]),
        "rates": _rates(rows, header),
        "per_problem": [
            {
                "problem": name,
                "level": known[name].level,
                "n": len(group),
                "correct": sum(row["verdict"] == "right" for row in group),
                "maj": dict(zip(map(str, ks), value_V[1 + len(ks) :].tolist(), strict=True)),
            }
            for name, group, value_V in zip(names, kept, value_PV, strict=True)
        ],
    }


def _kept(group: Sequence[Row], missing: str) -> list[Row]:
    """The samples of a problem that count."""
    return [row for row in group if missing == "wrong" or row["verdict"] != "missing"]


def _values(groups: Sequence[Sequence[Row]], names: Sequence[str], ks: Sequence[int], seed: int) -> Floats:
    """For every problem its avg, pass@k for each k and maj@k for each k (P, 1 + 2K)."""
    rights = [[row["verdict"] == "right" for row in group] for group in groups]
    average_P = avg_at_k(rights, names)
    passed_PK = pass_at_k([len(right) for right in rights], [sum(right) for right in rights], ks, names)
    votes = [[NO_VOTE if row["class"] is None else row["class"] for row in group] for group in groups]
    return np.hstack([average_P[:, None], passed_PK, maj_at_k(rights, votes, ks, seed)])


def _runs(settings: Mapping[str, Any], groups: Mapping[str, Sequence[Row]], n: int) -> dict[str, Any]:
    """The same means within each evaluation run: samples 0 to n/R - 1 of every problem are the first run, and so on.

    Only k that every problem has samples for in every run are there. Of one run, or if a problem lost all its
    samples of a run, there is nothing to say.
    """
    count = settings["runs"]
    size, rest = divmod(n, count)
    if rest:
        raise InputError(f"{n} samples of each problem cannot be split evenly into {count} evaluation runs")
    runs = [
        [_kept(group[run * size : (run + 1) * size], settings["missing"]) for group in groups.values()]
        for run in range(count)
    ]
    least = min(len(group) for run in runs for group in run)
    if count == 1 or not least:
        return {"count": count, "n": size, "avg": [], "pass": {}, "maj": {}}
    ks = [k for k in settings["k"] if k <= least]
    asked = ks or [1]
    means_RV = np.array([_values(run, list(groups), asked, settings["seed"]).mean(axis=0) for run in runs])
    average, *at_k = means_RV.T.tolist()
    named = [dict(zip(map(str, ks), values, strict=False)) for values in (at_k[: len(asked)], at_k[len(asked) :])]
    return {"count": count, "n": size, "avg": average, "pass": named[0], "maj": named[1]}


def _rates(rows: Sequence[Row], header: Mapping[str, Any]) -> dict[str, float]:
    """Shares of all samples, so that a low cap or a broken checker does not pass for a weak model."""
    rates = {"truncated": sum(row["finish"] == "length" for row in rows) / len(rows)}
    for verdict in ("no_answer", "timeout", "bad_key", "missing"):
        rates[verdict] = sum(row["verdict"] == verdict for row in rows) / len(rows)
    rates["duplicate"] = header["duplicates"] / len(rows)
    return rates


def _document(interval: Interval) -> dict[str, float | None]:
    return {key: None if math.isnan(value) else value for key, value in interval._asdict().items()}


def _settings(config: Path) -> dict[str, Any]:
    settings = read_settings(config)
    check_kinds(str(config), settings, SETTINGS, known_only=True)
    ks: list[int] = settings["k"]
    if not ks or len(set(ks)) < len(ks):
        raise InputError(f"{config}: `k` must be a list of different whole numbers from 1, not {ks!r}")
    return settings
