"""Every score in a row of its own, with all that it takes to know how it was made.

Suffixes: P problems, S seeds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from datpo.evaluate.bootstrap import Interval
from datpo.report.paper import AVERAGE
from datpo.report.runs import Result, Results, Run
from datpo.report.scores import METRICS, Column, Metric, column_k, scores, stratified, values_by_problem

RATES = ("truncated", "no_answer", "duplicate", "timeout", "missing")
# Of the header of a metrics file: what was asked, by what, and how it was graded.
SETTINGS = (
    *("questions", "keys_sha256", "domain", "temperature", "max_new_tokens", "prompt", "sampling_seed"),
    *("engine", "precision", "threads", "checker", "truncated"),
)
COUNTED = {"missing": "missing", "bootstrap": "bootstrap", "seed": "bootstrap_seed"}  # setting of the metrics: column
# Of each seed's: the checkpoint's bytes, the samples' bytes, and the versions they came from.
OF_EACH_SEED = ("checkpoint", "samples_sha256", "versions")


def score_rows(results: Results) -> pd.DataFrame:
    """A row for every run, benchmark, metric and k: value and 95 % interval in percent, n, k, and how it was made.

    `seed_sd` is the standard deviation between training seeds, `evaluation_sd` that between evaluation runs of a
    checkpoint, both in percentage points and empty where there is one only; `rate_` columns are percent of the
    samples. What differs between the seeds (checkpoint, samples, files) stands in their order, separated by spaces.
    """
    rows = []
    for run in results.runs:
        for benchmark in results.benchmarks:
            of_seeds = results.of(run, benchmark)
            made = _made(results, run, of_seeds)
            rows += [{**made, **_score(results, of_seeds, metric, k)} for metric, k in _columns(of_seeds[0])]
    frame = pd.DataFrame(rows)
    behind = [*(f"rate_{rate}" for rate in RATES), *SETTINGS, *COUNTED.values(), *OF_EACH_SEED, "files"]
    return frame[[*(name for name in frame.columns if name not in behind), *behind]]


def with_averages(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Behind these rows one for every run and metric over benchmarks; what each of those has of its own stays empty."""
    if len(results.benchmarks) == 1:
        return frame
    columns: list[Column] = [(None, metric) for metric in METRICS]
    rows = []
    for (run, column), score in scores(results, columns).items():
        of_all = [result for benchmark in results.benchmarks for result in results.of(run, benchmark)]
        row = _made(results, run, of_all)
        row |= dict.fromkeys(("problems", "n", "evaluation_runs", *(f"rate_{rate}" for rate in RATES), *SETTINGS), "")
        row |= {"seeds": " ".join(map(str, results.seeds(run))), "benchmark": AVERAGE, "evaluation_sd": ""}
        row |= _rounded(column[1], column_k(results, column) or "", score.interval, score.spread)
        rows.append([row[name] for name in frame.columns])
    return pd.DataFrame([*frame.astype(object).to_numpy().tolist(), *rows], columns=frame.columns)


def rate_rows(results: Results) -> dict[Run, list[str]]:
    """For every run and benchmark the shares of samples that were cut off, gave no answer and repeat another."""
    shown = RATES[:3]
    return {
        run: [
            " / ".join(f"{_mean_rate(results.of(run, benchmark), rate):.1f}" for rate in shown)
            for benchmark in results.benchmarks
        ]
        for run in results.runs
    }


def _columns(result: Result) -> list[tuple[Metric, int]]:
    n = int(result.document["n"])
    return [("avg", n), *(("pass", k) for k in result.ks), *(("maj", k) for k in result.ks)]


def _score(results: Results, of_seeds: Sequence[Result], metric: Metric, k: int) -> dict[str, Any]:
    value_SP = 100 * np.array([list(values_by_problem(result, metric, k).values()) for result in of_seeds])
    interval = stratified([value_SP.mean(axis=0)], *results.bootstrap)
    seeds = value_SP.mean(axis=1)
    spread = float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None
    return _rounded(metric, k, interval, spread) | {"evaluation_sd": _evaluation_sd(of_seeds, metric, k)}


def _rounded(metric: Metric, k: int | str, interval: Interval, spread: float | None) -> dict[str, Any]:
    numbers = {name: round(value, 2) for name, value in interval._asdict().items()}
    return {"metric": metric, "k": k, **numbers, "seed_sd": None if spread is None else round(spread, 2)}


def _evaluation_sd(of_seeds: Sequence[Result], metric: Metric, k: int) -> float | None:
    """Between a checkpoint's evaluation runs, averaged over seeds; avg over all samples of a run."""
    spreads = []
    for result in of_seeds:
        runs = result.document["runs"]
        values = runs["avg"] if metric == "avg" else runs[metric].get(str(k), [])
        if len(values) < 2:
            return None
        spreads.append(100 * float(np.std(values, ddof=1)))
    return round(float(np.mean(spreads)), 2)


def _made(results: Results, run: Run, of_seeds: Sequence[Result]) -> dict[str, Any]:
    """How the samples behind a score came about."""
    first = of_seeds[0]
    row: dict[str, Any] = {"scale": results.scale, **asdict(run), "label": run.label, "at": results.at or "end"}
    row |= {"seeds": " ".join(str(result.seed) for result in of_seeds), "benchmark": first.benchmark}
    row |= {"problems": first.document["problems"], "n": first.document["n"]}
    row["evaluation_runs"] = first.document["runs"]["count"]
    row |= {f"rate_{rate}": round(_mean_rate(of_seeds, rate), 2) for rate in RATES}
    row |= {key: _plain(first.header.get(key)) for key in SETTINGS}
    row |= {column: first.settings[key] for key, column in COUNTED.items()}
    row |= {key: " ".join(_plain(result.header.get(key)) for result in of_seeds) for key in OF_EACH_SEED}
    row["files"] = " ".join(str(result.path) for result in of_seeds)
    return row


def _mean_rate(of_seeds: Sequence[Result], rate: str) -> float:
    return 100 * float(np.mean([result.document["rates"][rate] for result in of_seeds]))


def _plain(value: object) -> str:
    """A setting as one word or piece of JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
