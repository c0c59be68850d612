"""Keys that no answer can be compared with: empty, broken off, prose that points elsewhere, unread mathematics."""

from __future__ import annotations

import re

from datpo.evaluate.verify import arithmetic, mathverify
from datpo.evaluate.verify.brackets import split
from datpo.evaluate.verify.normalise import LONGEST, normalise
from datpo.evaluate.verify.shapes import Matrix, Relation, Shape, Single, read
from datpo.evaluate.verify.values import choice, clock, long_number, measure, numeral, plain_number, unwrap, words

_POINTERS = frozenset(("see", "figure", "diagram", "above", "below", "shown"))
_NO_ANSWERS = frozenset(("proof", "omitted", "varies", "vary", "n/a", "na", "nan", "tbd", "tba", "todo"))
_ELSEWHERE = re.compile(r"https?://|\bwww\.|\bsee\b.*\b(?:above|below|figure|diagram|solution|text)\b", re.IGNORECASE)


def is_no_key(gold: str) -> bool:
    """Whether a key is empty, broken off, a stand-in ("TBD", "NaN"), or points elsewhere ("see the figure above").

    "None" is a word like any other: there may be no solution.
    """
    text = normalise(gold[:LONGEST])
    if not re.search(r"\w|\\\{", text) or text.lower() in _NO_ANSWERS or _ELSEWHERE.search(gold[:LONGEST]):
        return True
    braces = re.sub(r"\\[{}]", "", text)
    if len(gold) <= LONGEST and braces.count("{") != braces.count("}"):
        return True
    spelled = words(text)
    if spelled is None or re.search(r"\d", spelled):
        return False
    each = spelled.split()
    pointing = len(each) > 1 and not _POINTERS.isdisjoint(each)
    return pointing or not _NO_ANSWERS.isdisjoint(each) or ("\\text" not in text and len(each) > 3)


def is_readable(key: Shape) -> bool:
    """Whether every value of a key can be understood, so that an answer unlike it is wrong."""
    if isinstance(key, Single):
        return _is_readable_value(unwrap(key.text))
    if isinstance(key, Relation):
        return all(is_readable(read(side)) for side in key.sides)
    if isinstance(key, Matrix):
        return all(is_readable(entry) for row in key.rows for entry in row)
    return all(is_readable(item) for item in key.items)


def _is_readable_value(text: str) -> bool:
    if any(kind(text) is not None for kind in (numeral, clock, choice, words, plain_number, long_number)):
        return True
    for part in split(text, (":",)):
        formula = measure(part).formula
        try:
            arithmetic.read(formula)
        except arithmetic.TooLarge:
            continue
        except arithmetic.Unreadable:
            if not mathverify.readable(formula):
                return False
    return True
