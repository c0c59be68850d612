r"""The outer shape of an answer: a list, a tuple or interval, a relation, a matrix, or one value.

Bare comma lists, sets and unions are unordered; tuples, points, intervals and matrices are ordered. A condition on
one variable (`2 < x \le 3`, `\{x | x < 5\}`) is the interval it describes, and remembers its variable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from datpo.evaluate.verify.brackets import closes_at_end, outside_brackets, split
from datpo.evaluate.verify.normalise import peel
from datpo.evaluate.verify.values import plain_number

MOST_ITEMS = 60


@dataclass(frozen=True)
class Single:
    """One value: a number, a formula, a word."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Values in no order; `braces` tells a set from a bare list."""

    items: tuple[Shape, ...]
    braces: bool = False


@dataclass(frozen=True)
class Bracketed:
    """Values in order between brackets: a tuple, a point, an interval (then perhaps of a named variable)."""

    left: str
    items: tuple[Shape, ...]
    right: str
    variable: str | None = None


@dataclass(frozen=True)
class Matrix:
    """Rows of entries."""

    rows: tuple[tuple[Shape, ...], ...]


@dataclass(frozen=True)
class Relation:
    r"""Sides joined by one kind of sign: `=`, `\equiv`, `<`, `\le` or `\ne` (the larger side comes last)."""

    sign: str
    sides: tuple[str, ...]


_LOWEST, _HIGHEST = Single(r"-\infty"), Single(r"\infty")

Shape = Single | Listing | Bracketed | Matrix | Relation

_MATRIX = re.compile(
    r"\\begin\{([pb]|small)?matrix\}(.*)\\end\{\1?matrix\}|\\begin\{array\}(?:\{[^{}]*\})?(.*)\\end\{array\}"
)
_CASES = re.compile(r"\\begin\{cases\}(.*)\\end\{cases\}")
_CONDITION = re.compile(r",?\s*(?:&\s*)?\\text\s*\{\s*(?:if|for|when|where)\s*\}|&")
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:[a-zA-Z]|\\[a-zA-Z]+)'?(?:_(?:\w|\{\w+\}))?")
_POINT = re.compile(r"\([\w\\, ]+\)")
_EXCLUDING = re.compile(rf"({_VARIABLE.pattern})\s*\\ne(?![a-zA-Z])(.*)")
_COMPARISONS = ("<", ">", r"\le", r"\ge")
_EQUALITIES = ("=", r"\ne", r"\equiv")
_SIGNS = (*_EQUALITIES, *_COMPARISONS)
_GROUPED = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})+)(?!\d|,\d)")


def readings(text: str) -> list[Shape]:
    """The shapes a normalised answer may have: `1,234` is a number or a list of two."""
    shapes = [read(text)]
    if _GROUPED.search(text):
        grouped = read(_GROUPED.sub(lambda match: match[1].replace(",", ""), text))
        still_many = isinstance(grouped, Listing | Bracketed) and len(grouped.items) > 1
        if still_many or len(split(text, (",",))) > 1:
            shapes.append(grouped)
    return shapes


@lru_cache(maxsize=8192)
def read(text: str) -> Shape:
    """The shape of a normalised answer."""
    text = _outside_text(peel(text))
    excluding = _EXCLUDING.fullmatch(text)
    if excluding:
        holes = re.sub(rf"(?<=,)\s*{re.escape(excluding[1])}\s*\\ne(?![a-zA-Z])", "", excluding[2])
        return _without(Bracketed("(", (_LOWEST, _HIGHEST), ")"), read(holes)) or Single(text)
    items = [item for part in split(text, (",",)) for item in _both_signs(part)]
    if len(items) > 1:
        return _listing(items) if len(items) <= MOST_ITEMS else Single(text)
    return _read_item(text)


def _outside_text(text: str) -> str:
    r"""`\text{1, 2}` as 1, 2 and `\text{Ann, Bob}` as `\text{Ann}, \text{Bob}`: a list set as one text."""
    inside = _TEXT.fullmatch(text)
    if inside is None:
        return text
    if not re.search("[a-zA-Z]{2}", inside[1]):
        return peel(inside[1])
    return ", ".join(rf"\text{{{part}}}" for part in split(inside[1], (",",)))


