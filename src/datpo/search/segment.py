"""Sentences of a response, and which sentence each of its tokens belongs to.

The paper cuts responses with PySBD (rule-based, Sadvilkar & Neumann 2020). Here PySBD works under a wrapper:
it only proposes where sentences start. It loses and moves characters on some texts, so its strings are looked
up again in the text; it cuts formulas, so they are covered first (`masks`); it is slower than linear, so it
sees a line of at most `LONGEST` characters at a time. Nothing here needs a signal or a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray
from pysbd.languages import Language
from pysbd.processor import Processor

from datpo.search.masks import masked

Span = tuple[int, int]

LONGEST = 500  # characters PySBD gets at once
WINDOW = 24  # tokens

REPLACEMENT = "\ufffd"

_ENGLISH = Language.get_language_code("en")
_LINE = re.compile(r"[^\n\r]*[\n\r]+|[^\n\r]+")
_CLOSING = r"[\"'”’»)\]}*`]*"
_SPACE_BEFORE_NEXT = re.compile(_CLOSING + r"\s+|[”’」』）》]+\s*")
_MAY_END = re.compile(rf"[.!?]{_CLOSING}\s+\S|[。．！？]")
_PLAIN_END = re.compile(rf"[.!?]{_CLOSING}\s+(?=[\"'“‘«(\[*]*[A-Z_])|[。．！？]+[”’」）]?\s*")
# Where PySBD sees no end: behind a bracket or a LaTeX quotation, and between two quotations.
_CLOSED_END = re.compile(
    r"(?<![ (\[.]al)(?<!etc)(?<![(\[]\w)(?<=\w)[.!?](?:[)\]]{1,2}|'')\s+(?=[(\[]?[A-Z_])"
    r"|[.!?]\"\s+(?=\"\w)|[.!?]”\s+(?=“)"
)
_ENDED = re.compile(r"[.!?。．！？][\"'”’»」』）》)\]}*`]*\s*\Z")
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s*")


def sentences(text: str) -> list[Span]:
    """The sentences of a text, as half-open character spans that tile it.

    White space between two sentences belongs to the first of them. A line break ends a sentence unless it
    stands in a formula, an environment or a code block, none of which is ever cut. An empty text has no
    sentence.
    """
    if not text:
        return []
    cover = masked(text)
    starts = [0]
    for line in _LINE.finditer(cover):
        # The indent is the text's, where it is white space: in the cover it belongs to the label behind it.
        first = line.end() - len(text[line.start() : line.end()].lstrip())
        content = cover[first : line.end()].rstrip()
        for start in (0, *_starts(content)) if content else ():
            starts.append(first + start)
    # What holds no word (closing marks, a rule of dashes) does not make a sentence of its own.
    kept = [0]
    for start, stop in pairwise([*dict.fromkeys(starts), len(text)]):
        if _WORD.search(cover, start, stop) and _WORD.search(cover, kept[-1], start):
            kept.append(start)
    return list(pairwise([*kept, len(text)]))


def token_groups(text: str, offsets: Sequence[Span]) -> NDArray[np.int64]:
    """The sentence each generated token belongs to: that of its first character that is not white space.

    A token usually carries the space before its word, so by its first character it would often belong to the
    sentence before. A token of white space alone belongs to the sentence of that white space.

    Args:
        text: the decoded response.
        offsets: half-open character span of each token in it, from `offsets_of`.

    Returns:
        Indices into `sentences(text)` (T,), never falling; an index is missing if no token begins in its
        sentence.

    Raises:
        ValueError: offsets that fall or lie outside the text.
    """
    starts = [start for start, _ in sentences(text)] or [0]
    first_T = np.zeros(len(offsets), dtype=np.int64)
    previous = 0
    for index, (start, stop) in enumerate(offsets):
        if not previous <= start <= stop <= len(text):
            raise ValueError(f"token {index} has span {(start, stop)} after {previous} in a text of {len(text)}")
        previous = start
        piece = text[start:stop]
        lead = len(piece) - len(piece.lstrip())
        first_T[index] = start + (lead if lead < len(piece) else 0)
    group_T = np.searchsorted(np.array(starts), first_T, side="right") - 1
    return np.asarray(np.maximum.accumulate(group_T), dtype=np.int64)


def offsets_of(decode: Callable[[Sequence[int]], str], tokens: Sequence[int]) -> list[Span]:
    """Where in the decoded response the characters of each generated token stand.

    The generated ids are decoded up to each token in turn; the response is never tokenised again, since that
    may give other tokens than the sampled ones. A character cut between tokens (UTF-8 bytes) decodes to a
    replacement character until it is complete: all tokens that hold a part of it get its span. A token
    without characters (an end token that is skipped) gets an empty span.

    The time is linear: each token is decoded alone where that adds up to the response, and otherwise behind a
    window of at most 2 `WINDOW` earlier tokens.

    Args:
        decode: token ids to text, such as a tokenizer's `decode`.
        tokens: the generated ids.
    """
    text = decode(tokens)
    alone: dict[int, str] = {}
    spans: list[Span] = []
    first, base = 0, 0  # the window's first token and the position of its text
    done = 0  # characters complete so far
    for begin in range(0, len(tokens), WINDOW):
        chunk = tokens[begin : begin + WINDOW]
        alone |= {token: decode([token]) for token in chunk if token not in alone}
        pieces = [alone[token] for token in chunk]
        whole = not spans or spans[-1][1] == done
        if whole and REPLACEMENT not in (joined := "".join(pieces)) and text.startswith(joined, done):
            borders = [done, *(done + length for length in accumulate(map(len, pieces)))]
            spans += pairwise(borders)
            done = borders[-1]
        else:
            for stop in range(begin + 1, begin + len(chunk) + 1):
                start, piece = done, decode(tokens[first:stop])
                agreed = _agreement(piece, text, base)
                done = max(done, base + agreed)
                cut = agreed < len(piece) and done < len(text)
                spans.append((start, done + cut))
        if spans[-1][1] == done:
            first, base = _moved(decode, tokens, text, first, base, spans)
    return spans


def _agreement(piece: str, text: str, base: int) -> int:
    """How many characters of `piece` stand in `text` from `base` on."""
    if text.startswith(piece, base):
        return len(piece)
    low, high = 0, min(len(piece), len(text) - base)
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(piece[:middle], base):
            low = middle
        else:
            high = middle - 1
    return low


def _moved(
    decode: Callable[[Sequence[int]], str],
    tokens: Sequence[int],
    text: str,
    first: int,
    base: int,
    spans: Sequence[Span],
) -> tuple[int, int]:
    """A window of the last `WINDOW` tokens or a few more; the old one if no character begins there."""
    later = len(spans) - WINDOW
    while later > first and spans[later - 1][1] > spans[later][0]:  # begins within a character
        later -= 1
    if later <= first:
        return first, base
    start = spans[later][0]
    piece = decode(tokens[later : len(spans)])
    # Some tokenizers drop the space at the beginning of what they decode, hence the second try.
    space = _SPACE.match(text, start)
    for at in (start, space.end() if space else start):
        if text.startswith(piece, at) and at + len(piece) == spans[-1][1]:
            return later, at
    return first, base


@lru_cache(maxsize=16_384)
def _starts(line: str) -> tuple[int, ...]:
    """Where the second and later sentences of a covered line start; rollouts repeat lines, so it remembers them."""
    if not _MAY_END.search(line):
        return ()
    starts: list[int] = []
    for begin, end in pairwise(_chunks(line)):
        starts += [begin] if begin else []
        starts += [begin + start for start in _chunk_starts(line[begin:end])]
    return tuple(starts)


def _chunks(line: str) -> list[int]:
    """Borders of pieces of at most `LONGEST` characters, where that is possible without cutting a sentence."""
    borders = [0]
    last = 0
    for match in _PLAIN_END.finditer(line) if len(line) > LONGEST else ():
        if match.end() - borders[-1] > LONGEST and last > borders[-1]:
            borders.append(last)
        last = match.end()
    if len(line) - borders[-1] > LONGEST and borders[-1] < last < len(line):
        borders.append(last)
    return [*borders, len(line)]


def _chunk_starts(chunk: str) -> list[int]:
    if len(chunk) > 2 * LONGEST:
        return [match.end() for match in _PLAIN_END.finditer(chunk) if match.end() < len(chunk)]
    starts: list[int] = []
    at = 0
    for sentence in _pysbd(chunk):
        found = chunk.find(sentence, at)
        if found < 0:  # PySBD changed the sentence: it stays with the one before
            continue
        start = found
        if found and not chunk[found - 1].isspace() and (space := _SPACE_BEFORE_NEXT.match(chunk, found)):
            start = space.end()  # closing marks go with the sentence they close
        separated = start and (chunk[start - 1].isspace() or chunk[start - 1] in "。．！？”’」』）》")
        if separated and start < len(chunk) and _ENDED.search(chunk, max(0, start - 20), start):
            starts.append(start)
        at = found + len(sentence)
    return sorted({*starts, *(match.end() for match in _CLOSED_END.finditer(chunk))})


def _pysbd(chunk: str) -> list[str]:
    try:
        return [sentence for sentence in Processor(chunk, _ENGLISH).process() if sentence]
    except (IndexError, KeyError, TypeError, ValueError, re.error):
        # PySBD builds patterns from the text it reads; a chunk it fails on stays one sentence.
        return []
