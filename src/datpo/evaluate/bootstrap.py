"""Intervals by bootstrap over problems.

The samples of one problem are alike, so problems are the independent units: a problem is drawn with all its
samples (clustered bootstrap, percentile method, Efron & Tibshirani 1993). Runs (training seeds) of a method
are averaged problem by problem first, so an interval says how far the *choice of problems* moves a number,
not how far another training seed would.

Suffixes: P problems, K metrics (e.g. the values of k), D bootstrap draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datpo.core.errors import InputError
from datpo.core.seeds import generator

Floats = NDArray[np.float64]
Run = Mapping[str, float]  # problem id -> its value in one run


class Interval(NamedTuple):
    """A value with its 95 % interval; the ends are NaN where one problem alone cannot give any."""

    value: float
    low: float
    high: float


def intervals(values: ArrayLike, draws: int = 2000, seed: int = 0) -> list[Interval]:
    """How far each mean over problems would move with another choice of problems.

    Args:
        values: per-problem values (P, K).
        draws: bootstrap resamples; each takes P problems with replacement, the same ones for all K metrics.
        seed: base seed.

    Returns:
        K intervals: the mean, and the 2.5 % and 97.5 % quantiles of the resampled means.

    Raises:
        InputError: no problems, or fewer than 1 draw.
    """
    values_PK = np.asarray(values, dtype=float)
    problems = len(values_PK)
    if problems == 0:
        raise InputError("a mean over no problems does not exist")
    if draws < 1:
        raise InputError(f"bootstrap must be at least 1 draw, not {draws}")
    mean_K = values_PK.mean(axis=0)
    if problems == 1:
        return [Interval(float(mean), float("nan"), float("nan")) for mean in mean_K]
    rng = generator(seed, "bootstrap")
    times_DP = rng.multinomial(problems, np.full(problems, 1 / problems), size=draws)
    low_K, high_K = np.quantile(times_DP @ values_PK / problems, [0.025, 0.975], axis=0)
    return [Interval(*map(float, ends)) for ends in zip(mean_K, low_K, high_K, strict=True)]
