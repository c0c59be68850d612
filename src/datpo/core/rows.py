"""Rows of a JSON Lines file with the place where each stands, so that a mistake in one can be named."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.tree import Floats, Ints

LARGEST = 2**63 - 1


def located_rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Every row with its place, `FILE: line N`; a blank line is counted but gives no row.

    Raises:
        InputError: the file is missing or no UTF-8 text, or a line is no JSON object.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error})") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{path}: line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"{place} is not JSON (is the file truncated?)") from None
        if not isinstance(row, dict):
            raise InputError(f"{place} is not a JSON object")
        yield place, row


def object_of(place: str, value: Any, needed: Collection[str], optional: Collection[str]) -> Row:
    """A JSON object with all the needed keys and, besides the optional ones, no other.

    Raises:
        InputError: it is none; the key is named.
    """
    if not isinstance(value, dict):
        raise InputError(f"{place} must be a JSON object, not {value!r}")
    for key in needed:
        if key not in value:
            raise InputError(f"{place}: key {key!r} is missing")
    if unknown := [key for key in value if key not in needed and key not in optional]:
        raise InputError(f"{place}: unknown key {unknown[0]!r}; known: {', '.join([*needed, *optional])}")
    return value


def whole_number(place: str, value: Any) -> int:
    """A whole number from 0 on; true and false are none.

    Raises:
        InputError: it is none.
    """
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise InputError(f"{place} must be a whole number, 0 or more, not {value!r}")
    return value


def whole_numbers(place: str, value: Any) -> Ints:
    """A list of whole numbers from 0 on, such as token ids (T,).

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, list) or any(type(item) is not int or not 0 <= item <= LARGEST for item in value):
        raise InputError(f"{place} must be a list of whole numbers, 0 or more")
    return np.array(value, dtype=np.int64)


def numbers(place: str, value: Any) -> Floats:
    """A list of finite numbers.

    Raises:
        InputError: it is none.
    """
    if isinstance(value, list) and {type(item) for item in value} <= {int, float}:
        try:
            found = np.array(value, dtype=float)
        except OverflowError:
            found = np.array([np.inf])
        if np.isfinite(found).all():
            return found
    raise InputError(f"{place} must be a list of finite numbers")


def number(place: str, value: Any) -> float:
    """A finite number.

    Raises:
        InputError: it is none.
    """
    try:
        return float(numbers(place, [value])[0])
    except InputError:
        raise InputError(f"{place} must be a finite number, not {value!r}") from None
