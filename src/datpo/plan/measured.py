"""What jobs of the scale have really taken, where they are done: by training logs and Snakemake's benchmark files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl, read_text
from datpo.core.kinds import AMOUNT, check_kinds
from datpo.plan.needs import Job

LOGGED = dict.fromkeys(("prompts", "reward", "tokens_per_question", "response_length", "seconds"), AMOUNT)
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Done:
    """A job that has been done.

    Attributes:
        seconds: that it took; of a training without its looks at the validation split.
        per_question: new tokens that a training generated for a question; None of other jobs, as what follows.
        length: mean tokens of a response.
        reward: mean reward of base rollouts.
    """

    seconds: float
    per_question: float | None = None
    length: float | None = None
    reward: float | None = None


@dataclass(frozen=True)
class Measured:
    """All that has been done of a scale."""

    done: Mapping[Job, Done]

    @cached_property
    def lengths(self) -> dict[str, float]:
        """Mean tokens of a response in the trainings of a model."""
        return _means((job.model, done.length) for job, done in self.done.items())

    @cached_property
    def rewards(self) -> dict[str, float]:
        """Mean reward of base rollouts in the trainings of a model."""
        return _means((job.model, done.reward) for job, done in self.done.items())

    @cached_property
    def per_question(self) -> dict[tuple[str, str], float]:
        """Generated tokens a question by (model, run), the mean of its seeds."""
        return _means(((job.model, job.run), done.per_question) for job, done in self.done.items())

    def seconds(self, job: Job, works: Mapping[Job, float]) -> float | None:
        """What a job has taken, or will if it goes as fast as those that are most like it; None if none is done.

        Args:
            job: in question.
            works: of every job of the plan, how much it does (operations): like jobs take as long for as much.
        """
        if job in self.done:
            return self.done[job].seconds
        for like in _likenesses(job):
            same = [other for other in self.done if other.kind == job.kind and like(other) and works.get(other)]
            if same:
                rates = [self.done[other].seconds / works[other] for other in same]
                return float(np.mean(rates)) * works[job]
        return None


def _means(pairs: Iterable[tuple[Key, float | None]]) -> dict[Key, float]:
    """The mean of what there is under each key."""
    found: dict[Key, list[float]] = {}
    for key, value in pairs:
        if value is not None:
            found.setdefault(key, []).append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def _likenesses(job: Job) -> Iterator[Callable[[Job], bool]]:
    """What other jobs of its kind are compared by, the best first."""
    if job.kind == "train":
        yield lambda other: (other.model, other.method) == (job.model, job.method)
    if job.kind == "sample":
        yield lambda other: (other.model, other.subject) == (job.model, job.subject)
    yield lambda other: other.model == job.model


def read_measured(results: Path, jobs: Sequence[Job]) -> Measured:
    """What of these jobs has been done, by the files below `results`, the scale's folder.

    Raises:
        InputError: a log or a benchmark file is not as it should be.
    """
    found = {job: done for job in jobs if (done := _read(results, job)) is not None}
    return Measured(found)


def _read(results: Path, job: Job) -> Done | None:
    file = file_of(results, job)
    if not file.exists():
        return None
    return _logged(file) if job.kind == "train" else Done(_benchmark(file))


def file_of(results: Path, job: Job) -> Path:
    """The file that says what a job took."""
    folder = results / job.folder
    if job.kind == "train":
        return folder / "metrics.jsonl"
    if job.kind == "explore":
        return results / "explorations" / "logs" / f"{job.subject}.tsv"
    if job.kind == "pretrain":
        return folder / "logs" / "pretrain.tsv"
    return folder / (f"at-{job.at}" if job.at else "") / "logs" / f"sample.{job.subject}.tsv"


def _logged(file: Path) -> Done:
    rows = read_jsonl(file)
    if not rows:
        raise InputError(f"{file}: no steps in this log; delete it and train again")
    for number, row in enumerate(rows, start=1):
        check_kinds(f"{file}: line {number}", row, LOGGED)
    prompts = [row["prompts"] for row in rows]
    return Done(
        seconds=rows[-1]["seconds"],
        per_question=float(np.average([row["tokens_per_question"] for row in rows], weights=prompts)),
        length=float(np.mean([row["response_length"] for row in rows])),
        reward=float(np.mean([row["reward"] for row in rows])),
    )


def _benchmark(file: Path) -> float:
    """The seconds of Snakemake's benchmark file: its column `s`, the last attempt's."""
    head, *rows = read_text(file).splitlines() or [""]
    try:
        return float(rows[-1].split("\t")[head.split("\t").index("s")])
    except (IndexError, ValueError):
        raise InputError(f"{file}: no number in its column `s`, a job's seconds by Snakemake; delete it") from None
