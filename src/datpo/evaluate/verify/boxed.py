r"""Where the answer of a response stands: its last complete, non-empty `\boxed{…}` or `\fbox{…}`.

Conventions, in this order:

* A last box that never closes is a truncated answer: the response has none (`\boxed{12` could have become 120).
* A box without braces holds a number or a capital letter: `\boxed 5`. A number that the text ends with may be cut off
  like a box that never closes, and no answer either; a letter is whole.
* An empty box is an echo of the instruction and is passed over.
* Boxes with nothing but a comma, "and" or "or" between them are one answer, a list; the same box twice is one answer.
* Otherwise the last box counts, whatever came before.

Only the response is searched, never the prompt, and only its last `LONGEST_RESPONSE` characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# An escaped character is passed over, so `\{` is no brace.
_MARK = re.compile(r"(?P<box>\\\\?(?:boxed|fbox)\s*\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)
_BARE = re.compile(
    r"\\(?:boxed|fbox) ?(-?\d+(?:[.,/]\d+)*(?=[^\d.,/]|[.,](?!\S))|[A-Z](?![a-zA-Z])(?=[^\d.,/]|[.,](?!\S)|\Z))"
)
_BARE_AND_CUT_OFF = re.compile(r"\\(?:boxed|fbox) ?-?(?:\d[\d.,/]*)?\Z")
_GLUE = re.compile(r"(?:\s|[$,;.{}]|\\[,;:!()\[\]]|\\q?quad|\\text|\band\b|\bor\b)*")
_SEPARATOR = re.compile(r"(?<!\\)[,;]|\band\b|\bor\b")
_LONGEST_GLUE = 40
LONGEST_RESPONSE = 200_000  # characters, far over any model's; a response is hostile text and may be megabytes
_BLANK = re.compile(r"(?:\\[,;:!\s]|\\[lc]?dots|\\q?quad|[\s$?.…_{}~])*")


@dataclass(frozen=True)
class _Box:
    start: int
    stop: int
    content: str


def find_answer(response: str) -> str | None:
    """The text in the last box of a response, or None; a list of boxes is joined by commas."""
    response = _BARE.sub(r"\\boxed{\1}", response[-LONGEST_RESPONSE:])
    boxes = [] if _BARE_AND_CUT_OFF.search(response) else _boxes(response)
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
    found: list[tuple[int, int, int]] = []  # where a box, its content and its closing brace begin
    last_opening = -1
    opened: list[tuple[int, int] | None] = []  # where a box and its content begin; None for another brace
    for mark in _MARK.finditer(response):
        if mark.lastgroup == "box":
            last_opening = mark.start()
            opened.append(mark.span())
        elif mark.lastgroup == "open":
            opened.append(None)
        elif mark.lastgroup == "close" and opened and (box := opened.pop()):
            while found and found[-1][0] > box[0]:
                found.pop()
            found.append((*box, mark.start()))
    if any(box and box[0] == last_opening for box in opened):
        return []
    boxes = [_Box(start, close + 1, response[content:close].strip()) for start, content, close in found]
    return [box for box in boxes if not _BLANK.fullmatch(box.content)]


def _is_list_glue(between: str) -> bool:
    """Whether two boxes are neighbours in one list: a comma, "and" or "or" between them, and nothing else."""
    if len(between) > _LONGEST_GLUE or not _SEPARATOR.search(between):
        return False
    return _GLUE.fullmatch(between) is not None
