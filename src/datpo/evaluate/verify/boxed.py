r"""Where the answer of a response stands: its last complete, non-empty `\boxed{…}` or `\fbox{…}`.

Conventions, in this order:

* A last box that never closes is a truncated answer: the response has none (`\boxed{12` could have become 120).
* A box without braces holds a number or a capital letter: `\boxed 5`.
* An empty box is an echo of the instruction and is passed over.
* Boxes with nothing but a comma, "and" or "or" between them are one answer, a list; the same box twice is one answer.
* Otherwise the last box counts, whatever came before.

Only the response is searched, never the prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# An escaped character is passed over, so `\{` is no brace.
_MARK = re.compile(r"(?P<box>\\\\?(?:boxed|fbox)\s*\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)
_BARE = re.compile(r"\\(?:boxed|fbox) ?(-?\d+(?:[.,/]\d+)*|[A-Z](?![a-zA-Z]))(?=[^\d.,/]|[.,](?!\S))")
_GLUE = re.compile(r"(?:\s|[$,;.{}]|\\[,;:!()\[\]]|\\q?quad|\\text|\band\b|\bor\b)*")
_SEPARATOR = re.compile(r"(?<!\\)[,;]|\band\b|\bor\b")
_LONGEST_GLUE = 40
_BLANK = re.compile(r"(?:\\[,;:!\s]|\\[lc]?dots|\\q?quad|[\s$?.…_{}~])*")


@dataclass(frozen=True)
class _Box:
    start: int
    stop: int
    content: str


def find_answer(response: str) -> str | None:
    """The text in the last box of a response, or None; a list of boxes is joined by commas."""
    response = _BARE.sub(r"\\boxed{\1}", response)
    boxes = _boxes(response)
    if not boxes:
        return None
    answers = {boxes[-1].content: None}  # a set that keeps its order
    for before, after in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        if not _is_list_glue(response[before.stop : after.start]):
            break
        answers[before.content] = None
    return ", ".join(reversed(answers))


def _boxes(response: str) -> list[_Box]:
    """The complete non-empty boxes that lie in no other complete box; none at all if the last never closes."""
    found: list[_Box] = []
    last_opening = -1
    open_braces: list[re.Match[str]] = []
    for mark in _MARK.finditer(response):
        if mark["box"]:
            last_opening = mark.start()
        if mark["box"] or mark["open"]:
            open_braces.append(mark)
        elif mark["close"] and open_braces:
            opening = open_braces.pop()
            if opening["box"]:
                while found and found[-1].start > opening.start():
                    found.pop()
                content = response[opening.end() : mark.start()].strip()
                found.append(_Box(opening.start(), mark.end(), content))
    if any(opening.start() == last_opening for opening in open_braces):
        return []
    return [box for box in found if not _BLANK.fullmatch(box.content)]


def _is_list_glue(between: str) -> bool:
    """Whether two boxes are neighbours in one list: a comma, "and" or "or" between them, and nothing else."""
    if len(between) > _LONGEST_GLUE or not _SEPARATOR.search(between):
        return False
    return _GLUE.fullmatch(between) is not None
