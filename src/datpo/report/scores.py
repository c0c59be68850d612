"""What a table says about a run: its scores with their uncertainty, and by how much it differs from others.

Scores are per-problem values averaged over a run's seeds. Intervals are percentile bootstraps over problems
(see `datpo.evaluate.bootstrap`): they hold for the trained seeds on other problems, not for other seeds,
whose spread is given beside.

Suffixes: P problems, S seeds, D bootstrap draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from datpo.core.seeds import generator
from datpo.evaluate.bootstrap import Floats, Interval
from datpo.report.runs import Result, Results, Run

Metric = Literal["avg", "pass", "maj"]
METRICS: tuple[Metric, ...] = ("avg", "pass")  # of Table 2
Column = tuple[str | None, Metric]  # benchmark (None: the average over benchmarks) and metric
Mark = Literal["best", "second", ""]


class Score(NamedTuple):
    """A cell of the table, in percent.

    Attributes:
        interval: the mean over seeds, and its 95 % interval over problems.
        spread: standard deviation between seeds; None for one seed.
        mark: `best` if every other run of the model is below it by more than the interval of the difference;
            `second` if one is best and all others are as surely below this.
    """

    interval: Interval
    spread: float | None
    mark: Mark = ""


class Difference(NamedTuple):
    """By how much a run is above another on the same problems, in percentage points."""

    run: Run
    against: Run
    benchmark: str | None  # None: the average over benchmarks
    metric: Metric
    interval: Interval


def columns(results: Results) -> list[Column]:
    """Each benchmark's avg@k and pass@k, and their averages over benchmarks, which all weigh the same."""
    return [(benchmark, metric) for benchmark in [*results.benchmarks, None] for metric in METRICS]


def column_k(results: Results, column: Column) -> int | None:
    """The k of a column; None where benchmarks of different k are averaged."""
    named = results.benchmarks if column[0] is None else [column[0]]
    ks = {results.table_k(benchmark) for benchmark in named}
    return ks.pop() if len(ks) == 1 else None


def scores(results: Results, shown: Sequence[Column]) -> dict[tuple[Run, Column], Score]:
    """What every run reaches in every column that is shown."""
    found: dict[tuple[Run, Column], Score] = {}
    for model in results.models:
        runs = results.of_model(model)
        for column in shown:
            strata = {run: _strata(results, run, column) for run in runs}
            marks = _marks(results, strata)
            for run in runs:
                found[run, column] = _score(results, strata[run], marks.get(run, ""))
    return found


def difference(results: Results, run: Run, against: Run, column: Column) -> Interval:
    """By how much `run` is above `against` in a column, in points, both read on the same drawn problems."""
    return _ahead(results, _strata(results, run, column), _strata(results, against, column))


def _strata(results: Results, run: Run, column: Column) -> list[Floats]:
    """For every benchmark of a column the values (S, P) in percent."""
    benchmark, metric = column
    named = results.benchmarks if benchmark is None else [benchmark]
    return [100 * np.array([list(seed.values()) for seed in seed_values(results, run, name, metric)]) for name in named]


def _score(results: Results, strata: Sequence[Floats], mark: Mark) -> Score:
    seeds_S = np.mean([values_SP.mean(axis=1) for values_SP in strata], axis=0)
    spread = float(np.std(seeds_S, ddof=1)) if len(seeds_S) > 1 else None
    interval = stratified([values_SP.mean(axis=0) for values_SP in strata], *results.bootstrap)
    return Score(interval, spread, mark)


def _marks(results: Results, strata: Mapping[Run, Sequence[Floats]]) -> dict[Run, Mark]:
    """The best and the second best run, as far as the intervals of their differences to all below say so."""

    def mean(run: Run) -> float:
        return float(np.mean([values_SP.mean() for values_SP in strata[run]]))

    ordered = sorted(strata, key=mean, reverse=True)
    marks: dict[Run, Mark] = {}
    places: tuple[Mark, ...] = ("best", "second")
    for place, (mark, run) in enumerate(zip(places, ordered, strict=False)):
        below = ordered[place + 1 :]
        if not below or not all(_ahead(results, strata[run], strata[other]).low > 0 for other in below):
            break
        marks[run] = mark
    return marks


