r"""Single values: numbers with units and marks, numerals in a base, clock times, ratios, choices and words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from datpo.evaluate.verify.normalise import peel

DIGITS = 1_000  # of a number worth turning into one; longer ones are compared digit by digit

_DECIMAL = r"(?:\d+\.?\d*|\.\d+)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?)\s*(?:(?P<decimal>{_DECIMAL})"
    r"|(?:(?P<whole>\d+)\s*)?\\frac\s*(?:\{\s*(?P<top>-?\d+)\s*\}|(?P<top1>\d))\s*(?:\{\s*(?P<bottom>-?\d+)\s*\}|(?P<bottom1>\d))"
    r"|(?:(?P<whole_part>\d+) )?(?P<over>\d+)\s*/\s*(?P<under>\d+))"
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?")
_DIGIT_STRING = re.compile(r"([-+]?)0*(\d+)(?:\.(\d*?)0*)?")
_BASE = re.compile(r"(-?)0*([0-9A-Z]+(?:\.[0-9A-Z]+)?)_(?:(\d)|\{(\d+)\}|\{?\\text\{(?:base ?)?(\w+)\}\}?)")
_BASE_NAMES = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "sixteen": "16",
}  # fmt: skip
_CLOCK = re.compile(
    r"(\d{1,2})\s*(?::\s*(\d{2})\s*(?=[^\d\s]|$)|(?=[\sap\\]))(?:\\text\s*\{\s*)?(?:([ap])\.?\s?m\.?)?\s*\}?",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s)?\(?\s*([A-Z])\s*\)?[.:]?|\(\s*([A-J])\s*\)\s*[^\s].*|([A-J])[.:)]\s+[^\s].*",
    re.DOTALL,
)
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
_WORDS = re.compile(r"[^\W\d_][\w\s.,;:'\"()/?!-]*")


def plain_number(text: str) -> Fraction | None:
    """The exact value of an integer, decimal, fraction of integers or mixed number; None if it is none of them."""
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > DIGITS:
        return None
    if match["decimal"]:
        size = Fraction(match["decimal"])
    else:
        bottom = int(match["bottom"] or match["bottom1"] or match["under"])
        if bottom == 0:
            return None
        size = Fraction(int(match["top"] or match["top1"] or match["over"]), bottom)
        whole = match["whole"] or match["whole_part"]
        size += int(whole or 0)
    return -size if match["sign"] == "-" else size


def ungrouped(text: str) -> str | None:
    """`12,345,678` or `12 345 678` in one piece; None if the text is no number in groups of three."""
    return re.sub("[, ]", "", text) if _THOUSANDS.fullmatch(text) else None


def long_number(text: str) -> tuple[str, str, str] | None:
    """Sign, digits and places of a number too long to compute with; zeros that mean nothing are dropped."""
    match = _DIGIT_STRING.fullmatch(text) if len(text) > DIGITS else None
    return None if match is None else (match[1].strip("+"), match[2], match[3] or "")


def numeral(text: str) -> tuple[str, str] | None:
    r"""Digits and base of a numeral such as `1010_2` or `1010_{\text{two}}`."""
    match = _BASE.fullmatch(re.sub(r"\\text\{([0-9A-Z]+)\}|\(([0-9A-Z]+)\)|\s", r"\1\2", text))
    if match is None:
        return None
    base = match[3] or match[4] or _BASE_NAMES.get(match[5].lower(), match[5])
    return match[1] + match[2], base


def clock(text: str) -> tuple[int, int, str] | None:
    """Hour, minute and "a" or "p" (or "") of a clock time."""
    match = _CLOCK.fullmatch(text)
    if match is None or not (match[2] or match[3]) or int(match[1]) > 24 or int(match[2] or 0) > 59:
        return None
    return int(match[1]), int(match[2] or 0), (match[3] or "").lower()


def same_time(left: tuple[int, int, str], right: tuple[int, int, str]) -> bool:
    """Whether two clock times are one; a side that says neither a.m. nor p.m. may mean either."""
    hours = [_hours(left), _hours(right)]
    return left[1] == right[1] and bool(hours[0] & hours[1])


def _hours(time: tuple[int, int, str]) -> set[int]:
    hour, _, half = time
    if half:
        return {hour % 12 + (12 if half == "p" else 0)}
    return {hour % 24} if hour > 12 or hour == 0 else {hour % 12, hour % 12 + 12}


def choice(text: str) -> str | None:
    r"""The letter of a choice: `A`, `(A)`, `\text{(A)}`, `(A) 42`."""
    match = _CHOICE.fullmatch(_TEXT.sub(r"\1", text).strip())
    return None if match is None else match[1] or match[2] or match[3]


@lru_cache(maxsize=4096)
def words(text: str) -> str | None:
    r"""The words of an answer that is words alone, in lower case; None if it holds mathematics.

    Letters without `\text` are words only if they are many: `even` is one, `abc` is a product.
    """
    unwrapped = _TEXT.sub(r" \1 ", text)
    if not _WORDS.fullmatch(unwrapped.strip()):
        return None
    if unwrapped == text and not re.search(r"[^\W\d_]{4,}|[^\W\d_]{2,} [^\W\d_]{2,}|^(?:yes|no)$", text, re.I):
        return None
    spelled = " ".join(re.sub(r"[.,;:'\"()?!]", " ", unwrapped).split())
    return spelled.lower() if len(spelled) > 1 else spelled  # a single letter keeps its case


def unwrap(text: str) -> str:
    r"""What stands in a `\text{…}` that goes round the whole: `\text{13}` is 13."""
    match = _TEXT.fullmatch(text)
    return peel(match[1]) if match else text


@dataclass(frozen=True)
class Measure:
    """A formula with what may be left out after it: `%`, `°` or a unit."""

    formula: str
    mark: str = ""
    unit: str = ""


_UNIT_NAMES = {
    "millimeter": ("mm", "millimetre"), "centimeter": ("cm", "centimetre"), "meter": ("m", "metre"),
    "kilometer": ("km", "kilometre"), "inch": ("in", "inche"),
    "foot": ("ft", "feet"), "yard": ("yd",), "mile": ("mi",),
    "gram": ("g",), "kilogram": ("kg",), "milligram": ("mg",), "pound": ("lb",), "ounce": ("oz",),
    "second": ("s", "sec"),
    "minute": ("min",), "hour": ("h", "hr"), "day": (), "week": (), "month": (), "year": ("yr",),
    "liter": ("l", "litre"), "milliliter": ("ml", "millilitre"),
    "mile per hour": ("mph",), "kilometer per hour": ("kmh", "kph"),
    "dollar": (), "cent": (), "degree": ("°",), "percent": ("%",),
}  # fmt: skip
_UNITS = {alias: name for name, aliases in _UNIT_NAMES.items() for alias in (name, *aliases)}
_POWER = r"(?:\s*\^\s*\{?\s*-?\d\s*\}?)?"
_TEXT_UNIT = re.compile(rf"(.*[\w}})!°%])\s*\\text\s*\{{\s*([^{{}}]*?)\s*\}}({_POWER})", re.DOTALL)
_ORDINAL = re.compile(
    r"(-?\d+)\s*(?:\^\s*)?\{?\s*(?:\\text\s*\{\s*)?(?:st|nd|rd|th)\s*\}?\s*\}?(?:\s*(?:\\text\s*\{)?\s+[a-zA-Z]+\s*\}?)?"
)
_BARE_UNIT = re.compile(rf"(.*[\d}})])(\s*)([a-zA-Z]+\.?(?:(?: |/| per )[a-zA-Z]+\.?)*)({_POWER})", re.DOTALL)
_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])")  # in which degrees are no unit but a factor
_NO_UNIT = re.compile(r"^,|\b(?:or|and|not|more|less|least|most)\b")  # "5 or more" is no amount of "or more"
_AMOUNT = re.compile(r"\d|\\pi|\\sqrt|\\infty")


@lru_cache(maxsize=8192)
def measure(text: str) -> Measure:
    """A value and what may be left out after it."""
    ordinal = _ORDINAL.fullmatch(text)
    if ordinal:
        return Measure(ordinal[1])
    formula, unit = text, ""
    match = _TEXT_UNIT.fullmatch(text)
    while match and _AMOUNT.search(match[1]) and not _NO_UNIT.search(match[2]):
        formula, unit = match[1].removesuffix(r"\cdot").strip(), match[2] + _digits(match[3]) + unit
        match = _TEXT_UNIT.fullmatch(formula)
    bare = None if unit else _BARE_UNIT.fullmatch(text)
    if bare and _is_bare_unit(bare[3], bool(bare[2])):
        formula, unit = bare[1].strip(), bare[3] + _digits(bare[4])
    if formula.endswith("%"):
        return Measure(peel(formula[:-1]), "%", unit)
    if "°" in formula and not _TRIGONOMETRIC.search(formula):
        return Measure(peel(formula.replace("°", "")), "°", unit)
    return Measure(peel(formula), "", unit)


def _digits(power: str) -> str:
    return "".join(character for character in power if character.isdigit())


def _is_bare_unit(word: str, spaced: bool) -> bool:
    """Whether letters after a number are a unit, not variables: `5 cm`, `5cm`, `3 apples`, but not `5x` or `2 ab`."""
    first = re.split(r"[ /.]", word.lower())[0]
    known = first in _UNITS or first.removesuffix("s") in _UNITS or word.lower() in ("mph", "kph", "am", "pm")
    return (known and len(first) > 1) or (spaced and len(first) >= 4 and word[0] != "\\")


def units_clash(left: str, right: str) -> bool:
    """Whether two units are both known and not the same: `cm` against `m`, but not `cm` against nothing."""
    if left.startswith("mod ") and right.startswith("mod "):
        return left != right
    a, b = _UNITS.get(_singular(left)), _UNITS.get(_singular(right))
    return a is not None and b is not None and a != b


def _singular(unit: str) -> str:
    unit = unit.lower().strip(" .")
    return unit if unit in _UNITS else unit.removesuffix("s")
