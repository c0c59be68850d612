"""What kind of value stands under each key of a file's objects: said once in a table, checked for every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from datpo.core.errors import InputError
from datpo.core.files import is_unicode
from datpo.core.rows import LARGEST


class Kind(NamedTuple):
    """Values of one kind: which they are, and in words."""

    words: str
    fits: Callable[[Any], bool]


Kinds = Mapping[str, Kind]


def whole(least: int = 0, most: int = LARGEST) -> Kind:
    """Whole numbers from `least` to `most`; true and false are none."""
    words = f"a whole number from {least}" + (f" to {most}" if most < LARGEST else "")
    return Kind(words, lambda value: type(value) is int and least <= value <= most)


def one_of(*values: str | int) -> Kind:
    """One of these values and of no other type; 1 is neither true nor 1.0."""
    words = " or ".join(map(repr, values)) if len(values) < 3 else f"one of {', '.join(map(repr, values))}"
    return Kind(words, lambda value: any(type(value) is type(known) and value == known for known in values))


def or_null(kind: Kind) -> Kind:
    """The values of `kind`, and null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.fits(value))


def list_of(kind: Kind) -> Kind:
    """Lists of values of `kind`."""
    return Kind(
        f"a list, each {kind.words}", lambda value: isinstance(value, list) and all(kind.fits(each) for each in value)
    )


def map_of(kind: Kind) -> Kind:
    """Objects with values of `kind`."""
    return Kind(
        f"a JSON object, each value {kind.words}",
        lambda value: isinstance(value, dict) and all(kind.fits(each) for each in value.values()),
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST  # which NaN is not


AMOUNT = Kind("a finite number from 0", lambda value: _is_number(value) and value >= 0)
SHARE = Kind("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)
TEXT = Kind("text", lambda value: isinstance(value, str))
NAME = Kind("whole text, not empty", lambda value: isinstance(value, str) and value != "" and is_unicode(value))
OBJECT = Kind("a JSON object", lambda value: isinstance(value, dict))


def check_kinds(place: str, row: Any, needed: Kinds, optional: Kinds | None = None, known_only: bool = False) -> None:
    """Refuse an object that lacks a needed key, or holds something else under a key than the table says.

    Keys that no table names may stand there too, unless it is to hold `known_only`.

    Raises:
        InputError: the place and the key are named.
    """
    if not isinstance(row, dict):
        raise InputError(f"{place}: must be a JSON object, not {_short(row)}")
    for key, kind in needed.items():
        if key not in row:
            raise InputError(f"{place}: key {key!r} is missing; was the file made by an older version?")
        if not kind.fits(row[key]):
            raise InputError(f"{place}: {key!r} must be {kind.words}, not {_short(row[key])}")
    for key, kind in (optional or {}).items():
        if key in row and not kind.fits(row[key]):
            raise InputError(f"{place}: {key!r} must be {kind.words}, not {_short(row[key])}")
    known = {*needed, *(optional or {})}
    if known_only and (strange := [key for key in row if key not in known]):
        raise InputError(f"{place}: unknown key {_short(strange[0])}; known: {', '.join(sorted(known))}")


def _short(value: Any, limit: int = 80) -> str:
    shown = ascii(value)
    return shown if len(shown) <= limit else f"{shown[:limit]}…"
