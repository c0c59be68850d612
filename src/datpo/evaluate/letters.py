r"""The letter that a response to a multiple-choice question settles on.

* A statement is `answer is (X)`, in any case, or `\boxed{X}`; around the letter may stand a colon, `option`, Markdown
  stars, dollar signs and `\text{}`. A letter in brackets or in a box may be small.
* A bare letter (`answer is X`) is a capital that ends there; A and I before another word are words, not letters.
* Two letters at once, `(A) or (B)`, are no statement.
* The last statement counts, even if it names none of the options: then there is no answer, and nothing is guessed.

The task files of workflow/out_of_domain/ name `letters` and `share_right`; lm-evaluation-harness calls them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase as LETTERS
from typing import Any

NO_ANSWER = ""

_MACRO = r"\\(?:text|textbf|mathrm|mathbf)\s{0,3}\{"
_BOX = r"\\(?:boxed|fbox)\s{0,3}\{"
# Every repetition is bounded: a response is hostile text, and this must stay linear in its length.
_BETWEEN = rf"(?:[\s*_$:\"']|\\[(\[]|{_BOX}|{_MACRO}|option\b|choice\b){{0,12}}"
_SECOND = r"(?![\s)}*_$]{0,6}(?:(?:,|and|,\s?and)\s{0,3}[*_$]{0,4}\([A-Z]\)|(?:or|/)\s{0,3}[*_$]{0,4}\(?[A-Z]\b))"
_STATEMENT = re.compile(
    rf"(?i:answer\s{{1,8}}is)\b{_BETWEEN}"
    rf"(?:\(\s?(?P<bracketed>[A-Za-z])\s?\)|(?P<bare>[A-Z])(?![\w'’])){_SECOND}"
    rf"|{_BOX}\s{{0,3}}(?:{_MACRO})?\s{{0,3}}\(?\s?(?P<boxed>[A-Za-z])\s?\)?\s{{0,3}}\}}"
)
_GOES_ON = re.compile(r" [A-Za-z]")


def last_letter(text: str, options: int) -> str | None:
    """The letter of the last statement in `text`, if it is one of the first `options` letters; else None."""
    last = None
    for statement in _STATEMENT.finditer(text):
        bare = statement["bare"]
        if bare in ("A", "I") and _GOES_ON.match(text, statement.end("bare")):
            continue
        last = (statement["bracketed"] or bare or statement["boxed"]).upper()
    return last if last is not None and last in LETTERS[:options] else None


def letters(responses: Iterable[Sequence[str]], docs: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """A harness filter that keeps every sample: for each question the letters of all its responses, "" for none."""
    return [
        [last_letter(text, len(doc["options"])) or NO_ANSWER for text in texts]
        for texts, doc in zip(responses, docs, strict=True)
    ]


def share_right(doc: Mapping[str, Any], results: Sequence[Sequence[str]]) -> dict[str, float]:
    """The harness's metric of one question: the share of right letters among all its samples."""
    (given,) = results
    return {"avg": sum(letter == doc["answer"] for letter in given) / len(given)}
