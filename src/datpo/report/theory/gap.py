"""Theorem A.2: pass@k is what equally hard problems would give, less a gap that grows with how unequal they are.

With p_x the chance that one sample of problem x is right, mu its mean over problems and f_k(p) = 1 - (1 - p)^k,

    pass@k = E_x f_k(p_x) = f_k(mu) - J_k,    J_k = f_k(mu) - E_x f_k(p_x) >= 0 (Jensen),

and J_k = 0 for k > 1 only if all problems are equally hard.

Suffixes: P problems, K numbers of tries from 0 on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from datpo.core.tree import Floats
from datpo.evaluate.metrics import pass_at_k

Number = TypeVar("Number", Fraction, float, Floats)


@dataclass(frozen=True)
class Decomposition:
    """pass@k of one checkpoint on one benchmark, taken apart.

    Attributes:
        k: tries.
        mu: mean chance of a right sample; without bias.
        variance: of the problems' chances, which is J_2; without bias, so it may come out below 0. NaN from one sample.
        f_mu: f_k(mu); without bias.
        jensen: J_k = f_mu - passed; without bias, so it may come out below 0.
        passed: pass@k; without bias.
        f_mu_plug_in: f_k at the measured mean, which is too low on average.
        jensen_plug_in: J_k were each problem's chance its measured share; sampling noise spreads the shares.
        second_order: k (k - 1) / 2 (1 - mu)^(k - 2) variance, all measured.
    """

    k: int
    mu: float
    variance: float
    f_mu: float
    jensen: float
    passed: float
    f_mu_plug_in: float
    jensen_plug_in: float
    second_order: float


def any_right(p: Number, k: int) -> Number:
    """The chance that one of k samples is right: f_k(p) = 1 - (1 - p)^k; a fraction stays exact."""
    return 1 - (1 - p) ** k


def jensen_gap(chances: Sequence[Number], k: int) -> Number:
    """J_k of problems whose chances are known."""
    return any_right(_mean(chances), k) - _mean([any_right(p, k) for p in chances])


def second_order(mu: float, variance: float, k: int) -> float:
    """J_k if the problems hardly differed: k (k - 1) / 2 (1 - mu)^(k - 2) variance; exact for k = 1 and 2."""
    return k * (k - 1) / 2 * (1 - mu) ** (k - 2) * variance if k > 1 else 0.0


def beta_pass(a: Fraction, b: Fraction, k: int) -> Fraction:
    """E f_k(p) where p is Beta(a, b): 1 - prod_{j<k} (b + j) / (a + b + j), exactly."""
    return 1 - math.prod(((b + j) / (a + b + j) for j in range(k)), start=Fraction(1))


def beta_gap(a: Fraction, b: Fraction, k: int) -> Fraction:
    """J_k where p is Beta(a, b), exactly."""
    return any_right(a / (a + b), k) - beta_pass(a, b, k)


def beta_variance(a: Fraction, b: Fraction) -> Fraction:
    """Of p that is Beta(a, b)."""
    return a * b / ((a + b) ** 2 * (a + b + 1))


def decompose(n: Sequence[int], c: Sequence[int], ks: Sequence[int]) -> list[Decomposition]:
    """Take pass@k apart for each k, from c right ones of n samples of every problem.

    Args:
        n: samples, (P,).
        c: right samples, (P,).
        ks: each at most the smallest n.

    Raises:
        InputError: a k above the n of a problem, or c outside 0..n.
    """
    most = min(max(*ks, 2), min(n))  # the variance is J_2
    passed_PK = pass_at_k(n, c, range(1, max(most, *ks) + 1))
    passed_K = np.concatenate([[0.0], passed_PK.mean(axis=0)])
    f_mu_K = 1 - power_of_mean(np.hstack([np.ones((len(passed_PK), 1)), 1 - passed_PK]))
    share_P = np.asarray(c) / np.asarray(n)
    mu = float(share_P.mean())
    variance = float(f_mu_K[2] - passed_K[2]) if most > 1 else math.nan
    return [
        Decomposition(
            k=k,
            mu=mu,
            variance=variance,
            f_mu=float(f_mu_K[k]),
            jensen=float(f_mu_K[k] - passed_K[k]),
            passed=float(passed_K[k]),
            f_mu_plug_in=any_right(mu, k),
            jensen_plug_in=any_right(mu, k) - float(np.mean(1 - (1 - share_P) ** k)),
            second_order=second_order(mu, variance, k),
        )
        for k in ks
    ]


def power_of_mean(power_PK: Floats) -> Floats:
    """Estimate every power of a mean over problems, without bias.

    The k-th power of q = (q_1 + ... + q_P) / P is a weighted mean of products q_1^j1 ... q_P^jP with j1 + ... + jP = k.
    Samples of different problems are independent, so unbiased estimates of the factors multiply to one of the product.
    Problem by problem, with B_m(k) the estimate for the first m,

        B_m(k) = sum_j Binomial(j; k, 1/m) u_m(j) B_{m-1}(k - j),

    a sum of numbers from 0 to 1: nothing cancels.

    Args:
        power_PK: u, unbiased estimates of q_x^j for j = 0, 1, ...: with w wrong of n samples C(w, j) / C(n, j).

    Returns:
        (K,), in the same order of powers.
    """
    _, tries = power_PK.shape
    k, j = np.indices((tries, tries))
    below = np.where(j <= k, k - j, 0)
    log_ways_KK = _log_ways(tries, k, j)
    estimate_K = power_PK[0]
    for number, power_K in enumerate(power_PK[1:], start=2):
        weight_KK = np.exp(log_ways_KK - j * math.log(number) + below * math.log1p(-1 / number))
        estimate_K = np.sum(weight_KK * power_K * estimate_K[below], axis=1)
    return np.asarray(estimate_K)


def _log_ways(tries: int, k: NDArray[np.int_], j: NDArray[np.int_]) -> Floats:
    """Logarithms of the binomial coefficients C(k, j); minus infinity above k."""
    log_factorial = np.array([math.lgamma(number + 1) for number in range(tries)])
    return np.where(j <= k, log_factorial[k] - log_factorial[j] - log_factorial[np.abs(k - j)], -np.inf)


def _mean(values: Sequence[Number]) -> Number:
    return sum(values[1:], values[0]) / len(values)
