"""Exact values of formulas that are rational at a rational point: no tolerance, however large the numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial

from datpo.evaluate.verify.arithmetic import Tree

BITS = 100_000  # of a value worth working out exactly
LARGEST_FACTORIAL = 5_000


class Inexact(ArithmeticError):
    """The value is irrational, complex or too long."""


def exact(tree: Tree, point: Callable[[str], Fraction]) -> Fraction:
    """The value of a formula whose names have the values `point` gives them.

    Raises:
        Inexact: the value is not rational, or too long.
        ZeroDivisionError: there is no value.
    """
    kind = tree[0]
    if kind == "number":
        value: Fraction = tree[1]
        return value
    if kind == "name":
        return point(tree[1])
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise Inexact(kind)
    return operation(*(exact(part, point) for part in tree[1:]))


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _times(a: Fraction, b: Fraction) -> Fraction:
    if _bits(a) + _bits(b) > BITS:
        raise Inexact("too long")
    return a * b


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or _bits(base) * abs(exponent) > BITS:
        raise Inexact("an irrational or long power")
    return Fraction(base ** int(exponent))


def _factorial(n: Fraction) -> Fraction:
    if n.denominator != 1 or not 0 <= n <= LARGEST_FACTORIAL:
        raise Inexact("no factorial of this")
    return Fraction(factorial(int(n)))


def _binomial(n: Fraction, k: Fraction) -> Fraction:
    if n.denominator != 1 or k.denominator != 1 or not 0 <= n <= LARGEST_FACTORIAL or k < 0:
        raise Inexact("no binomial of this")
    return Fraction(comb(int(n), int(k)))


_OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "+": lambda a, b: a + b,
    "neg": lambda a: -a,
    "*": _times,
    "/": lambda a, b: _times(a, 1 / b),
    "^": _power,
    "!": _factorial,
    "binom": _binomial,
    "abs": abs,
    "floor": lambda a: Fraction(a.numerator // a.denominator),
    "ceil": lambda a: Fraction(-(-a.numerator // a.denominator)),
}
