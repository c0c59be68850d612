"""Which jobs with a model a scale has, and what each is needed by: the same as the workflow plans for `all`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any, Literal

from datpo.config_checks import DURATIONS
from datpo.config_slices import explored_model
from datpo.config_studies import (
    BASE,
    SCORES,
    benchmarks_of,
    checkpoints_of,
    lacking,
    models_of,
    models_told_by_difficulty,
    rows_of,
)

Settings = Mapping[str, Any]
Kind = Literal["pretrain", "train", "sample", "explore"]

# What of the configuration decides on the jobs and on what they take.
KEYS = (
    *("scale", "seeds", "domain", "models", "trainings", "runs", "studies", "explorations", "benchmarks"),
    *("out_of_domain", "data", "train", "evaluation", "difficulty", "jobs"),
)
TRAIN = "train"  # the training problems, where a benchmark's name is asked for: sampled to tell difficulty
# A figure over trainings -> its study, and what of it the figure reads (rules/studies.smk).
FIGURES: Mapping[str, tuple[str, frozenset[str]]] = {
    "figure1": ("figure1", frozenset({"ends"})),
    "figure1_updates": ("figure1", frozenset({"updates"})),
    "figure4": ("figure4", frozenset({"ends", "along"})),
    "figure5": ("figure5", frozenset()),
    "figure6": ("figure6", frozenset({"ends"})),
    "figure7": ("figure1", frozenset({"ends"})),
    "figure11": ("figure11", frozenset({"ends", "along"})),
    "theory": ("figure1", frozenset({"ends"})),
}
# An exploration -> the tables and figures that show it (rules/explorations.smk).
SHOWN = {
    "forks": ("table1", "table6", "table7", "figure8", "figure9"),
    "tokens": ("figure2",),
    "trees": ("figure3", "viewer"),
}

NUMBERED = re.compile(r"(table|figure)(\d+)")


@dataclass(frozen=True)
class Job:
    """A job that loads a model.

    Attributes:
        method, run, seed: of the checkpoint that is made or sampled; `base` is the untrained model.
        at: where along its training the checkpoint stands, `steps-200` or `tokens`; empty for its end.
        subject: what is sampled: a benchmark, the training problems or an exploration.
    """

    kind: Kind
    model: str
    method: str = BASE
    run: str = BASE
    seed: int = 0
    at: str = ""
    subject: str = ""

    @property
    def folder(self) -> Path:
        """Where its run's files lie, below those of the scale."""
        return Path(self.model, self.method, self.run, f"seed{self.seed}")

    @property
    def checkpoint(self) -> Job:
        """The job that makes the checkpoint that is sampled."""
        kind: Kind = "pretrain" if self.run == BASE else "train"
        return Job(kind, self.model, self.method, self.run, self.seed)


def plan_settings(config: Settings) -> dict[str, Any]:
    """What of the experiment its plan depends on; of names with settings of their own elsewhere, the names alone."""
    models = {name: {k: v for k, v in model.items() if k != "prompt"} for name, model in config["models"].items()}
    runs = {
        name: {"method": run["method"], "train": {"duration": run["train"]["duration"]}}
        for name, run in config["runs"].items()
    }
    studies = {
        name: {**study, "runs": dict.fromkeys(study["runs"]), "train": {}} for name, study in config["studies"].items()
    }
    limits = {name: model["prompt"].get("max_tokens") for name, model in config["models"].items()}
    kept = {key: config[key] for key in KEYS}
    return {**kept, "models": models, "runs": runs, "studies": studies, "prompt_limits": limits}


def needs(config: Settings) -> dict[str, list[Job]]:
    """Every target of the scale and the jobs that it needs, those that these need included."""
    lack = set(lacking(dict(config)))
    there = [name for name in config["studies"] if name not in lack]
    found: dict[str, Iterable[Job]] = {"table2": _main(config, benchmarks_of(dict(config), "table2"))}
    if budgets := _budgets(config):
        found["budgets"] = _main(config, benchmarks_of(dict(config), "table2"), budgets)
    for name in there:
        if name.startswith("table") and name != "table2":
            scored = bool(set(SCORES) & set(config["studies"][name]["columns"]))
            found[name] = _study(config, name, frozenset({"ends"} if scored else ()), untrained=False)
    for figure, (study, reads) in FIGURES.items():
        if study in there:
            found[figure] = _study(config, study, reads, untrained=bool(reads))
    for name in config["explorations"]:
        if name not in lack:
            found |= {target: [_exploration(config, name)] for target in SHOWN.get(name, (name,))}
    if config["out_of_domain"]:
        found["out_of_domain"] = _main(config, config["out_of_domain"])
    found["difficulty"] = [Job("sample", model, subject=TRAIN) for model in models_told_by_difficulty(config)]
    return {target: list(_with_causes(config, jobs)) for target, jobs in found.items()}


