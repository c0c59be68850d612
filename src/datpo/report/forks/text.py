"""A text with marks beneath its lines: before which words rules fork it.

The text is a model's, so anything may stand in it. One character takes one column, whatever it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from matplotlib.font_manager import FontProperties, findfont, get_font

FONT = "DejaVu Sans Mono"  # comes with matplotlib
ADVANCE = 1233 / 2048  # width of its characters in ems
NAMES = 28  # columns for the names of rules at the left
FEWEST = 56  # columns of text
MARK = 0.72  # height of a row of marks, in rows of text
UNSHOWN = "\ufffd"
BREAK = "↵"
_REORDERED = {"R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "PDF", "PDI", "FSI"}
_PIECE = re.compile(rf"[^\s{BREAK}]+|{BREAK}+")


class Line(NamedTuple):
    """A line of text, and for each rule that forks it the columns before which it does."""

    text: str
    marks: Mapping[str, Sequence[int]]


def shown(text: str) -> str:
    """The text with one visible character for each of its own; line breaks as ↵."""
    return "".join(map(_shown, text))


@cache
def _shown(character: str) -> str:
    if character == "\n":
        return BREAK
    if character in " \t\r":
        return " "
    known = get_font(findfont(FontProperties(family=FONT))).get_char_index(ord(character))
    kind = unicodedata.category(character)
    plain = known and kind[0] not in "MCZ" and unicodedata.bidirectional(character) not in _REORDERED
    return character if plain else UNSHOWN


def lines_of(texts: Sequence[str], forks: Mapping[str, Iterable[int]], columns: int) -> list[Line]:
    """A response in lines of at most so many columns, each with the forks that lie in it.

    Lines end behind line breaks, else between words, else within one that is longer than a line.

    Args:
        texts: what each token says.
        forks: for each rule the numbers of tokens, before which it forks.
        columns: the width.
    """
    text = shown("".join(texts))
    starts = [0, *accumulate(map(len, texts))]
    begins = _begins(text, columns)
    lines = []
    for begin, end in pairwise([*begins, len(text) + 1]):  # a token without text may be forked before at the very end
        within = {
            rule: [starts[at] - begin for at in places if begin <= starts[at] < end] for rule, places in forks.items()
        }
        lines.append(Line(text[begin:end], {rule: marks for rule, marks in within.items() if marks}))
    return lines


def _begins(text: str, columns: int) -> list[int]:
    """Where each line begins."""
    begins, begin = [], 0
    while begin < len(text):
        begins.append(begin)
        room = text[begin : begin + columns + 1]
        broken = re.search(f"{BREAK}+", room)
        if broken and broken.start() < columns:
            begin += min(broken.end(), columns)
        elif len(room) <= columns:
            begin = len(text)
        else:
            begin += room.rfind(" ", 1) + 1 or columns
    return begins or [0]


def rows_of(lines: Sequence[Line]) -> float:
    """How many rows of text the lines and their marks take up."""
    return sum(1 + MARK * len(line.marks) for line in lines)


def draw_text(panel: Any, lines: Sequence[Line], looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the lines one beneath the other, and beneath each a row for every rule that forks it.

    A row has the rule's name at its left, and a mark beneath the left edge of the first character that is not kept.
    """
    columns = max(FEWEST, *(len(line.text) for line in lines))
    panel.set_axis_off()
    panel.set_xlim(-NAMES, columns)
    panel.set_ylim(rows_of(lines), 0)
    drawing = panel.get_figure(root=True)
    drawing.draw_without_rendering()  # how wide the panel comes out
    inches = panel.get_window_extent().width / drawing.dpi
    size = 72 * inches / (columns + NAMES) / ADVANCE
    top = 0.0
    for line in lines:
        # word by word, so that no rounding of widths adds up along a line
        for word in _PIECE.finditer(line.text):
            colour = "0.6" if word[0].startswith(BREAK) else "0"
            panel.text(word.start(), top + 0.5, word[0], color=colour, family=FONT, fontsize=size, va="center")
        rows = {rule: top + 1 + MARK * (place + 0.4) for place, rule in enumerate(line.marks)}
        for at in {at for marks in line.marks.values() for at in marks}:
            lowest = max(rows[rule] for rule, marks in line.marks.items() if at in marks)
            panel.vlines(at, top + 0.1, lowest, color="0.7", linewidth=0.7, zorder=0)
        for rule, marks in line.marks.items():
            look = looks[rule]
            panel.text(-1, rows[rule], rule, color="0.25", fontsize=min(7, 0.85 * size), va="center", ha="right")
            panel.plot(marks, [rows[rule]] * len(marks), ls="none", color=look["color"], marker=look["marker"], ms=4)
        top += 1 + MARK * len(line.marks)
