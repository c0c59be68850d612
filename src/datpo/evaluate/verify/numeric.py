r"""Whether two formulas are one: their values at fixed rational points, exact where rational, else to sixty digits.

Two formulas that differ in value at one point differ; two that agree at several are called equal (Schwartz 1980,
Zippel 1979: for polynomials a chance agreement has probability near zero over random points). Irrational values
agree if they do to 45 digits, relative to their size, and to as many places after the point: a relative tolerance
tells 2^{-98} from 2^{-99}, the places tell 2^{200}\sqrt{2} from (2^{200}+1)\sqrt{2}.

Points at which both sides are real all the way through decide if there are any, so that a branch cut of one side
outside the natural domain does no harm (\sqrt{ab} is \sqrt{a}\sqrt{b}); otherwise complex values are compared.
Under a floor or a ceiling the letters i to n are integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from mpmath import mp, mpc, mpf

from datpo.evaluate.verify.arithmetic import TooLarge, Tree
from datpo.evaluate.verify.exact import Inexact, exact

Value = Any  # Fraction, mpf or mpc
Point = Callable[[str], Fraction]

PLACES = 60
MOST_PLACES = 20_000
MOST_DIGITS = 1_000  # beyond sixty, for the sake of long numbers
LARGEST_EXPONENT = 10.0**6  # of e; beyond, a power is refused: 9^{9^{9^9}} would fill the memory
# Each variable gets a value of its own from one of these ranges at each point.
RANGES: Sequence[tuple[Fraction, Fraction]] = (
    (Fraction(3, 20), Fraction(17, 20)),
    (Fraction(6, 5), Fraction(14, 5)),
    (Fraction(3), Fraction(7)),
    (Fraction(-14, 5), Fraction(-1, 5)),
)
MIXED = 2  # more points, at which every second variable is negative


INTEGER_POINTS = 12
_INTEGERS = frozenset("ijklmn")


def equal(left: Tree, right: Tree) -> bool | None:
    """Whether two trees have the same value wherever both are defined; None if they are nowhere.

    Raises:
        TooLarge: a value too large to work out.
    """
    real, other = [], []
    with mp.workdps(PLACES + _digits(left, right)):
        for a, b, point in _values(left, right):
            agree = _agree(a, b, left, right, point)
            if isinstance(a, mpc) or isinstance(b, mpc):
                other.append(agree)
            elif agree:
                real.append(agree)
            else:
                return False
    return all(real or other) if real or other else None


def proportional(left: Tree, right: Tree, positive: bool) -> bool | None:
    """Whether one tree is a constant multiple of the other (a positive one, if asked): one equation in two forms.

    Raises:
        TooLarge: a value too large to work out.
    """
    with mp.workdps(PLACES + _digits(left, right)):
        pairs = [(a, b) for a, b, _ in _values(left, right)]
        real = [(a, b) for a, b in pairs if not isinstance(a, mpc) and not isinstance(b, mpc)]
        pairs = real if len(real) > 1 else pairs
        if len(pairs) < 2 or any(a == 0 or b == 0 for a, b in pairs):
            return None
        ratios = [_real(a / b) for a, b in pairs]
        if positive and any(isinstance(ratio, mpc) or ratio <= 0 for ratio in ratios):
            return False
        return all(_close(ratio, ratios[0]) for ratio in ratios)


def _values(left: Tree, right: Tree) -> Iterator[tuple[Value, Value, Point]]:
    """The values of both sides at the points where both are defined: fractions if both are, else mpmath numbers."""
    names = _names(left) | _names(right)
    integers = names <= _INTEGERS and (_rounds(left) or _rounds(right))
    points = INTEGER_POINTS if integers else len(RANGES) + (MIXED if len(names) > 1 else 0)
    for number in range(points if names else 1):
        point = _integer_point(number) if integers else _point(number, sorted(names))
        try:
            yield exact(left, point), exact(right, point), point
            continue
        except ZeroDivisionError:
            continue
        except Inexact:
            pass
        a = _finite(left, point)
        b = None if a is None else _finite(right, point)
        if a is not None and b is not None:
            yield a, b, point


def _close(a: Value, b: Value) -> bool:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    return bool(abs(a - b) <= _tolerance() * max(abs(a), abs(b)))


def _tolerance() -> Value:
    """What rounding may leave of a difference, relative to its terms: fifteen places less than are computed with."""
    return mpf(10) ** (15 - mp.dps)


def _real(value: Value) -> Value:
    """A complex value without what rounding left of an imaginary part that is none."""
    return value.real if isinstance(value, mpc) and abs(value.imag) <= _tolerance() * abs(value) else value


def _agree(a: Value, b: Value, left: Tree, right: Tree, point: Point) -> bool:
    """Whether two values agree, worked out again with more places where sixty cannot tell."""
    if isinstance(a, Fraction):
        return bool(a == b)
    size, gap = max(abs(a), abs(b)), abs(a - b)
    if gap == 0 and size < 10**10:
        return True
    if size > 10**10 and _close(a, b):  # alike in the leading digits
        places = mp.dps + int(mp.log10(size))
    elif gap < _tolerance() and not _close(a, b):  # both next to nothing: zero but for rounding, or not
        places = 2 * mp.dps + 50
    else:
        return _close(a, b)
    if places > MOST_PLACES:
        raise TooLarge("too large to tell apart")
    with mp.workdps(places):
        more = abs(_evaluate(left, point) - _evaluate(right, point))
        return bool(more <= mpf(10) ** (-PLACES // 2) if size > 1 else more <= gap * mpf(10) ** -PLACES)


def _finite(tree: Tree, point: Point) -> Value | None:
    """The value at a point; None where there is none (a pole, infinity)."""
    try:
        found = _evaluate(tree, point)
    except TooLarge:
        raise
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return found if mp.isfinite(found) else None


def _point(number: int, names: list[str]) -> Point:
    """A value for each name, the same on every machine."""

    def at(name: str) -> Fraction:
        # The first points have all variables in one range; then each second one is negative, the others are positive.
        low, high = RANGES[number if number < len(RANGES) else 1 + 2 * ((names.index(name) + number) % 2)]
        byte = hashlib.blake2b(f"{number} {name}".encode(), digest_size=2).digest()
        return low + (high - low) * Fraction(1 + int.from_bytes(byte, "big"), 2**16 + 2)

    return at


def _integer_point(number: int) -> Point:
    """A positive integer for each of the letters i to n."""
    return lambda name: Fraction(1 + number * (1 + "ijklmn".index(name)) % 23 + number)


def _rounds(tree: Tree) -> bool:
    """Whether a formula has a floor or a ceiling."""
    return tree[0] in ("floor", "ceil") or any(_rounds(part) for part in tree[1:] if isinstance(part, tuple))


def _digits(left: Tree, right: Tree) -> int:
    """How many digits the longest number of two formulas has, so that no value passes for one it was rounded from."""
    return min(max(_bits(left), _bits(right)) // 3, MOST_DIGITS)


def _bits(tree: Tree) -> int:
    if tree[0] == "number":
        number: Fraction = tree[1]
        return max(number.numerator.bit_length(), number.denominator.bit_length())
    sizes = [_bits(part) for part in tree[1:] if isinstance(part, tuple)]
    if tree[0] == "^":  # 10^{-40} has forty digits
        exponent = tree[2][1] if tree[2][0] == "neg" else tree[2]
        if exponent[0] == "number":
            sizes.append(int(min(sizes[0] * abs(exponent[1]), 3 * MOST_DIGITS)))
    return max(sizes, default=0)


def _names(tree: Tree) -> frozenset[str]:
    if tree[0] == "name":
        return frozenset({tree[1]})
    return frozenset().union(*(_names(part) for part in tree[1:] if isinstance(part, tuple)))


def _evaluate(tree: Tree, point: Point) -> Value:
    kind = tree[0]
    if kind in ("number", "name"):
        rational = tree[1] if kind == "number" else point(tree[1])
        return mpf(rational.numerator) / rational.denominator
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]()
    return _OPERATIONS[kind](*(_evaluate(part, point) for part in tree[1:]))


def _power(base: Value, exponent: Value) -> Value:
    if base == 0:
        if mp.re(exponent) > 0:
            return mpf(0)
        raise ZeroDivisionError
    if not mp.isfinite(base) or not mp.isfinite(exponent):
        raise ZeroDivisionError
    if abs(exponent) * max(abs(mp.log(abs(base))), 1) > LARGEST_EXPONENT:
        raise TooLarge("too large to work out")
    return mp.power(base, exponent)


def _root(radicand: Value, index: Value) -> Value:
    """The real root where there is one: the cube root of -8 is -2."""
    if index == 2:
        return mp.sqrt(radicand)
    if mp.isint(index) and int(mp.re(index)) % 2 and not mp.im(radicand) and radicand < 0:
        return -_power(-radicand, 1 / index)
    return _power(radicand, 1 / index)


def _factorial(n: Value) -> Value:
    if abs(n) > LARGEST_EXPONENT:
        raise TooLarge("too large to work out")
    return mp.factorial(n)


def _binomial(n: Value, k: Value) -> Value:
    if abs(n) > LARGEST_EXPONENT or abs(k) > LARGEST_EXPONENT:
        raise TooLarge("too large to work out")
    return mp.binomial(n, k)


_CONSTANTS: dict[str, Callable[[], Value]] = {
    "pi": lambda: +mp.pi,
    "e": lambda: +mp.e,
    "i": lambda: mpc(0, 1),
    "infinity": lambda: mpf("inf"),
}
_OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": lambda a, b: a + b,
    "neg": lambda a: -a,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": _power,
    "!": _factorial,
    "root": _root,
    "binom": _binomial,
    "abs": abs,
    "floor": mp.floor,
    "ceil": mp.ceil,
    "log": lambda x, base=None: mp.log(x) / mp.log(base) if base is not None else mp.log(x),
    "ln": mp.log,
    "lg": lambda x: mp.log(x) / mp.log(10),
    "exp": lambda x: _power(mp.e, x),
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arccot": mp.acot,
    **{name: getattr(mp, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}
