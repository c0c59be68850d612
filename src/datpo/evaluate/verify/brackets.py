"""Where brackets open and close in an answer, LaTeX's among them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_OPEN, _CLOSE = frozenset(("(", "[", "{", r"\{", r"\begin")), frozenset((")", "]", "}", r"\}", r"\end"))
_MARK = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)


def split(text: str, marks: tuple[str, ...]) -> list[str]:
    """The parts of `text` between the marks that stand outside all brackets."""
    if not any(mark in text for mark in marks):
        return [text]
    parts, start = [], 0
    for match in outside_brackets(text):
        if match.group() in marks:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts] if len(parts) > 1 else [text]


def outside_brackets(text: str) -> Iterator[re.Match[str]]:
    """The commands and characters outside all brackets."""
    depth = 0
    for match in _MARK.finditer(text):
        if match.group() in _OPEN:
            depth += 1
        elif match.group() in _CLOSE:
            depth -= 1
        elif depth == 0:
            yield match


def closes_at_end(text: str, width: int) -> bool:
    """Whether the bracket that opens the text closes only at its end: `(1,2)`, but not `(1+x)(2+y)`."""
    depth = 0
    for match in _MARK.finditer(text):
        token = match.group()
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
            if depth == 0:
                return match.end() == len(text)
    return False
