"""Per-token signals that need the text of a branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from datpo.core.tree import Branch, Floats
from datpo.search.forks import NO_SENTENCE
from datpo.search.segment import offsets_of, token_groups

Decode = Callable[[Sequence[int]], str]

CLOSING_WORDS = ("answer", "conclusion")


def sentence_numbers(branch: Branch, decode: Decode) -> Floats:
    """The sentence each token of a branch belongs to (T,), counted from 0; an end token belongs to none."""
    spoken = _spoken(branch)
    number_T = np.full(len(branch.tokens), NO_SENTENCE, dtype=float)
    if spoken:
        number_T[: len(spoken)] = token_groups(decode(spoken), offsets_of(decode, spoken))
    return number_T


def step_numbers(branch: Branch, decode: Decode) -> Floats:
    """The step of reasoning each token of a branch belongs to (T,), counted from 0; an end token belongs to none.

    A step ends with a token whose text contains a blank line; in a branch without any, with one that contains a line
    break; without those too, every token is a step (AttnRL's released code). So the separator belongs to the step it
    ends. Texts are spans of the decoded branch: the parts of a character cut between tokens all read as that
    character. A blank line of two tokens, one line break each, ends with the second; line breaks that follow it
    make a blank line of their own once there are two of them.
    """
    pieces = _pieces(branch, decode)
    ends = _blank_line_ends(pieces)
    if not any(ends):
        ends = ["\n" in piece for piece in pieces]
    if not any(ends):
        ends = [True] * len(pieces)
    return _counted(branch, ends)


def paragraph_numbers(branch: Branch, decode: Decode) -> Floats:
    """The paragraph each token of a branch belongs to (T,), counted from 0; an end token belongs to none.

    One ends with a token whose text contains a blank line, as a step does; a branch without any is one paragraph (the
    released DATPO code).
    """
    return _counted(branch, _blank_line_ends(_pieces(branch, decode)))


def closing(branch: Branch, decode: Decode) -> Floats:
    """1 for every token behind the first that says "answer" or "conclusion" in any case, else 0 (T,).

    There a response states its result, and TreeRL does not fork it. As in its code a token is read by itself: a word
    that is cut between tokens is not seen, and a branch knows nothing of its prefix.
    """
    texts = {token: decode([token]).lower() for token in set(branch.tokens.tolist())}
    said_T = [any(word in texts[token] for word in CLOSING_WORDS) for token in branch.tokens.tolist()]
    return (np.cumsum([0, *said_T])[:-1] > 0).astype(float)


def _spoken(branch: Branch) -> list[int]:
    """The tokens of a branch without its end token."""
    spoken: list[int] = branch.tokens[: len(branch.tokens) - (branch.finish == "stop")].tolist()
    return spoken


def _pieces(branch: Branch, decode: Decode) -> list[str]:
    """What each spoken token contributes to the text of a branch."""
    text = decode(_spoken(branch))
    return [text[start:stop] for start, stop in offsets_of(decode, _spoken(branch))]


def _counted(branch: Branch, ends: Sequence[bool]) -> Floats:
    """The number of the part each token stands in (T,), given whether a part ends with each spoken token."""
    number_T = np.full(len(branch.tokens), NO_SENTENCE, dtype=float)
    number_T[: len(ends)] = np.cumsum([0, *ends])[: len(ends)]
    return number_T


def _blank_line_ends(pieces: Sequence[str]) -> list[bool]:
    """Whether a blank line is completed in each piece of a text; no line break counts for two blank lines."""
    ends = []
    open_break = ""  # the line break the text so far ends with, if no blank line holds it yet
    for piece in pieces:
        text = open_break + piece
        ends.append("\n\n" in text)
        open_break = "\n" if text.endswith("\n") and not text.endswith("\n\n") else ""
    return ends
