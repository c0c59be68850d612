"""Training methods. Each module is one paper's method, written as its difference: `build(**numbers) -> Method`.

The numbers stand in `config/methods/NAME.yaml`; the module, its rule file and its config file share one name.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

from datpo.core.errors import InputError
from datpo.methods.base import Method

__all__ = ["Method", "load", "names"]


def names() -> list[str]:
    """The methods that exist: the modules of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def load(name: str, numbers: Mapping[str, Any]) -> Method:
    """The method `name` with its numbers.

    Raises:
        InputError: there is no such method, or a number is unknown, missing or impossible.
    """
    if name not in names():
        raise InputError(f"method {name!r} has no module src/datpo/methods/{name}.py; known: {', '.join(names())}")
    build = importlib.import_module(f"{__name__}.{name}").build
    known = inspect.signature(build).parameters
    if unknown := sorted(set(numbers) - set(known)):
        raise InputError(f"method {name!r} has no number {unknown[0]!r}; it takes: {', '.join(known)}")
    if missing := [key for key, p in known.items() if p.default is p.empty and key not in numbers]:
        raise InputError(f"method {name!r} needs the number {missing[0]!r} (config/methods/{name}.yaml)")
    try:
        method: Method = build(**numbers)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"method {name!r}: {error}") from error
    return method
