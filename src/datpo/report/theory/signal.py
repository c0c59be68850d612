"""Theorem A.1: the larger the group, the likelier it holds right and wrong answers, and so a signal.

The policy of the checks is the smallest there is: one problem, answered rightly with chance p = sigmoid(theta). The
score of a sample with reward y is y - p, and d p / d theta = p (1 - p).

Suffixes: S numbers of right samples in a group, D drawn groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from datpo.core.tree import Floats
from datpo.credit.advantages import centred, group_normalised

Number = TypeVar("Number", Fraction, float, Floats)


class Estimator(NamedTuple):
    """A way to turn a group's rewards into an update of theta.

    Attributes:
        name: in words.
        step: the update that a group of s·G right ones of G samples makes, from s; in closed form.
        advantages: the same by the project's own credit; None for the unit update, which is none of its methods.
    """

    name: str
    step: Callable[[float], float]
    advantages: Callable[[Floats], Floats] | None


UNIT = Estimator("unit update", lambda share: float(0 < share < 1), None)
GRPO = Estimator("GRPO", lambda share: math.sqrt(share * (1 - share)), group_normalised)
CENTRED = Estimator("Dr.GRPO", lambda share: share * (1 - share), centred)
ESTIMATORS = (UNIT, GRPO, CENTRED)


def mixed_chance(p: Number, size: int) -> Number:
    """The chance that a group holds right and wrong answers: Psi_G(p) = 1 - p^G - (1 - p)^G.

    Args:
        p: the chance that one sample is right; a fraction stays exact.
        size: G, samples of the group.
    """
    return 1 - p**size - (1 - p) ** size


def growth(p: Number, size: int) -> Number:
    """What one more sample adds: Psi_{G+1} - Psi_G = p (1 - p)^G + (1 - p) p^G, which is never negative."""
    return p * (1 - p) ** size + (1 - p) * p**size


def growth_of_growth(p: Number, size: int) -> Number:
    """How that falls: the second difference of Psi, -p^2 (1 - p)^G - (1 - p)^2 p^G, which is never positive."""
    return -(p**2) * (1 - p) ** size - (1 - p) ** 2 * p**size


def expected_step(estimator: Estimator, p: float, size: int) -> float:
    """The mean update of theta over all groups, E[g]; that of p is p (1 - p) E[g], but for terms of second order.

    Psi_G(p) for the unit update, E[sqrt(s (1 - s))] for GRPO, p (1 - p) (1 - 1/G) for Dr.GRPO.
    """
    return _mean_over_groups(estimator.step, p, size)


def step_variance(estimator: Estimator, p: float, size: int) -> float:
    """How much the update of theta differs from group to group: E[g^2] - E[g]^2."""
    mean = expected_step(estimator, p, size)
    return _mean_over_groups(lambda share: (estimator.step(share) - mean) ** 2, p, size)


def gain_per_mixed_group(estimator: Estimator, p: float, size: int) -> float:
    """E[(d p / d theta) g | the group is mixed]: what assumption A2 calls c and takes not to depend on G."""
    return p * (1 - p) * expected_step(estimator, p, size) / mixed_chance(p, size)


def remainder(estimator: Estimator, p: float, size: int, rate: float) -> float:
    """What the first order leaves out, E[p(theta + eta g)] - p - eta p (1 - p) E[g], over eta^2.

    It tends to E[g^2] p (1 - p) (1 - 2p) / 2, see `curvature`.
    """
    moved = _mean_over_groups(lambda share: _after(p, rate * estimator.step(share)) - p, p, size)
    return (moved - rate * p * (1 - p) * expected_step(estimator, p, size)) / rate**2


def curvature(estimator: Estimator, p: float, size: int) -> float:
    """The coefficient of eta^2: E[g^2] p (1 - p) (1 - 2p) / 2."""
    return _mean_over_groups(lambda share: estimator.step(share) ** 2, p, size) * p * (1 - p) * (1 - 2 * p) / 2


def simulated_step(
    estimator: Estimator, p: float, size: int, rate: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Draw groups, update theta on each as training would, and see how far p moves: (gain, its standard error).

    Args:
        estimator: the update of a group is the mean of advantage times score over its samples.
        p: before the update.
        size: G, samples of a group.
        rate: eta, the length of the step.
        draws: groups.
        rng: where they come from.

    Returns:
        The mean of (p' - p) / (eta p (1 - p)), which is `expected_step` but for terms of the order of eta and, for
        GRPO, the 1e-4 beside its standard deviation. The standard error follows from `step_variance`, not the draws.
    """
    right_D = rng.binomial(size, p, draws)
    update_S = np.array([_trained_step(estimator, p, right, size) for right in range(size + 1)])
    gain_S = np.array([(_after(p, rate * update) - p) / (rate * p * (1 - p)) for update in update_S])
    return float(gain_S[right_D].mean()), math.sqrt(step_variance(estimator, p, size) / draws)


def _trained_step(estimator: Estimator, p: float, right: int, size: int) -> float:
    rewards = np.array([1.0] * right + [0.0] * (size - right))
    if estimator.advantages is None:
        return float(0 < right < size)
    return float(np.mean(estimator.advantages(rewards) * (rewards - p)))


def _after(p: float, step: float) -> float:
    """p(theta + step) = p e^step / (1 - p + p e^step)."""
    return p * math.exp(step) / (1 - p + p * math.exp(step))


def _mean_over_groups(value: Callable[[float], float], p: float, size: int) -> float:
    """The mean of a function of the share of right samples, which are binomial."""
    return math.fsum(
        math.comb(size, right) * p**right * (1 - p) ** (size - right) * value(right / size) for right in range(size + 1)
    )
