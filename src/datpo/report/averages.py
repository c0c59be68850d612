"""What a figure shows of a run: its scores averaged over seeds, problems and benchmarks, with their intervals.

Values, k and intervals are those of the tables: percentile bootstraps over problems, drawn anew within each benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datpo.evaluate.bootstrap import Floats, Interval
from datpo.report.runs import Results, Run, benchmark_label
from datpo.report.scores import Metric, seed_values, stratified


def problem_values(results: Results, run: Run, benchmark: str, metric: Metric) -> Floats:
    """A run's score of every problem (P,) in percent, means over seeds, problems in ascending order of id."""
    seeds = [list(seed.values()) for seed in seed_values(results, run, benchmark, metric)]
    return np.asarray(100 * np.mean(seeds, axis=0))


def average(
    results: Results, run: Run, metric: Metric, benchmarks: Sequence[str] = (), over: Metric | None = None
) -> Interval:
    """A run's mean score in percent, every benchmark weighing the same.

    Args:
        results: the run's and others'.
        run: one of them.
        metric: the score.
        benchmarks: whose; all of them if none is named.
        over: a score that is taken from it, problem by problem.
    """
    strata = [problem_values(results, run, name, metric) for name in benchmarks or results.benchmarks]
    if over is not None:
        less = [problem_values(results, run, name, over) for name in benchmarks or results.benchmarks]
        strata = [values_P - less_P for values_P, less_P in zip(strata, less, strict=True)]
    return stratified(strata, *results.bootstrap)


def at_k(results: Results, metric: Metric, benchmarks: Sequence[str] = ()) -> str:
    """`pass@64`, or `pass@k` where k differs between benchmarks; the average is over all samples, whatever k."""
    ks = {results.table_k(name) for name in benchmarks or results.benchmarks}
    return f"{metric}@{ks.pop() if len(ks) == 1 and metric != 'avg' else 'k'}"


def basis(results: Results) -> str:
    """What values were averaged over, and which k they are of, in a sentence or two."""
    names = [benchmark_label(name) for name in results.benchmarks]
    ks = {label: results.table_k(name) for label, name in zip(names, results.benchmarks, strict=True)}
    told = f"Means over {', '.join(names)}, which weigh the same." if len(names) > 1 else f"On {names[0]}."
    return told if len(set(ks.values())) == 1 else f"{told} k: {', '.join(f'{k} on {name}' for name, k in ks.items())}."