def _ahead(results: Results, ours: Sequence[Floats], theirs: Sequence[Floats]) -> Interval:
    pairs = zip(ours, theirs, strict=True)
    return stratified(
        [ours_SP.mean(axis=0) - theirs_SP.mean(axis=0) for ours_SP, theirs_SP in pairs], *results.bootstrap
    )


def seed_values(results: Results, run: Run, benchmark: str, metric: Metric) -> list[Mapping[str, float]]:
    """For every seed of a run its score by problem, as fractions, problems in ascending order of id."""
    k = results.table_k(benchmark)
    return [values_by_problem(result, metric, k) for result in results.of(run, benchmark)]


def values_by_problem(result: Result, metric: Metric, k: int) -> dict[str, float]:
    """The score of one seed by problem, as a fraction, problems in ascending order of id."""
    values: Mapping[str, float]
    if metric == "maj":
        values = {str(row["problem"]): float(row["maj"][str(k)]) for row in result.document["per_problem"]}
    else:
        values = result.at_k(1 if metric == "avg" else k)
    return dict(sorted(values.items()))


def stratified(strata: Sequence[Floats], draws: int, seed: int) -> Interval:
    """The mean of the strata's means, problems drawn anew within each stratum.

    With one stratum this is `datpo.evaluate.bootstrap.intervals`, draw for draw: a table of one benchmark has
    the same interval in its average.

    Args:
        strata: per-problem values (P,) of each benchmark.
        draws: bootstrap resamples.
        seed: base seed.
    """
    value = float(np.mean([values_P.mean() for values_P in strata]))
    if any(len(values_P) == 1 for values_P in strata):
        return Interval(value, float("nan"), float("nan"))
    drawn_D = np.zeros(draws)
    for index, values_P in enumerate(strata):
        drawn_D += _times(len(values_P), draws, seed, index) @ values_P / len(values_P) / len(strata)
    low, high = np.quantile(drawn_D, [0.025, 0.975])
    return Interval(value, float(low), float(high))


@lru_cache(maxsize=16)  # a table reads the same draws in every cell
def _times(problems: int, draws: int, seed: int, stratum: int) -> Floats:
    """How often each problem was drawn (D, P)."""
    rng = generator(seed, "bootstrap", *([stratum] if stratum else []))
    return rng.multinomial(problems, np.full(problems, 1 / problems), size=draws).astype(float)


def differences(results: Results) -> list[Difference]:
    """Each run against the untrained Base, and each that is not GRPO's against one that is, paired by problem.

    A variant `METHOD_x` is held against `grpo_x` if there is one, which shares what x stands for, else against
    `grpo`. A model without a Base or GRPO run has no differences to it.
    """
    found = []
    for model in results.models:
        runs = results.of_model(model)
        base = Run(model, "base", "base")
        pairs = [(run, base) for run in runs if run != base and base in runs]
        for run in runs:
            held = [grpo for grpo in (_grpo_of(run), Run(model, "grpo", "grpo")) if grpo in runs]
            if run.method != "base" and held and run not in held:
                pairs.append((run, held[0]))
        found += [
            Difference(run, against, benchmark, metric, difference(results, run, against, (benchmark, metric)))
            for run, against in pairs
            for benchmark in [*results.benchmarks, None]
            for metric in METRICS
        ]
    return found


def _grpo_of(run: Run) -> Run:
    """The GRPO run that a run is held against if it is there: the one with the same suffix, or GRPO as it is."""
    suffix = run.run.removeprefix(run.method) if run.run.startswith(f"{run.method}_") else ""
    return Run(run.model, "grpo", f"grpo{suffix}")
