"""Scores of a table counted anew, from the verdict of every single sample.

Nothing here is shared with the code that makes the tables but the readers of files and the seeds of bootstrap draws, so
that a mistake there does not repeat itself here.

Suffixes: P problems, D bootstrap draws.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.seeds import generator
from datpo.evaluate.bootstrap import Floats
from datpo.evaluate.samples import read_samples, read_scores
from datpo.report.documents import read_metrics

Numbers = Mapping[str, float | None]  # column of the table -> its number; None where there is none


class Recount(NamedTuple):
    """Numbers of a row of a table, counted anew.

    Attributes:
        how: from what and by which formula.
        files: the raw files that were read.
        raw_rows: how many rows of them.
    """

    numbers: Numbers
    how: str
    files: Sequence[Path]
    raw_rows: int


class Scored(NamedTuple):
    """The graded samples of one checkpoint on one benchmark.

    Attributes:
        document: the metrics file, which says what was to be counted.
        samples: by problem, ids ascending, its rows in the scores file.
        repeated: samples whose text is that of an earlier sample of their problem.
        files: of verdicts and of texts.
    """

    document: Row
    samples: Mapping[str, Sequence[Row]]
    repeated: int
    files: Sequence[Path]

    @property
    def rows(self) -> int:
        """How many samples there are."""
        return sum(map(len, self.samples.values()))

    def kept(self, within: slice = slice(None)) -> list[list[Row]]:
        """By problem the samples that count, of those with numbers `within`."""
        lost_are_wrong = self.document["settings"]["missing"] == "wrong"
        return [
            [row for row in group[within] if lost_are_wrong or row["verdict"] != "missing"]
            for group in self.samples.values()
        ]


def read_scored(metrics: Path) -> Scored:
    """The raw files behind a metrics file, `scores/` and `samples/` beside its own folder.

    Raises:
        InputError: one of them is missing or damaged, or has changed since: the metrics were counted from other scores,
            or these graded from other samples.
    """
    document = read_metrics(metrics)
    scores, samples = (metrics.parents[1] / kind / f"{metrics.stem}.jsonl" for kind in ("scores", "samples"))
    header, rows = read_scores(scores)
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["problem"], row["sample"])):
        groups.setdefault(row["problem"], []).append(row)
    right = {problem: sum(row["verdict"] == "right" for row in group) for problem, group in groups.items()}
    if header != document["header"] or right != {row["problem"]: row["correct"] for row in document["per_problem"]}:
        raise InputError(f"{scores}: changed since {metrics} was counted from it; one of them is not what it was")
    _, texts = read_samples(samples)
    if hashlib.sha256(samples.read_bytes()).hexdigest() != header["samples_sha256"]:
        raise InputError(f"{samples}: changed since {scores} was graded from it; one of them is not what it was")
    drawn = [(row["problem"], row["text"]) for row in texts if row["text"] is not None]
    return Scored(document, groups, len(drawn) - len(set(drawn)), (scores, samples))


def recount_score(scored: Sequence[Scored], metric: str, k: int | None) -> Recount:
    """A score in percent with its 95 % interval over problems, and its standard deviation between training seeds.

    Args:
        scored: one for each benchmark and seed; of several benchmarks the average is meant.
        metric: `avg`, `pass` or `maj`.
        k: of pass@k and maj@k; None for the k that each benchmark's table has.
    """
    values = _percent(scored, metric, k)
    of_seeds = [fmean(float(values_P.mean()) for values_P in strata) for strata in zip(*values.values(), strict=True)]
    low, high = interval([np.mean(seeds, axis=0) for seeds in values.values()], *_bootstrap(scored))
    return Recount(
        {"value": fmean(of_seeds), "low": low, "high": high, "seed_sd": spread(of_seeds)},
        _how(scored, metric, k),
        [file for each in scored for file in each.files],
        sum(each.rows for each in scored),
    )


def recount_difference(scored: Sequence[Scored], against: Sequence[Scored], metric: str, k: int | None) -> Recount:
    """By how many points a score is above another on the same problems, with its 95 % interval.

    Several benchmarks weigh the same.

    Raises:
        InputError: they are of other problems.
    """
    asked = [{each.document["header"]["benchmark"]: list(each.samples) for each in side} for side in (scored, against)]
    if asked[0] != asked[1]:
        raise InputError(f"{scored[0].files[0]}: its problems are not those of {against[0].files[0]}")
    ours, theirs = (_percent(each, metric, k) for each in (scored, against))
    apart = [np.mean(ours[name], axis=0) - np.mean(theirs[name], axis=0) for name in ours]
    low, high = interval(apart, *_bootstrap(scored))
    both = [*scored, *against]
    return Recount(
        {"difference": fmean(float(apart_P.mean()) for apart_P in apart), "low": low, "high": high},
        f"{_how(both, metric, k)}; the difference of each problem",
        [file for each in both for file in each.files],
        sum(each.rows for each in both),
    )


def _percent(scored: Sequence[Scored], metric: str, k: int | None) -> dict[str, list[Floats]]:
    """By benchmark the scores (P,) of every seed."""
    values: dict[str, list[Floats]] = {}
    for each in scored:
        of_problems = 100 * np.array(problem_values(each, metric, k or _table_k(each)))
        values.setdefault(each.document["header"]["benchmark"], []).append(of_problems)
    return values


def _bootstrap(scored: Sequence[Scored]) -> tuple[int, int]:
    settings = scored[0].document["settings"]
    return settings["bootstrap"], settings["seed"]


def problem_values(scored: Scored, metric: str, k: int) -> list[float]:
    """A score of every problem, as fractions, ids ascending; maj@k of a part of the samples is read, not counted.

    Raises:
        InputError: there is no such score: some problem has fewer samples, or it was never counted.
    """
    kept = scored.kept()
    fewest = min(map(len, kept))
    if metric != "avg" and k > fewest:
        raise InputError(f"{scored.files[0]}: no {metric}@{k} of a problem with {fewest} samples that count")
    if metric == "avg":
        return [_right(group) / len(group) for group in kept]
    if metric == "pass":
        return [passed(len(group), _right(group), k) for group in kept]
    if _elects_all(scored, k):
        return [elected(group) for group in kept]
    rows = sorted(scored.document["per_problem"], key=lambda row: str(row["problem"]))
    if not all(str(k) in row["maj"] for row in rows):
        raise InputError(f"{scored.files[0]}: its metrics have no maj@{k}")
    return [row["maj"][str(k)] for row in rows]


def passed(n: int, right: int, k: int) -> float:
    """pass@k = 1 - prod_{i = n-c+1..n} (1 - k/i) for c right samples of n, and 1 if fewer than k are wrong."""
    return 1.0 if n - right < k else 1 - math.prod(1 - k / i for i in range(n - right + 1, n + 1))


def elected(group: Sequence[Row]) -> float:
    """maj@n: the share of right samples in the largest class of answers, a tie shared; 0 if there is no answer."""
    votes = Counter(row["class"] for row in group if row["class"] is not None)
    right = Counter(row["class"] for row in group if row["verdict"] == "right")
    tied = [name for name, count in votes.items() if count == max(votes.values())]
    return fmean(right[name] / votes[name] for name in tied) if tied else 0.0


def recount_sampling(scored: Sequence[Scored], metric: str, k: int) -> Numbers:
    """What stands beside a score of one benchmark: problems, n, rates in percent, spread between evaluation runs."""
    first = scored[0]

    def rate(key: str, word: str) -> float:
        shares = [
            sum(row[key] == word for group in each.samples.values() for row in group) / each.rows for each in scored
        ]
        return 100 * fmean(shares)

    return {
        "problems": len(first.samples),
        "n": max(map(len, first.samples.values())),
        "rate_truncated": rate("finish", "length"),
        **{f"rate_{verdict}": rate("verdict", verdict) for verdict in ("no_answer", "timeout", "missing")},
        "rate_duplicate": 100 * fmean(each.repeated / each.rows for each in scored),
        **({} if metric == "maj" else {"evaluation_sd": _between_runs(scored, metric, k)}),
    }


def _between_runs(scored: Sequence[Scored], metric: str, k: int) -> float | None:
    """The standard deviation between a checkpoint's evaluation runs, in points: each has the next n / R samples."""
    spreads = []
    for each in scored:
        count = each.document["settings"]["runs"]
        size = each.document["n"] // count
        runs = [each.kept(slice(run * size, (run + 1) * size)) for run in range(count)]
        fewest = min(len(group) for groups in runs for group in groups)
        if count == 1 or fewest < (1 if metric == "avg" else k):
            return None
        means = [
            fmean(
                _right(group) / len(group) if metric == "avg" else passed(len(group), _right(group), k) for group in run
            )
            for run in runs
        ]
        spreads.append(100 * stdev(means))
    return fmean(spreads)


