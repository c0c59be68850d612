"""All that a plan says of each job of a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl, read_text
from datpo.plan.hours import HOUR, Paper, paper_hours, read_paper
from datpo.plan.known import KNOWN_LENGTH, Known
from datpo.plan.measured import Measured, read_measured
from datpo.plan.needs import Job, Settings, needs, place
from datpo.plan.ranges import Range
from datpo.plan.sampling import exploring_work, pretraining_work, sampling_work
from datpo.plan.sizes import Size, model_size
from datpo.plan.training import training_work
from datpo.plan.work import Work
from datpo.report.studies.published import MODEL

CPU = "CPU"
PAPER_ROOTS, PAPER_LIMIT = 16, 1024  # responses of GRPO in its Table 8, each of at most so many tokens
WORK = {"pretrain": pretraining_work, "train": training_work, "sample": sampling_work, "explore": exploring_work}


@dataclass(frozen=True)
class Estimate:
    """A job of a plan.

    Attributes:
        needed_by: the targets that need it.
        paper: hours on one device, by what the paper reports; None where it says nothing, of CPUs and other domains.
        source: what in the paper these are taken from.
        measured: hours by what has been measured at this scale; None if nothing like it has been done.
        done: whether it is this very job that has been measured.
    """

    job: Job
    needed_by: tuple[str, ...]
    work: Work
    paper: Range | None
    source: str
    measured: float | None
    done: bool

    @property
    def hours(self) -> Range | None:
        """The best that is known: measured, else by the paper."""
        return self.paper if self.measured is None else Range.exactly(self.measured)


@dataclass(frozen=True)
class Plan:
    """A scale's jobs.

    Attributes:
        device: its name, and its memory in bytes; of a CPU job what the settings allow it.
    """

    scale: str
    estimates: tuple[Estimate, ...]
    sizes: Mapping[str, Size]
    device: str
    memory: float

    def of(self, target: str) -> list[Estimate]:
        """The jobs that a target needs."""
        return [each for each in self.estimates if target in each.needed_by]

    @property
    def targets(self) -> list[str]:
        """All targets that need a job."""
        return sorted({target for each in self.estimates for target in each.needed_by}, key=place)


def total(estimates: Iterable[Estimate]) -> Range:
    """Their hours together, those of which nothing is known left out; all at their least, or at their most, at once."""
    found = Range.exactly(0)
    for each in estimates:
        found += each.hours or Range.exactly(0)
    return found


def make_plan(config: Settings, results: Path, folder: Path) -> Plan:
    """The plan of an experiment.

    Args:
        config: as `datpo.plan.needs.plan_settings` gives it.
        results: the folder of the scale, where what has been done lies.
        folder: of the published numbers and of what is known of hardware, `config/`.

    Raises:
        InputError: something that the plan needs is not known, or a file is not as it should be.
    """
    found = needs(config)
    jobs = list(dict.fromkeys(job for wanted in found.values() for job in wanted))
    needed_by: dict[Job, list[str]] = {job: [] for job in jobs}
    for target, wanted in found.items():
        for job in wanted:
            needed_by[job].append(target)
    hardware = _hardware(folder / "hardware.yaml")
    sizes = {
        name: model_size(name, model, results / Job("pretrain", name).folder / "checkpoint", hardware["models"])
        for name, model in config["models"].items()
    }
    measured = read_measured(results, jobs)
    on_gpu = config["jobs"]["gpus"] > 0
    paper = read_paper(folder / "published.yaml", config) if on_gpu and config["domain"] == "math" else None
    known = _known(config, results, sizes, measured, paper, hardware["embedders"])
    works = {job: WORK[job.kind](job, config, known) for job in jobs}
    amounts = {job: work.all_operations for job, work in works.items()}
    gpu = hardware["gpu"]
    return Plan(
        scale=config["scale"],
        estimates=tuple(
            _estimate(job, tuple(needed_by[job]), works[job], config, sizes[job.model], paper, measured, amounts)
            for job in jobs
        ),
        sizes=sizes,
        device=gpu["name"] if on_gpu else CPU,
        memory=1e9 * (gpu["memory_gb"] if on_gpu else config["jobs"]["memory_gb"]),
    )


def _estimate(
    job: Job,
    needed_by: tuple[str, ...],
    work: Work,
    config: Settings,
    size: Size,
    paper: Paper | None,
    measured: Measured,
    amounts: Mapping[Job, float],
) -> Estimate:
    hours, source = paper_hours(job, work, config, size, paper) if paper else (None, "")
    seconds = measured.seconds(job, amounts)
    return Estimate(
        job, needed_by, work, hours, source, None if seconds is None else seconds / HOUR, job in measured.done
    )


def _known(
    config: Settings,
    results: Path,
    sizes: Mapping[str, Size],
    measured: Measured,
    paper: Paper | None,
    embedders: Mapping[str, float],
) -> Known:
    """What the paper says of lengths, and over it what has been measured."""
    lengths: dict[str, float] = {}
    per_question: dict[tuple[str, str], Range] = {}
    if paper:
        length = paper.of_question["grpo"] / PAPER_ROOTS
        lengths = {model: length for model in sizes if config["train"]["max_new_tokens"] == PAPER_LIMIT}
        for model, (run, tokens) in ((m, row) for m in lengths for row in paper.per_question.items()):
            spread = Range.exactly(1) if model == MODEL else KNOWN_LENGTH
            per_question[model, run] = spread * tokens
    lengths |= measured.lengths
    per_question |= {key: Range.exactly(tokens) for key, tokens in measured.per_question.items()}
    return Known(
        sizes=sizes,
        lengths=lengths,
        solved=measured.rewards,
        per_question=per_question,
        embedders={name: 1e6 * millions for name, millions in embedders.items()},
        bands=_bands(results, list(sizes), list(config["difficulty"]["bands"])),
    )


def _bands(results: Path, models: Sequence[str], names: Sequence[str]) -> dict[tuple[str, str], int]:
    """How many problems are in each band of difficulty that has been made."""
    files = {(model, band): results / model / "difficulty" / f"{band}.jsonl" for model in models for band in names}
    return {key: len(read_jsonl(file)) for key, file in files.items() if file.exists()}


def _hardware(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = yaml.safe_load(read_text(file))
        return {"gpu": {"name": str(found["gpu"]["name"]), "memory_gb": float(found["gpu"]["memory_gb"])}} | {
            key: dict(found[key]) for key in ("models", "embedders")
        }
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: not as expected: needs gpu (name, memory_gb), models, embedders ({error})") from None
