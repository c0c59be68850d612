r"""The checker of DATPO's released code, to see what its rewards say (its file `math_dataset.py`).

Right iff the last box (without one, the whole text) is the key's text after a coarse normalisation, or if the numbers
of both, read from nothing but digits and `. - + * / ( )` and sorted, agree to 1e-6. So `\sqrt2`, `2x` and `2` are one,
`A` and `a`, `101_2` and `101_3`, a column (1, 2) and 12; while 1/2 and 0.5 written as `\dfrac{1}{2}` and `0.5` differ.

Its own limit, two seconds for each number by an alarm in the main thread, is here the worker's limit for the item.
"""

from __future__ import annotations

import re
import warnings

from datpo.evaluate.verify.boxed import LONGEST_RESPONSE

LONGEST = 300  # characters of a text whose numbers are read
LONGEST_NUMBER = 50  # characters of one of them
TOLERANCE = 1e-6

_BOX = r"\boxed{"
# Size commands by their prefix: of \bigg a "g" stays, as in the original.
_SIZES = re.compile(r"\\(?:left|right|big)")
_UPRIGHT = re.compile(r"\\(?:text|mbox|mathrm|textbf|textit)\{([^}]+)\}")
_MARKS = re.compile(r"\\?\$|\\?%|\^\\circ|degrees?")
_LABEL = re.compile(r"^[a-z]\s*=\s*")
_SUBSCRIPT = re.compile(r"_\d+|_\{\d+\}")
_FRACTION = re.compile(r"\\f?frac\{([^{}]+)\}\{([^{}]+)\}")
_NO_ARITHMETIC = re.compile(r"[^0-9.\-+*/()]")

WARM_UP = [("1", "2/3")]


def find_answer(response: str) -> str | None:
    """The last box, or the whole of a text that has none and is short enough to be one answer."""
    response = response[-LONGEST_RESPONSE:]
    start = response.rfind(_BOX)
    depth = 1
    for at in range(start + len(_BOX), len(response)) if start >= 0 else ():
        depth += (response[at] == "{") - (response[at] == "}")
        if depth == 0:
            return response[start + len(_BOX) : at]
    return response if 0 < len(response) <= LONGEST else None


def quick(gold: str, answer: str) -> str | None:
    """`right` if key and answer are written alike after normalisation, else None."""
    return "right" if _normalised(gold) == _normalised(answer) else None


def judge(gold: str, answer: str) -> str:
    """`right` or `wrong`; may take long and runs in a worker."""
    if quick(gold, answer):
        return "right"
    left, right = sorted(_numbers(gold)), sorted(_numbers(answer))
    alike = left and len(left) == len(right)
    return "right" if alike and all(abs(a - b) < TOLERANCE for a, b in zip(left, right, strict=True)) else "wrong"


def _normalised(text: str) -> str:
    text = _SIZES.sub("", text.lower().strip())
    text = text.replace(r"\dfrac", r"\frac").replace(r"\tfrac", r"\frac")
    text = _MARKS.sub("", _UPRIGHT.sub(r"\1", text))
    for dropped in (",", "!", "\\ ", r"\in"):
        text = text.replace(dropped, "")
    text = _SUBSCRIPT.sub("", _LABEL.sub("", text))
    return text.replace(" ", "").replace("\\", "")


def _numbers(text: str) -> list[float]:
    """The values of the comma-separated parts that are arithmetic once all other characters are dropped."""
    from sympy.parsing.sympy_parser import (
        implicit_multiplication_application,
        parse_expr,
        standard_transformations,
    )

    if len(text) > LONGEST:
        return []
    found = []
    for part in re.split("[,;]", _FRACTION.sub(r"(\1)/(\2)", text)):
        arithmetic = _NO_ARITHMETIC.sub("", part)
        if not arithmetic or len(arithmetic) > LONGEST_NUMBER:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                # SymPy evaluates the text as Python; of digits and operators that is arithmetic, under limits.
                rules = (*standard_transformations, implicit_multiplication_application)
                found.append(float(parse_expr(arithmetic, transformations=rules).evalf()))
        except MemoryError:
            raise
        except Exception:  # the parser raises whatever it likes
            continue
    return found
