r"""The letter that a response to a multiple-choice question settles on.

* A statement is `answer is (X)`, `Answer: (X)` or `correct option is (X)`, in any case, or `\boxed{X}`; around the
  letter may stand a colon, `option`, Markdown stars, dollar signs and `\text{}`. A letter in brackets may be small.
* A bare letter (`answer is X`, or with one bracket missing) is a capital behind which a sentence may end or go on with
  "because" and the like. A symbol is none: `I = 2.5 A`, `C-14`, `B cells`, `H+`, `E. coli`; nor is a word, A or I.
* Two letters at once, `(A) or (B)`, are no answer.
* The last statement counts, even if it names two letters or none of the options: then there is no answer, and nothing
  is guessed.

The task files of workflow/out_of_domain/ name `letters` and `share_right`; lm-evaluation-harness calls them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase as LETTERS
from typing import Any

NO_ANSWER = ""

# Every repetition is bounded: a response is hostile text, and this must stay linear in its length.
_MACRO = r"\\(?:text|textbf|mathrm|mathbf)\s{0,3}\{"
_BOX = r"\\(?:boxed|fbox)\s{0,3}\{"
_ASKED = r"(?i:(?:answer|(?:correct|right|best)\s{1,3}(?:option|choice))\s{1,8}is\b|answer\*{0,2}\s?:)"
_BETWEEN = rf"(?:[\s*_$:\"'`\[}}]|\\[(\[]|{_BOX}|{_MACRO}|option\b|choice\b){{0,12}}"
_STATEMENT = re.compile(
    rf"{_ASKED}{_BETWEEN}(?:\(\s?(?P<bracketed>[A-Za-z])\s?\)|\(?(?P<bare>[A-Z])(?![\w'’]))"
    rf"|{_BOX}\s{{0,3}}(?:{_MACRO})?\s{{0,3}}(?:\(\s?(?P<inner>[A-Za-z])\s?\)|\(?(?P<boxed>[A-Z])(?![\w'’]))"
)
# What may stand between two letters that are named at once, and the second of them.
_GLUE = r"(?P<glue>(?:[\s)}*_$\"'`\],;+/&{]|\\[()\[\],;&]|\\text|and\b|or\b|nor\b){0,24})"
_NEXT = re.compile(
    rf"{_GLUE}(?:{_BOX}\s{{0,3}}(?:{_MACRO})?\(?[A-Z]\)?\s?\}}|(?P<bracketed>\([A-Za-z]\))"
    r"|\(?[A-Z](?=[.,;:!?]?(?:[\s)}*_$\"'`\]]|\\[)\]]){0,8}(?:\Z|[\n.,;)}&/]|(?:and|or|are|both)\b)))"
)
_JOINT = re.compile(r"[,;+/&]|and|or")
# Where a bare letter ends: closed, and then the end of a text, a line or a sentence, or words that give a reason.
_CLOSED = r"(?:\s{0,2}(?:[)}\]*_$\"'’`”]|\\[)\]])){0,8}"
_SPECIES = r"coli|elegans|subtilis|cereus|difficile|melanogaster|pylori|sapiens|thaliana|influenzae|albicans|faecalis"
_REASON = r"because|since|as|due|given|according|based|which|while|whereas|and|but|so|for|not|if|when"
_ENDS = re.compile(
    rf"{_CLOSED}(?:\s{{0,3}}(?:\Z|\n)|\s?\.(?!\w|\s?(?:{_SPECIES})\b)|\s?[,;:!?](?!\w)|\s\("
    rf"|\s[-–—]{{1,3}}\s(?![A-Z]\b|\d)|\s{{1,3}}(?:{_REASON})\b)"
)
_BOX_ENDS = re.compile(r"\s{0,3}\.?\s{0,3}\}")


def last_letter(text: str, options: int) -> str | None:
    """The letter of the last statement in `text`, if it is one of the first `options` letters; else None."""
    last, at = None, 0
    while statement := _STATEMENT.search(text, at):
        letter = statement[statement.lastgroup or 0]
        at = statement.end()
        ends = {"bare": _ENDS, "boxed": _BOX_ENDS, "inner": _BOX_ENDS}.get(statement.lastgroup or "")
        others = _end_of_others(text, at)
        if others > at:
            last, at = None, others
        elif ends is None or ends.match(text, at):
            last = letter.upper()
        else:
            at = statement.start() + 1  # no statement, but a box in it may be one
    return last if last is not None and last in LETTERS[:options] else None


def _end_of_others(text: str, at: int) -> int:
    """Where the letters end that are named at once with the one before `at`: at `at` if there are none."""
    while other := _NEXT.match(text, at):
        letter, glue = other["bracketed"], other["glue"]
        if not _JOINT.search(glue) and not (letter and letter[1].isupper() and "\n" not in glue):
            break
        at = other.end()
    return at


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
