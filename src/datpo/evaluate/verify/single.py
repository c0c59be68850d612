r"""Whether two single values are one: numerals, times, choices, words, ratios, and formulas with units."""

from __future__ import annotations

from datpo.evaluate.verify import arithmetic, mathverify, numeric
from datpo.evaluate.verify.brackets import split
from datpo.evaluate.verify.normalise import squeeze
from datpo.evaluate.verify.values import (
    choice,
    clock,
    long_number,
    measure,
    numeral,
    plain_number,
    same_time,
    units_clash,
    unwrap,
    words,
)


def same_value(gold: str, answer: str) -> bool:
    """Whether two single values are one."""
    left, right = unwrap(gold), unwrap(answer)
    if squeeze(left) == squeeze(right):
        return True
    if (long := long_number(left)) is not None or long_number(right) is not None:
        return long is not None and long == long_number(right)
    times = clock(left), clock(right)
    if times[0] is not None and times[1] is not None:
        return same_time(times[0], times[1])
    letters = choice(left), choice(right)
    if None not in letters:
        return letters[0] == letters[1]
    numerals = numeral(left), numeral(right)
    if numerals[0] is not None:
        # The question states the base, so an answer may leave it out.
        return numerals[0] == (numerals[1] or (right, numerals[0][1]))
    if numerals[1] is not None:
        return False
    spelled = words(gold), words(answer)
    if spelled != (None, None):
        return (spelled[0] or _lower(left)) == (spelled[1] or _lower(right))
    ratios = split(left, (":",)), split(right, (":",))
    if max(map(len, ratios)) > 1:
        return _same_ratio(*ratios)
    return _same_measure(left, right)


def _lower(word: str) -> str:
    """A word without its capitals; a single letter keeps them."""
    return word.lower() if len(word) > 1 else word


def _same_ratio(left: list[str], right: list[str]) -> bool:
    """Ratios in order, up to a common factor; a ratio of two against the fraction it makes."""
    a, b = (f"({side[0]})/({side[1]})" if len(side) == 2 else side[0] for side in (left, right))
    if max(len(left), len(right)) <= 2:
        return same_value(a, b)
    return len(left) == len(right) and all(
        same_value(f"({x})*({right[0]})", f"({y})*({left[0]})") for x, y in zip(left, right, strict=True)
    )


def _same_measure(gold: str, answer: str) -> bool:
    """Formulas with their units; `%` and `°` may be missing on one side, or be worked out there."""
    left, right = measure(gold), measure(answer)
    if units_clash(left.unit or left.mark, right.unit or right.mark):
        return False
    if same_formula(left.formula, right.formula):
        return True
    if bool(left.mark) == bool(right.mark):
        return False
    marked, plain = (left, right) if left.mark else (right, left)
    factor = r"\frac{1}{100}" if marked.mark == "%" else r"\frac{\pi}{180}"
    return same_formula(f"({marked.formula})*{factor}", plain.formula)


def same_formula(left: str, right: str) -> bool:
    """Whether two formulas have one value: exactly, then numerically, then by Math-Verify."""
    if squeeze(left) == squeeze(right):
        return True
    a, b = plain_number(left), plain_number(right)
    if a is not None and b is not None:
        return a == b
    try:
        equal = numeric.equal(arithmetic.read(left), arithmetic.read(right))
    except arithmetic.TooLarge:
        return False
    except arithmetic.Unreadable:
        return mathverify.equal(left, right)
    return bool(equal)