def interval(strata: Sequence[Floats], draws: int, seed: int) -> tuple[float | None, float | None]:
    """The 2.5 and 97.5 % quantiles of the mean of means (None for a single problem).

    Problems are drawn anew in each stratum (P,), with the seeds that the tables use.
    """
    if any(len(values_P) == 1 for values_P in strata):
        return None, None
    drawn_D = np.zeros(draws)
    for index, values_P in enumerate(strata):
        rng = generator(seed, "bootstrap", *([index] if index else []))
        problems = len(values_P)
        times = rng.multinomial(problems, np.full(problems, 1 / problems), size=draws)
        drawn_D += times @ values_P / problems / len(strata)
    low, high = np.quantile(drawn_D, [0.025, 0.975])
    return float(low), float(high)


def spread(seeds: Sequence[float]) -> float | None:
    """The standard deviation between seeds; None for one."""
    return stdev(seeds) if len(seeds) > 1 else None


def _right(group: Sequence[Row]) -> int:
    return sum(row["verdict"] == "right" for row in group)


def _table_k(scored: Scored) -> int:
    return int(scored.document["header"].get("table_k") or max(scored.document["settings"]["k"]))


def _elects_all(scored: Scored, k: int) -> bool:
    return all(len(group) == k for group in scored.kept())


def _how(scored: Sequence[Scored], metric: str, k: int | None) -> str:
    """In words; the mean over problems, then over seeds and benchmarks, goes without saying."""
    if metric == "avg":
        return "verdicts: c right of n samples of each problem, c / n"
    if metric == "pass":
        return "verdicts: c right of n samples of each problem, 1 - prod_{i=n-c+1..n} (1 - k/i)"
    if all(_elects_all(each, k or _table_k(each)) for each in scored):
        return "verdicts and classes of answers: what the largest class of each problem's n samples is worth"
    return "per_problem of the metrics file, not the verdicts: k is below n, and maj@k a mean over drawn subsets"
