r"""Labels: the `x =` of `x = 5`, the `f(x) =` of `f(x) = 2x`, which an answer may leave out."""

from __future__ import annotations

import re

from datpo.evaluate.verify.shapes import Relation

_LABEL_PART = re.compile(r"_\s*(?:\{[^{}]*\}|\w)|\\text\s*\{[^{}]*\}|'|\s")
_CALL = re.compile(r"(?:(?<=[a-zA-Z])\(\s*[\w\\]+(?:\s*,\s*[\w\\]+)*\s*\)|(?<=[fghpqFGHPQ])\([^()=]*\))")
_NAMES = re.compile(r"(?:\|?(?:\\(?:angle|overline|triangle|vec|hat|bar)\s*)?\{?(?:[a-zA-Z]|\\[a-zA-Z]+)\}?){1,10}\|?")
_FUNCTION = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc|log|ln|lg|exp|frac|sqrt|binom|arcsin|arccos|arctan|pm|cdot|times)(?![a-zA-Z])"
)
_TUPLE_OF_NAMES = re.compile(r"\(\s*[\w\\{}'()]+(?:\s*,\s*[\w\\{}'()]+)+\s*\)")


def labelled_value(equation: Relation) -> str | None:
    """The right side of `x = 5`, `f(x) = 2x`, `(x, y) = (1, 2)` or `3 + 4 = 7`; None if the left side is no label."""
    first, last = equation.sides[0], equation.sides[-1]
    if is_label(first):
        return last
    if is_label(last) and len(equation.sides) == 2:
        return first
    return last if re.fullmatch(r"[\d\s.+*/()-]+", first) else None


def is_label(side: str) -> bool:
    """Whether one side of an equation only names the value on the other."""
    if _TUPLE_OF_NAMES.fullmatch(side):
        return True
    bare = _LABEL_PART.sub("", side)
    bare = _LABEL_PART.sub("", _CALL.sub("", bare))
    if _FUNCTION.search(bare):
        return False
    return not bare or (bool(_NAMES.fullmatch(bare)) and bare not in (r"\pi", "e", "i", r"\infty"))
