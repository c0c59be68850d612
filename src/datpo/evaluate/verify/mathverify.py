"""Math-Verify, for the formulas plain arithmetic does not cover.

Its own time limits use `signal.alarm`, which works in the main thread only, so they are off: the time limit is the
worker's (`pool`). Its "equal" is trusted only where it rests on symbols: decimals come in as fractions, because it
compares floating-point numbers after rounding to six places.
"""

from __future__ import annotations

import logging
import re

LONGEST = 400  # characters; its parser is slow on long texts
DEEPEST = 10  # nested brackets; its parser takes exponential time on them
MOST = {"|": 6, "_": 12}  # of a mark; likewise
_TOWER = re.compile(r"\^\s*\{?[^{}]*\^\s*\{?[^{}]*\^|\d\)?\s*\^\s*[{(]*\d+[)}]*\s*\^")
_DIGITS = re.compile(r"\d{40,}")
_FACTORIAL_OF_LARGE = re.compile(r"(?:\d{5,}|\})\s*\)?\s*!|\^[^!]{0,20}!|\\binom|\\(?:sum|prod|int)")
_MISREAD = re.compile(r"\d\s+\d|\d\s*[_%]")  # it adds 2 3 up, as it does 2 1/3
_DECIMAL = re.compile(r"(\d*)\.(\d+)")
# No unit stripping, no box search, no guessing at malformed text: that is `normalise`'s and `compare`'s to decide.


def readable(text: str) -> bool:
    """Whether Math-Verify makes something of a normalised formula."""
    return _parse(text) is not None


def equal(gold: str, answer: str) -> bool:
    """Whether Math-Verify calls two normalised formulas equal; False if it cannot read one of them."""
    from math_verify import verify

    left, right = _parse(gold), _parse(answer)
    if left is None or right is None:
        return False
    return bool(verify([left], [right], numeric_precision=30, timeout_seconds=None))


def _parse(text: str) -> object | None:
    """What Math-Verify reads, as a SymPy object; None if nothing, or if the text could cost too much."""
    from latex2sympy2_extended import latex2sympy
    from math_verify.parser import should_treat_as_complex

    if not _is_modest(text):
        return None
    exact = _DECIMAL.sub(_as_fraction, text.replace("°", r"^{\circ}").replace("%", r"\%"))
    try:
        found: object = latex2sympy(
            exact, is_real=not should_treat_as_complex(exact), convert_degrees=False, normalization_config=None
        )
    except MemoryError:
        raise
    except Exception:  # the parser raises whatever it likes, plain Exception included
        return None
    return found


def _is_modest(text: str) -> bool:
    """Whether a text stays clear of what SymPy may evaluate beyond bounds, and of what the parser misreads."""
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    refused = (_TOWER, _DIGITS, _FACTORIAL_OF_LARGE, _MISREAD)
    return (
        len(text) <= LONGEST
        and deepest <= DEEPEST
        and all(text.count(mark) <= most for mark, most in MOST.items())
        and not any(rule.search(text) for rule in refused)
    )


def _as_fraction(match: re.Match[str]) -> str:
    whole, places = match[1] or "0", match[2]
    return rf"\frac{{{int(whole + places)}}}{{{10 ** len(places)}}}"


# Math-Verify warns once that its time limits are off, which is on purpose; its debug lines would hold model output.
logging.getLogger("math_verify").setLevel(logging.CRITICAL)
