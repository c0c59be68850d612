"""What has to be said beneath a table about fork rules for its numbers to be read rightly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from datpo.report.forks.comparison import AGAINST, DIVERSITY, PASS_RATE, ForkTable, Measure
from datpo.report.forks.explorations import rule_label
from datpo.report.runs import benchmark_label

READING = {
    PASS_RATE: "PassRate is the share of trees with at least one right leaf.",
    DIVERSITY: (
        "SibDiv is 1 minus the mean cosine similarity of the embedded texts of blocks that start at the same fork, the "
        "base rollout's continuation included, averaged over a tree's forks; texts were embedded by {embedder}."
    ),
}
LOCALISED = (
    "NND is the mean distance of a fork point to the nearest other one, MPD the mean over all pairs, both as a share "
    "of the trajectory; WCR@P is the percentage of pairs at most P % of it apart. A trajectory with fewer than two "
    "fork points has none of these. 'uniform' is what is expected of as many different places of the same "
    "trajectories drawn by lot, worked out exactly: 0.15, 0.333, 9.75 and 19 for four points on a long one; on a short "
    "one hardly any two tokens lie within P % of it."
)


def fork_notes(table: ForkTable) -> list[str]:
    """The notes of a table, one paragraph each, as plain text."""
    return [
        _scale(table),
        _what(table),
        _costs(table),
        *_readings(table),
        "Repeats of a problem are averaged first. Brackets (in LaTeX the lower and upper index) are 95 % intervals by "
        "bootstrap over problems, all trees of a problem drawn together; differences are paired by problem. Where all "
        "problems agree the bootstrap has nothing to draw from and the interval has no width.",
        *_noise(table),
        *([] if table.layout.uniform else [_marks()]),
        *(f"Of the paper: {caution}" for caution in table.cautions if PASS_RATE in table.layout.measures),
    ]


def _marks() -> str:
    return (
        "Bold: above every other rule, each paired difference having a 95 % interval without 0 (not corrected for the "
        "number of comparisons); underlined: as surely above all others but that one."
    )


def _scale(table: ForkTable) -> str:
    scale = table.exploration.identity["scale"]
    if scale == "paper":
        return (
            "Scale: paper. Beside our value stands the paper's, of Qwen2.5-3B-Instruct on AIME26, and ours minus the "
            "paper's in parentheses."
        )
    return (
        f"Scale: {scale}, which is not the paper's: model and problems are others, so these numbers are not to be "
        "compared with the paper's, which are left out."
    )


def _what(table: ForkTable) -> str:
    found = table.exploration
    identity, train = found.identity, found.train
    whose = (
        "not trained here" if identity["method"] == "base" else f"trained by {identity['run']}, seed {identity['seed']}"
    )
    length = found.of(table.structures[AGAINST])["length"]
    limit = "branch" if train["length_limit"] == "branch" else "path from the prompt"
    return (
        f"{identity['model']} ({whose}) on {benchmark_label(found.benchmark)}: {found.problems} problems, "
        f"{found.repeats} repeats each. In each repeat a problem has one base rollout, the same for all rules "
        f"({length.mean():.1f} tokens on average, {length.min():.0f} to {length.max():.0f}). Sampled at temperature "
        f"{train['temperature']:g}, at most {train['max_new_tokens']} new tokens a {limit}."
    )


def _costs(table: ForkTable) -> str:
    costs = table.costs
    told = "; ".join(
        f"{rule_label(rule)} {cost['leaves']:.1f} and {cost['tokens']:,.0f}" for rule, cost in costs.items()
    )
    most = max(cost["forks"] for cost in costs.values())
    fewer = [f"{rule_label(rule)} ({cost['forks']:.1f})" for rule, cost in costs.items() if cost["forks"] < most]
    less = f" Fewer than {most:.1f} places to fork were found by {', '.join(fewer)}; so they have fewer leaves."
    return f"Leaves and generated tokens a problem, a shared prefix counted once: {told}.{less if fewer else ''}"


def _readings(table: ForkTable) -> Iterator[str]:
    if table.layout.uniform:
        yield LOCALISED
    for measure, text in READING.items():
        if measure in table.layout.measures:
            yield text.format(embedder=table.exploration.train["embedder"])
    for measure in table.layout.measures:
        missing = _undefined(table, measure)
        if missing:
            yield f"{measure.title} is undefined for {missing}, which are left out there."


def _undefined(table: ForkTable, measure: Measure) -> str:
    problems = table.exploration.problems
    counts = {rule: problems - len(table.values(rule, measure)) for rule in table.layout.rules}
    return ", ".join(f"{count} problems of {rule_label(rule)}" for rule, count in counts.items() if count)


def _noise(table: ForkTable) -> Iterator[str]:
    """How large the noise of a PassRate is, with repeats taken for independent trials and without."""
    if PASS_RATE not in table.layout.measures or table.exploration.problems < 2:
        return
    rates = [np.array(list(table.values(rule, PASS_RATE).values())) for rule in table.layout.rules]
    trees = table.exploration.problems * table.exploration.repeats
    binomial = [math.sqrt(rate.mean() * (100 - rate.mean()) / trees) for rate in rates]
    clustered = [float(rate.std(ddof=1)) / math.sqrt(len(rate)) for rate in rates]
    yield (
        f"Every PassRate is a share of {trees} trees. Its standard error is {_range(binomial)} points if all trees "
        f"were independent, and {_range(clustered)} points clustered by problem, which is the one that holds."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"