def _budgets(config: Settings) -> list[str]:
    """The units that every run of the main table spends, if each spends several."""
    spent = [set(run["train"]["duration"]) for run in config["runs"].values()]
    return [unit for unit in DURATIONS if all(unit in units and len(units) > 1 for units in spent)]


def _main(config: Settings, benchmarks: Iterable[str], ends: Iterable[str] = ("",)) -> list[Job]:
    """The main table's checkpoints on benchmarks, at the ends of their trainings or where they had spent a unit."""
    models = models_of(dict(config), "table2")
    trained = [
        Job("train", model, run["method"], name, seed)
        for model, (name, run), seed in product(models, config["runs"].items(), config["seeds"])
    ]
    return [
        *trained,
        *(Job("sample", model, subject=subject) for model, subject in product(models, benchmarks)),
        *(
            replace(each, kind="sample", at=end, subject=subject)
            for each, end, subject in product(trained, ends, benchmarks)
        ),
    ]


def _study(config: Settings, name: str, reads: frozenset[str], untrained: bool) -> list[Job]:
    """The trainings of a study's rows, and the samples that are read of them."""
    whole = dict(config)
    models, benchmarks = models_of(whole, name), benchmarks_of(whole, name)
    runs = [run for _, run in rows_of(whole, name)]
    amounts = checkpoints_of(whole, name)
    places = [
        *([""] if "ends" in reads else []),
        *(["updates"] if "updates" in reads else []),
        *([f"{unit}-{amount}" for unit in amounts for amount in amounts[unit]] if "along" in reads else []),
    ]
    trained = [
        Job("train", model, config["trainings"][run]["method"], run, seed)
        for model, run, seed in product(models, runs, config["seeds"])
        if run != BASE
    ]
    jobs = [
        *trained,
        *(
            replace(each, kind="sample", at=at, subject=subject)
            for each, at, subject in product(trained, places, benchmarks)
        ),
    ]
    if untrained or (BASE in runs and reads):
        jobs += [Job("sample", model, subject=subject) for model, subject in product(models, benchmarks)]
    return jobs


def _exploration(config: Settings, name: str) -> Job:
    run = config["explorations"][name]["run"]
    model = explored_model(dict(config), name)
    if run == BASE:
        return Job("explore", model, subject=name)
    return Job("explore", model, config["trainings"][run]["method"], run, config["seeds"][0], subject=name)


def _with_causes(config: Settings, jobs: Iterable[Job]) -> Iterable[Job]:
    """The jobs and all that must be done before them, each once, causes first."""
    found: dict[Job, None] = {}
    for job in jobs:
        for each in _causes(config, job):
            found.setdefault(each)
    return found


def _causes(config: Settings, job: Job) -> list[Job]:
    before: list[Job] = []
    if job.kind == "train":
        before = _causes(config, Job("pretrain", job.model))
        if config["trainings"][job.run]["train"]["subset"]:
            before += _causes(config, Job("sample", job.model, subject=TRAIN))
    elif job.kind != "pretrain":
        before = _causes(config, job.checkpoint)
    fetched = job.kind == "pretrain" and "pretrain" not in config["models"][job.model]
    return before if fetched else [*before, job]


def place(target: str) -> tuple[int, int, str]:
    """Where a target stands in a list: tables, figures, others, by their numbers; a key to sort by."""
    found = NUMBERED.match(target)
    return (("table", "figure").index(found[1]), int(found[2]), target) if found else (2, 0, target)


def short(targets: Iterable[str]) -> str:
    """Targets in few letters: `tables 2-4, 9; figures 4, 11; difficulty`."""
    numbers: dict[str, set[int]] = {"table": set(), "figure": set()}
    others = []
    for target in dict.fromkeys(targets):
        if found := NUMBERED.fullmatch(target):
            numbers[found[1]].add(int(found[2]))
        else:
            others.append(target)
    numbered = [(kind, _runs(sorted(mine)), len(mine)) for kind, mine in numbers.items() if mine]
    return "; ".join([*(f"{kind}{'s' * (count > 1)} {', '.join(runs)}" for kind, runs, count in numbered), *others])


def _runs(numbers: list[int]) -> list[str]:
    """Ascending numbers with neighbours as ranges."""
    texts = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in group]
        texts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return texts
