r"""The outer shape of an answer: a list, a tuple or interval, a relation, a matrix, or one value.

Bare comma lists, sets and unions are unordered; tuples, points, intervals and matrices are ordered. A condition on
one variable (`2 < x \le 3`, `\{x | x < 5\}`) is the interval it describes, and remembers its variable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
    r"""Sides joined by one kind of sign: `=`, `<`, `\le` or `\ne` (the larger side comes last)."""

    sign: str
    sides: tuple[str, ...]


Shape = Single | Listing | Bracketed | Matrix | Relation

_OPEN, _CLOSE = "([{", ")]}"
_MARK = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
_MATRIX = re.compile(
    r"\\begin\{[pb]?matrix\}(.*)\\end\{[pb]?matrix\}|\\begin\{array\}(?:\{[^{}]*\})?(.*)\\end\{array\}", re.DOTALL
)
_VARIABLE = re.compile(r"(?:[a-zA-Z]|\\[a-zA-Z]+)'?(?:_(?:\w|\{\w+\}))?")
_COMPARISONS = {"<": "<", ">": ">", r"\le": r"\le", r"\ge": r"\ge"}
_GROUPED = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})+)(?![\d,])")


def readings(text: str) -> list[Shape]:
    """The shapes a normalised answer may have: `1,234` is a number or a list of two."""
    shapes = [read(text)]
    if len(split(text, (",",))) > 1 and _GROUPED.search(text):
        shapes.append(read(_GROUPED.sub(lambda match: match[1].replace(",", ""), text)))
    return shapes


@lru_cache(maxsize=8192)
def read(text: str) -> Shape:
    """The shape of a normalised answer."""
    text = peel(text)
    items = [item for part in split(text, (",",)) for item in _both_signs(part)]
    if len(items) > 1:
        return _listing(items[:MOST_ITEMS])
    return _read_item(text)


def _read_item(text: str) -> Shape:
    parts = split(text, (r"\cup",))
    if len(parts) > 1:
        return _listing(parts, union=True)
    difference = split(text, (r"\setminus",))
    if len(difference) == 2:
        return _without(read(difference[0]), read(difference[1])) or Single(text)
    member = split(text, (r"\in",))
    if len(member) == 2 and _VARIABLE.fullmatch(member[0].strip()):
        return read(member[1])
    text = next((side for side in split(text, (r"\approx",)) if side), text)
    signs = _signs(text)
    if signs:
        return _relation(signs, split(text, tuple(set(signs))))
    return _bracketed(text) or _matrix(text) or Single(text)


def _without(interval: Shape, holes: Shape) -> Shape | None:
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


def split(text: str, marks: tuple[str, ...]) -> list[str]:
    """The parts of `text` between the marks that stand outside all brackets."""
    if not any(mark in text for mark in marks):
        return [text]
    parts, depth, start = [], 0, 0
    for match in _MARK.finditer(text):
        token = match.group()
        if token in (*_OPEN, r"\{", r"\begin"):
            depth += 1
        elif token in (*_CLOSE, r"\}", r"\end"):
            depth -= 1
        elif depth == 0 and token in marks:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts] if len(parts) > 1 else [text]


def _signs(text: str) -> list[str]:
    """The relation signs outside all brackets, in order."""
    found, depth = [], 0
    for match in _MARK.finditer(text):
        token = match.group()
        if token in (*_OPEN, r"\{", r"\begin"):
            depth += 1
        elif token in (*_CLOSE, r"\}", r"\end"):
            depth -= 1
        elif depth == 0 and (token in ("=", r"\ne") or token in _COMPARISONS):
            found.append(token)
    return found


def _listing(items: list[str], braces: bool = False, union: bool = False) -> Listing:
    r"""A list flattened: the pieces of a union, or the two values of `1 \pm \sqrt 2`, count one by one."""
    shapes: list[Shape] = []
    for item in items:
        shape = read(item)
        if isinstance(shape, Listing) and (union or not shape.braces):
            shapes.extend(shape.items)
        elif item:
            shapes.append(shape)
    return Listing(tuple(shapes), braces)


def _both_signs(text: str) -> list[str]:
    r"""`1 \pm a` as `1 + a` and `1 - a` (a `\mp` takes the other sign)."""
    if (r"\pm" not in text and r"\mp" not in text) or text.startswith(r"\{"):
        return [text]
    upper = re.sub(r"\\pm(?![a-zA-Z])", "+", re.sub(r"\\mp(?![a-zA-Z])", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z])", "-", re.sub(r"\\mp(?![a-zA-Z])", "+", text))
    return [re.sub(r"(^|[=(,{])\s*\+", r"\1", upper), lower]


def _relation(signs: list[str], sides: list[str]) -> Shape:
    if signs == [r"\ne"] and _VARIABLE.fullmatch(sides[0]):
        reals = Bracketed("(", (Single(r"-\infty"), Single(r"\infty")), ")")
        return _without(reals, read(sides[1])) or Relation(signs[0], tuple(sides))
    if len(set(signs)) == 1 and signs[0] in ("=", r"\ne"):
        return Relation(signs[0], tuple(sides))
    if not all(sign in _COMPARISONS for sign in signs) or len(signs) > 2:
        return Single(" ".join(side + " " + sign for side, sign in zip(sides, [*signs, ""], strict=True)))
    if signs[0] in (">", r"\ge"):
        sides = sides[::-1]
        signs = [{">": "<", r"\ge": r"\le"}.get(sign, sign) for sign in signs[::-1]]
    brackets = {"<": "()", r"\le": "[]"}
    if len(sides) == 3 and all(sign in brackets for sign in signs):
        bounds = (read(sides[0]), read(sides[2]))
        return Bracketed(brackets[signs[0]][0], bounds, brackets[signs[1]][1], sides[1])
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[0]):
        return Bracketed("(", (Single(r"-\infty"), read(sides[1])), brackets[signs[0]][1], sides[0])
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[1]) and sides[1] != r"\pi":
        return Bracketed(brackets[signs[0]][0], (read(sides[0]), Single(r"\infty")), ")", sides[1])
    return Relation(signs[0], tuple(sides))


def _bracketed(text: str) -> Shape | None:
    if text == r"\emptyset":
        return Listing((), braces=True)
    if text.startswith(r"\{") and text.endswith(r"\}") and _closes_at_end(text, 2):
        return _set(text[2:-2].strip())
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and _closes_at_end(text, 1):
        items = split(text[1:-1], (",",))
        if len(items) > 1:
            return Bracketed(text[0], tuple(read(item) for item in items[:MOST_ITEMS]), text[-1])
        if text[0] + text[-1] in ("()", "[]"):
            return read(text[1:-1])
    if text[:1] in ("]", "[") and text[-1:] in ("]", "[") and len(text) > 1:  # ]0,1[ as the French write it
        items = split(text[1:-1], (",",))
        if len(items) == 2:
            left, right = "[" if text[0] == "[" else "(", "]" if text[-1] == "]" else ")"
            return Bracketed(left, tuple(read(item) for item in items), right)
    return None


def _set(inside: str) -> Shape:
    """`{1, 2}` in the order of no one; `{x | x < 5}` as its condition."""
    condition = split(inside, ("|", ":"))
    if len(condition) == 2 and condition[0]:
        return read(condition[1])
    items = [item for part in split(inside, (",",)) for item in _both_signs(part)]
    return _listing([item for item in items if item][:MOST_ITEMS], braces=True)


def _closes_at_end(text: str, width: int) -> bool:
    """Whether the bracket that opens the text closes only at its end: `(1,2)`, but not `(1+x)(2+y)`."""
    depth = 0
    for match in _MARK.finditer(text):
        token = match.group()
        if token in (*_OPEN, r"\{"):
            depth += 1
        elif token in (*_CLOSE, r"\}"):
            depth -= 1
            if depth == 0:
                return match.end() == len(text)
    return False


def _matrix(text: str) -> Matrix | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    body = (match[1] if match[1] is not None else match[2]).strip()
    rows = [row for row in re.split(r"\\\\(?:\s*\[[^\[\]]*\])?", body) if row.strip()]
    return Matrix(tuple(tuple(read(entry) for entry in row.split("&")) for row in rows[:MOST_ITEMS]))
