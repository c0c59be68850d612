r"""Labels: the `x =` of `x = 5`, the `f(x) =` of `f(x) = 2x`, which an answer may leave out."""

from __future__ import annotations

import re

from datpo.evaluate.verify.shapes import Relation

_LABEL_PART = re.compile(r"_\s*(?:\{[^{}]*\}|\w)|\\text\s*\{[^{}]*\}|'|\s|(?<=[a-zA-Z]):|\^\s*\{-1\}(?=\()")
_CALL = re.compile(
    r"(?:(?<=[a-zA-Z}])\(\s*[\w\\]+(?:\s*,\s*[\w\\]+)*\s*\)|(?<=[fghpqFGHPQ])\((?:[^()=]|\([^()=]*\))*\))"
)
_NAMES = re.compile(r"(?:\|?(?:\\(?:angle|overline|triangle|mathbb)\s*)?\{?(?:[a-zA-Z]|\\[a-zA-Z]+)\}?){1,10}\|?")
_FUNCTION = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc|log|ln|lg|exp|frac|sqrt|binom|arcsin|arccos|arctan|pm|cdot|times)(?![a-zA-Z])"
)
_NUMBERS = re.compile(r"(?:[\d\s.+*/(){}!^-]|\\(?:frac|sqrt|cdot|times|binom)(?![a-zA-Z]))+")
_AREA = re.compile(r"\[(?:\\triangle\s*)?[A-Z]{3,6}\]")
_TUPLE_OF_NAMES = re.compile(r"\(\s*[a-zA-Z\\][\w\\{}'()]*(?:\s*,\s*[a-zA-Z\\][\w\\{}'()]*)+\s*\)")


def labelled_value(equation: Relation) -> str | None:
    """The right side of `x = 5`, `f(x) = 2x` or `(x, y) = (1, 2)`; None if the left side is no label."""
    first, last = equation.sides[0], equation.sides[-1]
    if is_label(first):
        return last
    if is_label(last) and len(equation.sides) == 2:
        return first
    return None


def is_sum_in_numbers(side: str) -> bool:
    """Whether a side is worked out from numbers alone: the left of `3 + 4 = 7`."""
    return bool(_NUMBERS.fullmatch(side))


def is_label(side: str) -> bool:
    """Whether one side of an equation only names the value on the other."""
    if _TUPLE_OF_NAMES.fullmatch(side) or _AREA.fullmatch(side):
        return True
    bare = _LABEL_PART.sub("", side)
    bare = _LABEL_PART.sub("", _CALL.sub("", bare))
    if _FUNCTION.search(bare):
        return False
    return not bare or (bool(_NAMES.fullmatch(bare)) and bare not in (r"\pi", "e", "i", r"\infty"))
