"""Values in the rows of a file, each checked; a mistake is told with the place where it stands."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.tree import Floats, Ints

LARGEST = 2**63 - 1


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