def _read_item(text: str) -> Shape:
    parts = split(text, (r"\cup",))
    if len(parts) > 1:
        return _listing(parts, union=True)
    difference = split(text, (r"\setminus",))
    if len(difference) == 2:
        return _without(read(difference[0]), read(difference[1])) or Single(text)
    member = split(text, (r"\in",))
    if len(member) == 2 and (_VARIABLE.fullmatch(member[0]) or _POINT.fullmatch(member[0])):
        return read(member[1])
    text = next((side for side in split(text, (r"\approx",)) if side), text)
    signs = [match.group() for match in outside_brackets(text) if match.group() in _SIGNS]
    if signs:
        return _relation(signs, split(text, tuple(set(signs))))
    return _bracketed(text) or _matrix(text) or _cases(text) or Single(text)


def _without(interval: Shape, holes: Shape) -> Listing | None:
    """An interval without some of its inner points is a union of intervals: all reals but 0."""
    points = holes.items if isinstance(holes, Listing) else (holes,)
    if not isinstance(interval, Bracketed) or len(interval.items) != 2 or not points:
        return None
    values = [plain_number(point.text) if isinstance(point, Single) else None for point in points]
    if len(points) > 1:
        if any(value is None for value in values):
            return None
        points = tuple(point for _, point in sorted(zip(values, points, strict=True), key=lambda pair: pair[0] or 0))
    ends = (interval.items[0], *points, interval.items[1])
    lefts, rights = (interval.left, *["("] * len(points)), (*[")"] * len(points), interval.right)
    pieces = zip(lefts, ends[:-1], ends[1:], rights, strict=True)
    return Listing(tuple(Bracketed(left, (low, high), right) for left, low, high, right in pieces))


def _listing(items: list[str], braces: bool = False, union: bool = False) -> Shape:
    r"""A list flattened: the pieces of a union, or the two values of `1 \pm \sqrt 2`, count one by one."""
    shapes: list[Shape] = []
    for item in items:
        shape = read(item)
        if isinstance(shape, Listing) and (union or not shape.braces):
            shapes.extend(shape.items)
        elif item:
            shapes.append(shape)
    return _between(shapes) or Listing(tuple(shapes), braces)


def _between(shapes: list[Shape]) -> Bracketed | None:
    """One interval for two bounds on one variable: `x > -2, x < 7`, but not `x < -2, x > 7`."""
    bounds = [shape for shape in shapes if isinstance(shape, Bracketed) and shape.variable]
    if len(shapes) != 2 or len(bounds) != 2 or bounds[0].variable != bounds[1].variable:
        return None
    for lower, upper in (bounds, bounds[::-1]):
        (low, no_high), (no_low, high) = lower.items, upper.items
        if (no_low, no_high) == (_LOWEST, _HIGHEST) and isinstance(low, Single) and isinstance(high, Single):
            a, b = plain_number(low.text), plain_number(high.text)
            if a is not None and b is not None and a < b:
                return Bracketed(lower.left, (low, high), upper.right, lower.variable)
    return None


def _both_signs(text: str) -> list[str]:
    r"""`1 \pm a` as `1 + a` and `1 - a` (a `\mp` takes the other sign)."""
    if (r"\pm" not in text and r"\mp" not in text) or text.startswith(r"\{"):
        return [text]
    upper = re.sub(r"\\pm(?![a-zA-Z])", "+", re.sub(r"\\mp(?![a-zA-Z])", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z])", "-", re.sub(r"\\mp(?![a-zA-Z])", "+", text))
    return [re.sub(r"(^|[=(,{])\s*\+", r"\1", upper), lower]


