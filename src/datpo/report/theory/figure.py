"""Both theorems in six panels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from datpo.report.runs import Run, benchmark_label
from datpo.report.style import Look, figure, legend_of, looks, ordered_looks
from datpo.report.theory.checks import (
    BETAS,
    MEAN,
    RATE,
    SHOWN,
    SIZES,
    TRIES,
    Check,
    checks_of,
    polarised,
)
from datpo.report.theory.gap import beta_gap, beta_pass, beta_variance, second_order
from datpo.report.theory.runs import Measured
from datpo.report.theory.signal import (
    CENTRED,
    ESTIMATORS,
    GRPO,
    UNIT,
    expected_step,
    gain_per_mixed_group,
    mixed_chance,
)

GROUPS = ("Theorem A.1: larger groups, more signal", "Theorem A.2: pass@k = fₖ(μ) − Jₖ")
GROUP_SIZES = (2, 4, 8, 16, 32, 64)
DENSE = np.linspace(0, 1, 201)
UNIT_LOOK: Look = {"color": "#000000", "linestyle": ":", "marker": "x"}
BETA_LOOKS = ({"color": "#000000", "marker": "o"}, {"color": "#d6604d", "marker": "s"})
KEY: dict[str, Any] = {"fontsize": 6, "handlelength": 2.2, "labelspacing": 0.25, "borderaxespad": 0.2}


def draw_theory(out: Path, checks: Sequence[Check], runs: Sequence[Measured], scale: str) -> None:
    """Draw what the theorems say, what was simulated, and the measured gap of the runs.

    Args:
        out: the PNG; an SVG is written beside it.
        checks: of all kinds; the simulated steps are drawn as crosses.
        runs: at least one; those of the model and benchmark with the largest k are drawn.
        scale: of the runs.
    """
    drawn = shown_runs(runs)
    note = (
        f"Circles: simulated. Last panel: model {drawn[0].run.model} at the scale {scale}, means over training seeds, "
        "estimated without bias; the key at the top names its runs."
    )
    with figure(out, GROUPS, 3, legend_of([each.run for each in drawn]), note, height=1.95) as (signal, gap):
        _draw_chances(signal[0])
        _draw_steps(signal[1], checks)
        _draw_gains(signal[2])
        _draw_polarisation(gap[0])
        _draw_approximation(gap[1])
        _draw_runs(gap[2], drawn)


def shown_runs(runs: Sequence[Measured]) -> list[Measured]:
    """The runs of one model on one benchmark, at the ends of their trainings where they were evaluated there."""
    widest = max(runs, key=lambda each: each.parts[-1].k)
    same = [each for each in runs if (each.run.model, each.benchmark) == (widest.run.model, widest.benchmark)]
    ended = {each.run for each in same if each.at is None}
    return [each for each in same if each.at is None or each.run not in ended]


def mean_gap(runs: Sequence[Measured]) -> tuple[list[int], list[float]]:
    """k, and J_k averaged over the seeds of one run, for every k that all of them have."""
    gaps = [{part.k: part.jensen for part in each.parts} for each in runs]
    ks = [k for k in gaps[0] if all(k in gap for gap in gaps)]
    return ks, [float(np.mean([gap[k] for gap in gaps])) for k in ks]


def _draw_chances(panel: Any) -> None:
    for size, look in _ordered(SIZES):
        panel.plot(DENSE, mixed_chance(DENSE, size), label=f"G = {size}", **_line(look))
    panel.set(title="chance of a mixed group, Ψ(p)", xlabel="p", ylim=(0, 1.04))
    panel.legend(loc="lower center", **KEY)


def _draw_steps(panel: Any, checks: Sequence[Check]) -> None:
    for estimator, look in _estimator_looks():
        steps = [expected_step(estimator, SHOWN, size) for size in GROUP_SIZES]
        panel.plot(GROUP_SIZES, steps, label=estimator.name, **_line(look))
        found = checks_of(checks, f"expected step, {estimator.name}")
        at = [f"p={SHOWN} G={size} eta={RATE}" for size in SIZES]
        simulated = [check.compared for check in found if check.parameters in at]
        panel.plot(SIZES, simulated, linestyle="", marker="o", markerfacecolor="none", color=look["color"])
    _powers(panel, GROUP_SIZES)
    panel.set(title=f"expected step (p = {SHOWN})", xlabel="G", ylim=(0, 1.04))
    panel.legend(loc="center right", bbox_to_anchor=(1, 0.68), **KEY)


def _draw_gains(panel: Any) -> None:
    for estimator, look in _estimator_looks():
        gains = np.array([gain_per_mixed_group(estimator, SHOWN, size) for size in GROUP_SIZES])
        panel.plot(GROUP_SIZES, gains / gains[0], label=estimator.name, **look)
    _powers(panel, GROUP_SIZES)
    panel.set(title=f"gain per mixed group (p = {SHOWN})", xlabel="G", ylabel="relative to G = 2", ylim=(0.6, 1.04))
    panel.legend(loc="lower center", **KEY)


def _draw_polarisation(panel: Any) -> None:
    populations = [(a, b) for _, (a, b) in polarised()]
    for (a, b), (variance, look) in zip(
        populations, _ordered([f"{float(beta_variance(a, b)):.3f}" for a, b in populations]), strict=True
    ):
        passed = [float(beta_pass(a, b, k)) for k in TRIES]
        panel.plot(TRIES, passed, label=variance, **_line(look))
    _powers(panel, TRIES)
    panel.set(title=f"pass@k, all with μ = {float(MEAN)}", xlabel="k", ylim=(0, 1.55), yticks=np.linspace(0, 1, 6))
    panel.legend(loc="upper center", title="variance of p", title_fontsize=6, ncols=3, columnspacing=1, **KEY)


def _draw_approximation(panel: Any) -> None:
    for (a, b), look in zip(BETAS, BETA_LOOKS, strict=True):
        rough = [second_order(float(a / (a + b)), float(beta_variance(a, b)), k) for k in TRIES]
        name = f"Beta({float(a):g}, {float(b):g})"
        panel.plot(TRIES, [float(beta_gap(a, b, k)) for k in TRIES], label=f"{name}: exact", **look)
        panel.plot(TRIES, rough, label="second order", linestyle="--", linewidth=1, color=look["color"])
    _powers(panel, TRIES)
    panel.set(title="Jₖ and its approximation", xlabel="k", ylim=(0, 2.9))
    panel.legend(loc="upper left", **KEY)


def _draw_runs(panel: Any, drawn: Sequence[Measured]) -> None:
    look = looks([each.run for each in drawn])
    ks: list[int] = []
    for run in look:
        ks, gaps = mean_gap([each for each in drawn if each.run == run])
        panel.plot(ks, gaps, **look[run])
    panel.axhline(0, color="0.6", linewidth=0.6)
    _powers(panel, ks)
    panel.set(title=f"Jₖ measured: {benchmark_label(drawn[0].benchmark)}", xlabel="k")


def _estimator_looks() -> list[tuple[Any, Look]]:
    """As the methods look elsewhere."""
    method = looks([Run("", "grpo", "grpo"), Run("", "dr_grpo", "dr_grpo")])
    grpo, centred = method.values()
    look = {UNIT.name: UNIT_LOOK, GRPO.name: grpo, CENTRED.name: centred}
    return [(estimator, look[estimator.name]) for estimator in ESTIMATORS]


def _ordered(values: Sequence[Any]) -> list[tuple[Any, Look]]:
    look = ordered_looks([str(value) for value in values])
    return [(value, look[str(value)]) for value in values]


def _line(look: Look) -> Look:
    return {key: look[key] for key in ("color", "linestyle")}


def _powers(panel: Any, ticks: Sequence[int]) -> None:
    """A logarithmic axis; of many ticks every other one is named."""
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(list(ticks)[:: -(-len(ticks) // 6)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
