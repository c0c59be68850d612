"""What a study's figure is drawn from: results and training logs of all its rows, none missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from datpo.core.errors import InputError
from datpo.report.documents import read_metrics
from datpo.report.runs import Results, Run, load_results
from datpo.report.studies.study import Study
from datpo.report.training import Training, load_training


def study_results(study: Study, metrics: Sequence[Path]) -> Results:
    """The results of a study's rows on its benchmarks, and of the untrained models where they are among the files.

    Raises:
        InputError: another scale, a row without metrics of one of its models or seeds, or a benchmark without any; or
            files that cannot stand in one report (see `datpo.report.runs.load_results`).
    """
    results = load_results(metrics)
    if results.scale != study.scale:
        raise InputError(f"{_name(study)}: its scale is {study.scale!r}, that of the metrics {results.scale!r}")
    for benchmark in study.benchmarks:
        if benchmark not in results.benchmarks:
            raise InputError(f"{_name(study)}: no metrics on benchmark {benchmark!r}; evaluate its rows on it")
    for run, seed in _trained(study):
        if run not in results.runs or seed not in results.seeds(run):
            raise InputError(f"{_name(study)}: no metrics of {run} seed {seed}; evaluate it")
    untrained = {base_of(model) for model in study.models}
    for missing in sorted(map(str, _rows(study) - set(results.runs))):  # an untrained model that is a row
        raise InputError(f"{_name(study)}: no metrics of {missing}; evaluate it")
    shown = _rows(study) | untrained
    return Results(
        tuple(each for each in results.everything if each.run in shown and each.benchmark in study.benchmarks)
    )


def study_training(study: Study, logs: Sequence[Path]) -> dict[Run, list[Training]]:
    """The training logs of a study's rows, one for each seed.

    Raises:
        InputError: a row without a log of one of its models or seeds, or a log that cannot be read.
    """
    found = {(log.run, log.seed): log for log in load_training(logs)}
    chosen: dict[Run, list[Training]] = {}
    for run, seed in _trained(study):
        if (run, seed) not in found:
            raise InputError(f"{_name(study)}: no training log of {run} seed {seed}; give its metrics.jsonl")
        chosen.setdefault(run, []).append(found[run, seed])
    return chosen


class Point(NamedTuple):
    """A checkpoint on the way: how much was spent until there, and its results under the name of its run."""

    amount: float
    results: Results
    run: Run


@dataclass(frozen=True)
class Along:
    """A study's trainings from the untrained model over checkpoints on the way to their ends."""

    study: Study
    end: Results
    at: Mapping[str, Results]
    training: Mapping[Run, Sequence[Training]]

    def points(self, run: Run, unit: str) -> list[Point]:
        """The checkpoints of one run, in order, each where its logs say that it was reached; means over seeds."""
        stops: list[tuple[str | None, Results]] = [
            (f"{unit}-{amount}", self.at[f"{unit}-{amount}"]) for amount in sorted(self.study.checkpoints[unit])
        ]
        found = [Point(0, self.end, base_of(run.model))]
        for at, results in [*stops, (None, self.end)]:
            spent = [log.spent(unit, at) for log in self.training[run]]
            found.append(Point(float(np.mean(spent)), results, run))
        return found


def load_along(study: Study, metrics: Sequence[Path], logs: Sequence[Path]) -> Along:
    """Read the results of a study's checkpoints, and the logs that say where on the way they stand.

    All of them are held against the untrained model, so they are comparable with each other.

    Raises:
        InputError: no checkpoint is named, one has no metrics, an untrained model has none; or see `study_results` and
            `study_training`.
    """
    if not study.amounts:
        raise InputError(f"{_name(study)}: it names no `checkpoints`; a curve needs some on the way")
    files: dict[str | None, list[Path]] = {}
    untrained = []
    for path in metrics:
        header = read_metrics(path)["header"]
        files.setdefault(header.get("at"), []).append(path)
        untrained += [path] if header["method"] == "base" else []
    for at in (None, *study.amounts):
        if at not in files:
            raise InputError(
                f"{_name(study)}: no metrics of checkpoints at {at or 'the end of training'}; evaluate them"
            )
    end = study_results(study, files[None])
    for model in study.models:
        if base_of(model) not in end.runs:
            raise InputError(f"{_name(study)}: no metrics of {base_of(model)}, where the curves begin; evaluate it")
    on_the_way = {amount: study_results(study, [*untrained, *files[amount]]) for amount in study.amounts}
    return Along(study, end, on_the_way, study_training(study, logs))


def base_of(model: str) -> Run:
    """The untrained model as a run."""
    return Run(model, "base", "base")


def _rows(study: Study) -> set[Run]:
    return {row.of(model) for model in study.models for row in study.rows}


def _trained(study: Study) -> list[tuple[Run, int]]:
    return [
        (row.of(model), seed) for model in study.models for row in study.rows if row.trained for seed in study.seeds
    ]


def _name(study: Study) -> str:
    return f"study {study.study!r}"
