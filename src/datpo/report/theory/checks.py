"""Every number that the two theorems predict, beside the same number found in another way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from datpo.core.seeds import generator
from datpo.report.theory.gap import (
    Decomposition,
    any_right,
    beta_gap,
    beta_pass,
    beta_variance,
    decompose,
    jensen_gap,
    second_order,
)
from datpo.report.theory.signal import (
    ESTIMATORS,
    curvature,
    expected_step,
    gain_per_mixed_group,
    growth,
    growth_of_growth,
    mixed_chance,
    remainder,
    simulated_step,
)

EXACT_CHANCES = [Fraction(tenth, 10) for tenth in range(1, 10)]
EXACT_SIZES = range(1, 17)
CHANCES = (0.1, 0.3, 0.5)
SHOWN = 0.3  # of these, on the page and in the figure
SIZES = (2, 4, 8, 16)
RATE = 1e-5  # eta of the simulated updates; what is of its order is far below the noise
RATES = (1.0, 0.5, 0.25, 0.125)
TRIES = tuple(2**power for power in range(9))  # k up to 256, the paper's
BETAS = ((Fraction(3, 10), Fraction(2)), (Fraction(1, 20), Fraction(1, 2)))
MEAN = Fraction(1, 5)  # of the populations that differ in their variance alone
STRENGTHS = tuple(map(Fraction, ("50", "5", "1", "1/4", "1/20")))  # a + b of these: the smaller, the more polarised
FEW = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))  # problems whose every outcome is enumerated
FEW_SAMPLES = 4


class Check(NamedTuple):
    """One number in two ways.

    Attributes:
        what: is checked; all checks of one kind share it.
        parameters: what it is checked for, such as `p=0.3 G=4`.
        value: exact.
        compared: simulated, approximate, or what the first is compared with.
        standard_error: of `compared`, where it is simulated.
    """

    what: str
    parameters: str
    value: float | Fraction
    compared: float | Fraction
    standard_error: float | None = None

    @property
    def error(self) -> float:
        """How far `compared` is off; exactly so between fractions."""
        return float(self.compared - self.value)


def all_checks(draws: int, seed: int) -> list[Check]:
    """Both theorems, number by number.

    Args:
        draws: groups, or problems, of each simulated number.
        seed: of all simulations.
    """
    return [
        *differences(),
        *simulated_steps(draws, seed),
        *remainders(),
        *gains_per_mixed_group(),
        *equal_problems(),
        *approximations(),
        *simulated_populations(draws, seed),
        *polarisation(),
        *biases(),
    ]


def differences() -> Iterator[Check]:
    """Both difference identities of Psi, in fractions."""
    for p, size in product(EXACT_CHANCES, EXACT_SIZES):
        psi = [mixed_chance(p, size + more) for more in range(3)]
        at = f"p={p} G={size}"
        yield Check("Psi: first difference", at, growth(p, size), psi[1] - psi[0])
        yield Check("Psi: second difference", at, growth_of_growth(p, size), psi[2] - 2 * psi[1] + psi[0])


def simulated_steps(draws: int, seed: int) -> Iterator[Check]:
    """Theorem A.1: the expected step, in closed form and over drawn groups."""
    for estimator, p, size in product(ESTIMATORS, CHANCES, SIZES):
        rng = generator(seed, "theory", estimator.name, str(p), size)
        found, error = simulated_step(estimator, p, size, RATE, draws, rng)
        what = f"expected step, {estimator.name}: simulated"
        yield Check(what, f"p={p} G={size} eta={RATE}", expected_step(estimator, p, size), found, error)


def remainders() -> Iterator[Check]:
    """Theorem A.1: what is left out is of second order, for its coefficient tends to the one of a Taylor series."""
    for estimator, rate in product(ESTIMATORS, RATES):
        exact, found = curvature(estimator, SHOWN, 8), remainder(estimator, SHOWN, 8, rate)
        yield Check(f"second-order remainder, {estimator.name}: over eta²", f"p={SHOWN} G=8 eta={rate}", exact, found)


def gains_per_mixed_group() -> Iterator[Check]:
    """Assumption A2: the gain per mixed group, and the same at G = 2; they are equal if it holds."""
    for estimator, p, size in product(ESTIMATORS, CHANCES, SIZES):
        what = f"assumption A2, {estimator.name}: gain per mixed group, against G=2"
        gain, smallest = (gain_per_mixed_group(estimator, p, G) for G in (size, 2))
        yield Check(what, f"p={p} G={size}", gain, smallest)


def equal_problems() -> Iterator[Check]:
    """Theorem A.2: no gap where all problems are equally hard."""
    for p, k in product(EXACT_CHANCES, TRIES):
        yield Check("Jensen gap of equal problems: against 0", f"p={p} k={k}", jensen_gap([p] * 3, k), Fraction(0))


def approximations() -> Iterator[Check]:
    """Theorem A.2 over Beta populations: the gap, and its second-order approximation."""
    for (a, b), k in product(BETAS, TRIES):
        rough = second_order(float(a / (a + b)), float(beta_variance(a, b)), k)
        yield Check("Jensen gap, Beta: second order", f"a={float(a)} b={float(b)} k={k}", beta_gap(a, b, k), rough)


def simulated_populations(draws: int, seed: int) -> Iterator[Check]:
    """Theorem A.2 over Beta populations: pass@k in closed form and over drawn problems."""
    for a, b in BETAS:
        chances = generator(seed, "theory", "beta", str(a), str(b)).beta(float(a), float(b), draws)
        for k in TRIES:
            passed = any_right(chances, k)
            found, error = float(passed.mean()), float(passed.std() / math.sqrt(draws))
            yield Check("pass@k, Beta: simulated", f"a={float(a)} b={float(b)} k={k}", beta_pass(a, b, k), found, error)


def polarisation() -> Iterator[Check]:
    """Populations of one mean, more and more polarised: pass@k, and f_k(mu), which they share; the error is J_k."""
    for (strength, (a, b)), k in product(polarised(), TRIES):
        at = f"mean={float(MEAN)} variance={float(beta_variance(a, b)):.4f} a+b={float(strength)} k={k}"
        yield Check("polarisation: pass@k, against f_k(mu)", at, beta_pass(a, b, k), any_right(MEAN, k))


def polarised() -> list[tuple[Fraction, tuple[Fraction, Fraction]]]:
    """a + b, and (a, b), of populations with the same mean and a growing variance."""
    return [(strength, (MEAN * strength, (1 - MEAN) * strength)) for strength in STRENGTHS]


def biases() -> Iterator[Check]:
    """What the estimates of J_k are on average, over every outcome of a few samples of a few problems."""
    for k in range(1, FEW_SAMPLES + 1):
        found = expected_decomposition(FEW, [FEW_SAMPLES] * len(FEW), k)
        at, exact = f"p={' '.join(map(str, FEW))} n={FEW_SAMPLES} k={k}", jensen_gap(FEW, k)
        yield Check("mean estimate of J_k: unbiased", at, exact, found["jensen"])
        yield Check("mean estimate of J_k: plug-in", at, exact, found["jensen_plug_in"])


def expected_decomposition(chances: Sequence[Fraction], n: Sequence[int], k: int) -> dict[str, float]:
    """The mean of every estimate over all outcomes of n samples of each problem, each with its probability."""
    mean = dict.fromkeys(Decomposition.__dataclass_fields__, 0.0)
    for outcome in product(*(range(samples + 1) for samples in n)):
        probability = math.prod(
            math.comb(samples, c) * float(p) ** c * float(1 - p) ** (samples - c)
            for p, samples, c in zip(chances, n, outcome, strict=True)
        )
        (found,) = decompose(n, outcome, [k])
        for name in mean:
            mean[name] += probability * getattr(found, name)
    return mean


def checks_of(checks: Sequence[Check], what: str) -> list[Check]:
    """The checks of one kind.

    Args:
        checks: of all kinds.
        what: how their names begin.
    """
    return [check for check in checks if check.what.startswith(what)]


def largest_error(checks: Sequence[Check]) -> float:
    """In the worst of these."""
    return float(np.max(np.abs([check.error for check in checks])))
