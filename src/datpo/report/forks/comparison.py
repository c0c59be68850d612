"""What the paper's Tables 1, 6 and 7 compare (its appendix D): rules, each forking the same given rollouts.

Repeats of a problem are averaged before anything else, and intervals are bootstraps over problems: the trees of one
problem are no independent trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from datpo.core.errors import InputError
from datpo.core.files import read_text
from datpo.evaluate.bootstrap import Interval
from datpo.report.forks.explorations import Exploration, Structure, rule_label
from datpo.report.scores import Mark

AGAINST = "random"  # the rule that all others are held against


class Measure(NamedTuple):
    """A column of a table.

    Attributes:
        column: where in `rollouts.csv` it stands.
        factor: what its number is multiplied by to be shown; 100 for percent.
        digits: decimals, as in the paper.
    """

    column: str
    title: str
    factor: float
    digits: int


PASS_RATE = Measure("solved", "PassRate", 100, 1)
DIVERSITY = Measure("sibling_diversity", "SibDiv", 1, 4)
LOCALISATION = (
    Measure("nnd", "NND", 1, 3),
    Measure("mpd", "MPD", 1, 3),
    Measure("wcr5", "WCR@5", 100, 1),
    Measure("wcr10", "WCR@10", 100, 1),
)
COSTS = {"forks": "fork points", "leaves": "leaves", "tokens": "generated tokens"}  # a problem
WINDOWS = {"wcr5": 5, "wcr10": 10}  # percent of a trajectory


class Layout(NamedTuple):
    """A table of the paper; `uniform` if values of points drawn uniformly stand beside its own."""

    title: str
    rules: Sequence[str]
    measures: Sequence[Measure]
    uniform: bool = False


LAYOUTS = {
    "table1": Layout(
        "Table 1: where to fork one base rollout",
        ("random", "fixed-seg", "atb", "tok-entropy", "sent-entropy"),
        (PASS_RATE, DIVERSITY),
    ),
    "table6": Layout(
        "Table 6: how closely fork points lie together", ("random", "sent-entropy", "tok-entropy"), LOCALISATION, True
    ),
    "table7": Layout(
        "Table 7: token entropy with distances kept",
        ("random", "fixed-seg", "atb", "tok-entropy", "tok-entropy-5", "tok-entropy-10", "sent-entropy"),
        (PASS_RATE, DIVERSITY),
    ),
}


@dataclass(frozen=True)
class ForkTable:
    """All that stands in a table.

    Attributes:
        name: a key of `LAYOUTS`.
        structures: rule -> the structure that follows it.
        published: label -> the paper's numbers, in the order of the measures; empty unless the scale is `paper`.
    """

    name: str
    exploration: Exploration
    structures: Mapping[str, Structure]
    published: Mapping[str, Sequence[float]]
    cautions: Sequence[str]

    @property
    def layout(self) -> Layout:
        """What it shows."""
        return LAYOUTS[self.name]

    def values(self, rule: str, measure: Measure) -> dict[str, float]:
        """What is shown of each problem."""
        found = self.exploration.values(self.structures[rule], measure.column)
        return {problem: measure.factor * value for problem, value in found.items()}

    @property
    def model(self) -> str:
        """Whose trees they are."""
        return str(self.exploration.identity["model"])

    @property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """What the trees of each rule are made of: means over problems."""
        return {
            rule: {
                column: float(np.mean(list(self.exploration.values(structure, column).values()))) for column in COSTS
            }
            for rule, structure in self.structures.items()
        }

    def difference(self, rule: str, measure: Measure) -> Interval | None:
        """By how much a rule is above the one that all are held against."""
        return self.exploration.difference(self.values(rule, measure), self.values(AGAINST, measure))

    def uniform(self, rule: str, measure: Measure) -> float | None:
        """What is expected of as many points on as long trajectories as a rule had, drawn uniformly."""
        trees = self.exploration.of(self.structures[rule]).dropna(subset=[measure.column])
        expected = [
            measure.factor * uniform_points(int(forks), int(length))[measure.column]
            for forks, length in zip(trees["forks"], trees["length"], strict=True)
        ]
        means = pd.Series(expected, dtype=float).groupby(trees["problem"].to_numpy()).mean()
        return float(means.mean()) if expected else None

    def paper(self, rule: str, measure: Measure) -> float | None:
        """The paper's number for a cell."""
        numbers = self.published.get(rule_label(rule))
        return None if numbers is None else float(numbers[list(self.layout.measures).index(measure)])