def _relation(signs: list[str], sides: list[str]) -> Shape:
    if len(set(signs)) == 1 and signs[0] in _EQUALITIES:
        return Relation(signs[0], tuple(sides))
    if not all(sign in _COMPARISONS for sign in signs):
        return Single(" ".join(side + " " + sign for side, sign in zip(sides, [*signs, ""], strict=True)))
    if all(sign in (">", r"\ge") for sign in signs):
        sides = sides[::-1]
        signs = [{">": "<", r"\ge": r"\le"}[sign] for sign in signs[::-1]]
    brackets = {"<": "()", r"\le": "[]"}
    if len(sides) == 3 and _VARIABLE.fullmatch(sides[1]) and all(sign in brackets for sign in signs):
        bounds = (read(sides[0]), read(sides[2]))
        return Bracketed(brackets[signs[0]][0], bounds, brackets[signs[1]][1], sides[1])
    if len(sides) > 2:  # a chain of anything else is its links
        links = zip(signs, sides[:-1], sides[1:], strict=True)
        return Listing(tuple(_relation([sign], [left, right]) for sign, left, right in links))
    absolute = [re.fullmatch(r"\|\s*(\w)\s*\|", side) for side in sides]
    if absolute[0]:
        return _relation(signs * 2, [f"-({sides[1]})", absolute[0][1], sides[1]])
    if absolute[1]:
        return Listing(
            tuple(_relation(signs, pair) for pair in ([absolute[1][1], f"-({sides[0]})"], [sides[0], absolute[1][1]]))
        )
    if _VARIABLE.fullmatch(sides[0]):
        return Bracketed("(", (_LOWEST, read(sides[1])), brackets[signs[0]][1], sides[0])
    if _VARIABLE.fullmatch(sides[1]) and sides[1] != r"\pi":
        return Bracketed(brackets[signs[0]][0], (read(sides[0]), _HIGHEST), ")", sides[1])
    return Relation(signs[0], tuple(sides))


def _bracketed(text: str) -> Shape | None:
    if text == r"\emptyset":
        return Listing((), braces=True)
    if text.startswith(r"\{") and text.endswith(r"\}") and closes_at_end(text, 2):
        return _set(text[2:-2].strip())
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and closes_at_end(text, 1):
        items = split(text[1:-1], (",",))
        if len(items) > MOST_ITEMS:
            return None
        if len(items) > 1:
            return Bracketed(text[0], tuple(read(item) for item in items), text[-1])
        if text[0] + text[-1] in ("()", "[]"):
            return read(text[1:-1])
    if text[:1] in ("]", "[") and text[-1:] in ("]", "[") and len(text) > 1:  # ]0,1[ as the French write it
        items = split(text[1:-1], (",",))
        if len(items) == 2:
            left, right = "[" if text[0] == "[" else "(", "]" if text[-1] == "]" else ")"
            return Bracketed(left, tuple(read(item) for item in items), right)
    return None


def _set(inside: str) -> Shape | None:
    """`{1, 2}` in the order of no one; `{x | x < 5}` as its condition."""
    condition = split(inside, ("|", ":"))
    if len(condition) == 2 and condition[0]:
        interval = read(condition[1])
        return replace(interval, variable=None) if isinstance(interval, Bracketed) else interval
    items = [item for part in split(inside, (",",)) for item in _both_signs(part)]
    items = [item for item in items if item]
    return _listing(items, braces=True) if len(items) <= MOST_ITEMS else None


def _matrix(text: str) -> Matrix | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = _rows(match[2] if match[2] is not None else match[3])
    return Matrix(tuple(tuple(read(entry) for entry in row.split("&")) for row in rows))


def _rows(body: str) -> list[str]:
    return [row for row in re.split(r"\\\\(?:\s*\[[^\[\]]*\])?", body) if row.strip()]


def _cases(text: str) -> Listing | None:
    """The equations of a system, or the pieces of a function, each with its condition, in any order."""
    match = _CASES.fullmatch(text)
    if match is None or match[1].count(r"\\") > MOST_ITEMS:
        return None
    rows = [tuple(read(part) for part in _CONDITION.split(row)) for row in _rows(match[1])]
    return Listing(tuple(row[0] if len(row) == 1 else Bracketed("(", row, ")") for row in rows))
