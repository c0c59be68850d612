"""What the paper reports in its other tables, told by the rows and columns of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from datpo.core.errors import InputError
from datpo.core.files import read_text
from datpo.report.runs import benchmark_label

MODEL = "Qwen2.5-3B-Base"  # of every table that names none
STUDIED = "Qwen2.5-3B-Instruct"  # of the nine runs of difficulty and group size
SHOWN = "MATH500"  # the one benchmark of the ablations
AVERAGE = "Average"
BOTH = ("avg", "pass")
OUT_OF_DOMAIN = ("GPQA-Diamond", "MMLU-Pro")
COMPONENTS = {
    "rollout": "seconds_rollout",
    "diversity embedding": "seconds_diversity",
    "update": "seconds_update",
    "others": "seconds_other",
    "total": "seconds_step",
}


class Place(NamedTuple):
    """Where a number stands.

    Attributes:
        model: the paper's name of it.
        label: the row.
        benchmark: the paper's name, `Average`, or None for a column from the training.
        column: as in the settings of a study.
    """

    model: str
    label: str
    benchmark: str | None
    column: str


@dataclass(frozen=True)
class Published:
    """The numbers of one of the paper's tables: percent, or the unit that its column has.

    Capitals in the names of models and benchmarks do not matter.
    """

    values: Mapping[Place, float]

    @property
    def benchmarks(self) -> list[str]:
        """The benchmarks it shows."""
        return list(dict.fromkeys(place.benchmark for place in self.values if place.benchmark not in (None, AVERAGE)))

    def value(self, model: str, label: str, benchmark: str | None, column: str) -> float | None:
        """The paper's number, None where it has none; for the benchmark `Average`, see `averages_over`."""
        return self._by_place.get(_lower(Place(model, label, benchmark, column)))

    def averages_over(self, benchmarks: Iterable[str]) -> bool:
        """Whether its averages are over just these benchmarks, so that ours may stand beside them."""
        return {benchmark_label(name) for name in benchmarks} == {*self.benchmarks}

    @cached_property
    def _by_place(self) -> dict[Place, float]:
        return {_lower(place): value for place, value in self.values.items()}


def load_published(path: Path, study: str) -> Published:
    """Read the section of one table of the published numbers; of a study that is no table of the paper there are none.

    Raises:
        InputError: no such file, or a section that is missing or of another shape.
    """
    if study not in READERS:
        return Published({})
    try:
        section = yaml.safe_load(read_text(path))[study]
        found = {place: float(value) for place, value in READERS[study](section)}
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: section {study!r} is missing or not as expected ({error})") from None
    return Published(found)


def _lower(place: Place) -> Place:
    name = None if place.benchmark is None else benchmark_label(place.benchmark).lower()
    return place._replace(model=place.model.lower(), benchmark=name)


Numbers = Iterator[tuple[Place, float]]


def _ablation(section: Mapping[str, Any]) -> Numbers:
    """Rows of [avg, pass] on the one benchmark."""
    for label, pair in section.items():
        for column, value in zip(BOTH, pair, strict=True):
            yield Place(MODEL, label, SHOWN, column), value


def _topologies(section: Mapping[str, Any]) -> Numbers:
    """Rows of [tokens per question, avg, pass]."""
    for label, (tokens, *pair) in section.items():
        yield Place(MODEL, label, None, "tokens_per_question"), tokens
        yield from _ablation({label: pair})


def _difficulties(section: Mapping[str, Any]) -> Numbers:
    """Hours by difficulty and group size."""
    for difficulty, hours in section.items():
        for size, value in hours.items():
            yield Place(STUDIED, f"{difficulty}, G = {size}", None, "hours"), value


def _logged(column: str) -> Callable[[Mapping[str, Any]], Numbers]:
    """Rows of one number from the training."""

    def numbers(section: Mapping[str, Any]) -> Numbers:
        for label, value in section.items():
            yield Place(MODEL, label, None, column), value

    return numbers


def _components(section: Mapping[str, Any]) -> Numbers:
    """The seconds of a step of DATPO by what they go to."""
    for component, value in section.items():
        yield Place(MODEL, "DATPO", None, COMPONENTS[component]), value


def _out_of_domain(section: Mapping[str, Any]) -> Numbers:
    """For each model rows of avg on the two benchmarks."""
    for model, rows in section.items():
        for label, values in rows.items():
            for benchmark, value in zip(OUT_OF_DOMAIN, values, strict=True):
                yield Place(model, label, benchmark, "avg"), value


def _all_benchmarks(section: Mapping[str, Any]) -> Numbers:
    """Rows of [avg, pass] by benchmark."""
    for label, pairs in section.items():
        for benchmark, pair in pairs.items():
            for column, value in zip(BOTH, pair, strict=True):
                yield Place(MODEL, label, benchmark, column), value


TITLES = {
    "table3": "Table 3: DATPO trained with each fork strategy",
    "table4": "Table 4: DATPO with other weights of diversity, first to last",
    "table5": "Table 5: wall time by difficulty and group size",
    "table8": "Table 8: generated tokens per question in training",
    "table9": "Table 9: wall time of a training",
    "table10": "Table 10: what a step of DATPO takes",
    "table11": "Table 11: out of domain",
    "table12": "Table 12: DATPO with and without difficulty adaptation",
    "table13": "Table 13: DATPO with other embeddings behind its diversity",
    "table14": "Table 14: the tree baselines at a wider topology",
}
READERS: Mapping[str, Callable[[Mapping[str, Any]], Numbers]] = {
    **dict.fromkeys(("table3", "table4", "table13"), _ablation),
    "table5": _difficulties,
    "table8": _logged("tokens_per_question"),
    "table9": _logged("hours"),
    "table10": _components,
    "table11": _out_of_domain,
    "table12": _all_benchmarks,
    "table14": _topologies,
}