def structure_of(exploration: Exploration, rule: str) -> Structure:
    """The structure that forks a single base rollout by a rule.

    Raises:
        InputError: there is none, or more than one.
    """
    found = [each for each in exploration.structures if each.rule == rule and each.numbers.get("roots") == 1]
    if len(found) != 1:
        raise InputError(
            f"exploration {exploration.name!r} has {len(found)} structures with roots: 1 and fork_rule: {rule}; the "
            "table needs one"
        )
    return found[0]


@cache
def uniform_points(points: int, length: int) -> dict[str, float]:
    """What is expected of `points` different places of 1, ..., `length` - 1 drawn uniformly, as shares of the length.

    With m = length - 1 places, K points and g the gap between neighbours: all gaps have one distribution, with
    P(g >= t) = C(m - t + 1, K) / C(m, K), and two of them P(both >= t) = C(m - 2 t + 2, K) / C(m, K); the outer points
    have one neighbour, the K - 2 inner ones two. A pair is s apart in m - s of m (m - 1) / 2 cases. For long
    trajectories these are the values of `search.localisation`.
    """
    places, pairs = length - 1, (length - 1) * (length - 2) / 2
    lone = sum(comb(places - t + 1, points) for t in range(1, places)) / comb(places, points)
    both = sum(comb(max(0, places - 2 * t + 2), points) for t in range(1, places)) / comb(places, points)
    near = {name: percent * length // 100 for name, percent in WINDOWS.items()}
    return {
        "nnd": (2 * lone + (points - 2) * both) / points / length,
        "mpd": 1 / 3,  # (m + 1) / 3 of m + 1
        **{name: sum(places - s for s in range(1, min(reach, places) + 1)) / pairs for name, reach in near.items()},
    }


def marked(table: ForkTable, measure: Measure) -> dict[str, Mark]:
    """The best rule, and the second, as far as the paired intervals to all below say so; of localisation none is."""
    if measure in LOCALISATION:
        return {}
    values = {rule: table.values(rule, measure) for rule in table.layout.rules}
    values = {rule: found for rule, found in values.items() if found}
    order = sorted(values, key=lambda rule: float(np.mean(list(values[rule].values()))), reverse=True)
    marks: dict[str, Mark] = {}
    places: tuple[Mark, ...] = ("best", "second")
    for place, (mark, rule) in enumerate(zip(places, order, strict=False)):
        ahead = [table.exploration.difference(values[rule], values[other]) for other in order[place + 1 :]]
        if not ahead or not all(interval and interval.low > 0 for interval in ahead):
            break
        marks[rule] = mark
    return marks


def load_paper_rows(path: Path, table: str, scale: str) -> tuple[dict[str, list[float]], list[str]]:
    """The paper's numbers at its own scale, and what is to be said of them at any."""
    try:
        document = yaml.safe_load(read_text(path))
        rows = {str(label): [float(number) for number in numbers] for label, numbers in document[table]["rows"].items()}
        if any(len(numbers) != len(LAYOUTS[table].measures) for numbers in rows.values()):
            raise ValueError(f"a row has not {len(LAYOUTS[table].measures)} numbers")
        cautions = [str(text) for text in document["cautions"] if str(text).startswith("Table 1/7")]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: section {table!r} is missing or not as expected ({error})") from None
    return rows if scale == "paper" else {}, cautions
