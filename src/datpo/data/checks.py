r"""What is kept of a source, and what is set aside and why.

A key that the checker cannot read, or does not find equal to itself, is a problem that no model can solve: it teaches
nothing and only lowers a score. Such rows and repeated problems are left out of a set, each with its reason, and never
in silence. What two sets share is another matter: it is refused, since nobody but the user knows which of them is to
give way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.problem import Problem
from datpo.data.files import some
from datpo.evaluate.verify import grade_all
from datpo.evaluate.verify.boxed import find_answer
from datpo.evaluate.verify.compare import DEEPEST, same
from datpo.evaluate.verify.keys import is_no_key, is_readable
from datpo.evaluate.verify.normalise import LONGEST, normalise, plain_characters
from datpo.evaluate.verify.shapes import read, readings

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "dropped": "the configuration's `drop` names it",
        "empty_text": "there is no question",
        "empty_key": "there is no key",
        "box_in_text": "the question holds a box, which a model that repeats it would answer with",
        "unreadable_key": "the checker cannot read the key, so no answer could be told right from wrong",
        "key_not_right": "the checker calls the key itself wrong",
        "repeated": "the id or the text is that of a problem before it, and so is the key",
        "repeated_other_key": "the id or the text is that of another problem with another key; all are set aside",
    }
)
"""Why a row is set aside, in the order in which reasons are looked for."""


_COPIED = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"\\(?:left|right)(?![a-zA-Z])|\\[dt](?=frac)|[\u00ad\u200c\u200d]", r""),
        (r"\^\s*\{?\s*\\prime(?![a-zA-Z])\s*\}?", "'"),
        (r"(\\frac)\s*(\d)\s*(\d)", r"\1{\2}{\3}"),
        (r"\}\s*(?=\{|\d)", "|"),  # \frac{1}{23} is not \frac{12}{3}
        (r"(?<=\d)\s*([,:])\s*(?=\d)", r"\1"),
        (r"(?<=\d)\s+(?=\d)", "_"),
        # The capital of a word, and of the article A where a sentence begins; not \Delta, AB or A.
        (r"(?:(?<![\\\w])[^\W\d_](?=[^\W\d_A-Z])|(?:^|(?<=[.!?]\s))A(?=\s+[a-z]{2}))", lambda match: match[0].lower()),
        # What is no prime and no factorial is an apostrophe, a quotation mark, an exclamation.
        (r"((?:(?<![a-zA-Z])[a-zA-Z]|[)}\]])'+(?![a-zA-Z]))|'", lambda match: match[1] or ""),
        (r"((?:(?<![a-zA-Z])[a-zA-Z]|[\d)}\]])!+)|!", lambda match: match[1] or ""),
        (r"(?<!\d)[.,:]|[.,:](?!\d)|[\s;?$~{}\\\"`]", ""),
    )
)


@dataclass(frozen=True)
class Aside:
    """A row that is set aside.

    Attributes:
        place: its number in the source, from 1; ids may repeat.
        reason: one of `REASONS`.
        clash: the problem it repeats.
    """

    place: int
    problem: Problem
    reason: str
    clash: Problem | None = None

    def row(self) -> Row:
        """What is written of it."""
        clash = {"clashes_with": self.clash.id, "other_key": self.clash.answer} if self.clash else {}
        return {
            "id": self.problem.id,
            "reason": self.reason,
            "key": self.problem.answer,
            **clash,
            "row": self.place,
            "source": self.problem.source,
        }


def sort_out(
    problems: Sequence[Problem], name: str, domain: str, drop: Iterable[str] = ()
) -> tuple[list[Problem], list[Aside]]:
    """The problems that are kept, and the rows that are set aside, both in their order.

    Of problems that are one, by id or by text, the first is kept, or none if their keys differ, in any order of the
    rows. Whether keys differ is told by the first of them: being one answer is taken for an equivalence.

    Raises:
        InputError: an id in `drop` is not there, or nothing is left.
    """
    drop = {str(each) for each in drop}
    if missing := drop - {problem.id for problem in problems}:
        raise InputError(f"data set {name!r}: ids under `drop` that are not there: {some(missing)}")
    aside: dict[int, Aside] = {}

    def put(index: int, reason: str, clash: int | None = None) -> None:
        aside[index] = Aside(index + 1, problems[index], reason, None if clash is None else problems[clash])

    for index, reason in enumerate(_faults(problems, domain, drop)):
        if reason:
            put(index, reason)
    ones: dict[str, list[int]] = {}  # what makes problems one -> these
    for index in [index for index in range(len(problems)) if index not in aside]:
        for key in _keys(problems[index]):
            ones.setdefault(key, []).append(index)
    for first, *others in ones.values():
        differ = [index for index in others if not _keys_agree(domain, problems[first], problems[index])]
        for index in (first, *others) if differ else ():
            put(index, "repeated_other_key", first if index in differ else differ[0])
    seen: dict[str, int] = {}
    for index in [index for index in range(len(problems)) if index not in aside]:
        keys = _keys(problems[index])
        before = [seen[key] for key in keys if key in seen]
        if before:
            put(index, "repeated", min(before))
        else:
            seen.update(dict.fromkeys(keys, index))
    if len(aside) == len(problems):
        raise InputError(f"data set {name!r}: nothing is left of its {len(problems)} rows: {tally(aside.values())}")
    kept = [problem for index, problem in enumerate(problems) if index not in aside]
    return kept, [aside[index] for index in sorted(aside)]


def tally(aside: Iterable[Aside]) -> str:
    """How many rows are set aside for each reason, in words."""
    counts = Counter(each.reason for each in aside)
    return ", ".join(f"{counts[reason]} {reason}" for reason in REASONS if counts[reason]) or "none"


def check_apart(problems: Iterable[Problem], name: str, train: Iterable[Problem]) -> None:
    """Refuse a set that shares a problem with the training set, by id or by text.

    Raises:
        InputError: the ids of the shared problems are listed.
    """
    taken = {key for problem in train for key in _keys(problem)}
    shared = [problem.id for problem in problems if taken & set(_keys(problem))]
    if shared:
        raise InputError(
            f"data set {name!r} shares problems with the training set: {some(shared)}; set them aside with "
            "`drop` in one of the two (or, if only the ids are equal, leave `id` out of its `fields`)"
        )


def normalised(text: str) -> str:
    r"""A problem's text without what two copies of it may differ in.

    That is spacing, punctuation, a word's first capital, dollar signs, braces and backslashes, the size variants of a
    macro (`\dfrac`, `\left`), and characters that look alike (−, combined accents, what has no width). What means
    something in mathematics stays, with dollar signs or without: the case of a letter by itself, `f'` and `n!`, marks
    and spaces between digits, the border between two arguments.
    """
    text = plain_characters(" ".join(text.split()))
    for pattern, spelling in _COPIED:
        text = pattern.sub(spelling, text)
    return text


def _keys(problem: Problem) -> tuple[str, str]:
    """What two copies of a problem have in common, the one or the other."""
    return f"id {problem.id}", f"text {normalised(problem.problem)}"


def _faults(problems: Sequence[Problem], domain: str, drop: set[str]) -> list[str | None]:
    """What is wrong with each problem by itself; None where nothing is."""
    verdicts = [each.verdict for each in grade_all(domain, [(problem, _boxed(problem)) for problem in problems])]
    return [_fault(problem, verdict, domain, drop) for problem, verdict in zip(problems, verdicts, strict=True)]


def _fault(problem: Problem, verdict: str, domain: str, drop: set[str]) -> str | None:
    if problem.id in drop:
        return "dropped"
    if not problem.problem:
        return "empty_text"
    if not problem.answer:
        return "empty_key"
    if find_answer(f"{problem.problem}\n") is not None:  # nothing is cut off at its end
        return "box_in_text"
    if verdict in ("bad_key", "timeout"):
        return "unreadable_key"
    if verdict != "right":
        return "key_not_right"
    return _mathematical_fault(problem.answer) if domain == "math" else None


@lru_cache(maxsize=100_000)
def _mathematical_fault(key: str) -> str | None:
    """What is wrong with a key that no answer written otherwise could ever equal.

    An answer written exactly like its key is right without any reading, so the verdict on the key's own text says
    nothing of the others; here the key is read, and compared with itself as with a stranger.
    """
    if len(key) > LONGEST or is_no_key(key):
        return "unreadable_key"
    text = normalise(key)
    nested = max(accumulate((each in "([{") - (each in ")]}") for each in text))
    try:
        if nested > DEEPEST or not is_readable(read(text)):
            return "unreadable_key"
        return None if any(same(a, b) for a in readings(text) for b in readings(text)) else "key_not_right"
    except (RecursionError, MemoryError):
        return "unreadable_key"


def _keys_agree(domain: str, one: Problem, other: Problem) -> bool:
    """Whether the checker takes the key of one of two problems for an answer to the other."""
    verdicts = grade_all(domain, [(one, _boxed(other)), (other, _boxed(one))])
    return any(each.verdict == "right" for each in verdicts)


def _boxed(problem: Problem) -> str:
    """The response that gives a problem's key."""
    return f"\\boxed{{{problem.answer}}}"
