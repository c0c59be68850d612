"""Training methods. Each module is one paper's method, written as its difference: `build(**numbers) -> Method`.

The numbers stand in `config/methods/NAME.yaml`; the module, its rule file and its config file share one name.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from datpo.core.errors import InputError
from datpo.methods.base import Method

__all__ = ["Method", "load", "names"]

WANTED = {bool: "true or false", int: "a whole number, 0 or more", float: "a finite number", str: "a word"}


def names() -> list[str]:
    """The methods that exist: the modules of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def load(name: str, numbers: Mapping[str, Any]) -> Method:
    """The method `name` with its numbers, which must be of the kinds that its `build` is annotated with.

    Raises:
        InputError: there is no such method, or a number is unknown, missing, of another kind or impossible.
    """
    if name not in names():
        raise InputError(f"method {name!r} has no module src/datpo/methods/{name}.py; known: {', '.join(names())}")
    build = importlib.import_module(f"{__name__}.{name}").build
    known = inspect.signature(build).parameters
    if unknown := sorted(set(numbers) - set(known)):
        raise InputError(f"method {name!r} has no number {unknown[0]!r}; it takes: {', '.join(known)}")
    if missing := [key for key, p in known.items() if p.default is p.empty and key not in numbers]:
        raise InputError(f"method {name!r} needs the number {missing[0]!r} (config/methods/{name}.yaml)")
    kinds = get_type_hints(build)
    for key, value in numbers.items():
        if not _fits(value, kinds.get(key, Any)):
            raise InputError(f"method {name!r}: {key} must be {_wanted(kinds[key])}, not {value!r}")
    try:
        method: Method = build(**numbers)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"method {name!r}: {error}") from error
    return method


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value from YAML is of an annotated kind; true and false are no numbers."""
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is Sequence:
        return isinstance(value, list | tuple) and all(_fits(item, *get_args(kind)) for item in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return type(value) is int and value >= 0
    return isinstance(value, kind) if kind in (bool, str) else True


def _wanted(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_wanted(each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    return "a list of numbers" if get_origin(kind) is Sequence else WANTED[kind]
