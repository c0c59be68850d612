"""A sheet: tables under headings and the notes beneath them, written alike as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from datpo.core.files import whole_file
from datpo.evaluate.bootstrap import Interval
from datpo.report.markup import (
    booktabs,
    html_score,
    html_table,
    hypertext,
    interval_text,
    latex,
    latex_score,
    markdown,
    markdown_score,
    pipe_table,
)
from datpo.report.scores import Score

NOTHING = "–"  # in a cell that has no number
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em }
body { color: #111; background: #fff }
h1 { font-size: 1.3em } h2 { font-size: 1.05em; margin-top: 2em }
.wide { overflow-x: auto }
table { border-collapse: collapse; border-top: 2px solid #111; border-bottom: 2px solid #111 }
thead { border-bottom: 1px solid #111 }
th, td { padding: .25em .7em; text-align: right; vertical-align: top; white-space: nowrap }
th { font-weight: 600; white-space: normal; vertical-align: bottom }
th.group { text-align: center } .text { text-align: left }
tbody tr:nth-child(even) { background: #f4f4f4 }
small, li { color: #444 } li { font-size: .9em; margin-bottom: .3em }
"""


class Cell(NamedTuple):
    """A number of a table: ours, the paper's beside it where it has one, and to how many decimals both are shown."""

    score: Score
    paper: float | None = None
    digits: int = 1


class Gap(NamedTuple):
    """A difference of two numbers, and to how many decimals it is shown."""

    interval: Interval
    digits: int = 1


class Language(NamedTuple):
    """How a language escapes text, and how it writes an interval's text and a number."""

    plain: Callable[[str], str]
    interval: Callable[[str], str]
    number: Callable[[Score, float | None, int], str]


PLAIN = Language(str, str, markdown_score)
MARKDOWN = Language(markdown, str, markdown_score)
LATEX = Language(latex, latex, latex_score)
HTML = Language(hypertext, hypertext, html_score)
Content = str | Cell | Gap | None  # of a cell: text, a number, a difference, nothing


@dataclass(frozen=True)
class Part:
    """One table of a sheet.

    Attributes:
        heading: what it shows; empty for the first, which the title names.
        header: for every column (group, name); neighbours of one non-empty group stand under one heading.
        rows: the cells.
        left: how many columns are text.
    """

    heading: str
    header: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Content]]
    left: int = 2

    def written(self, language: Language) -> list[list[str]]:
        """The rows as text of a language."""
        return [[_cell(content, language) for content in row] for row in self.rows]


def _cell(content: Content, language: Language) -> str:
    if isinstance(content, Cell):
        return language.number(*content)
    if isinstance(content, Gap):
        return language.interval(interval_text(*content))
    return language.plain(NOTHING if content is None else content)


def write_sheet(path: Path, title: str, parts: Sequence[Part], notes: Sequence[str]) -> None:
    """Write `path` with the endings `.md`, `.tex` (tabulars in the manner of booktabs) and `.html` (one file for all).

    Args:
        path: without an ending.
        title: plain text, as all that follows.
        parts: the tables.
        notes: a paragraph each.
    """
    written = {
        "md": _markdown(title, parts, notes),
        "tex": _latex(title, parts, notes),
        "html": _html(title, parts, notes),
    }
    for ending, text in written.items():
        write_text(path.with_name(f"{path.name}.{ending}"), text)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as handle:
        handle.write(text)


def _markdown(title: str, parts: Sequence[Part], notes: Sequence[str]) -> str:
    blocks = [f"# {markdown(title)}"]
    for part in parts:
        header = [markdown(f"{group} {name}".strip()) for group, name in part.header]
        blocks += [f"## {markdown(part.heading)}"] if part.heading else []
        blocks.append(pipe_table(header, part.written(MARKDOWN), part.left))
    return "\n\n".join([*blocks, "## Notes", "\n".join(f"- {markdown(note)}" for note in notes)]) + "\n"


def _latex(title: str, parts: Sequence[Part], notes: Sequence[str]) -> str:
    blocks = [f"% {latex(_one_line(title))}\n% needs \\usepackage{{booktabs}}"]
    for part in parts:
        header = [(latex(group), latex(name)) for group, name in part.header]
        heading = f"% {latex(_one_line(part.heading))}\n" if part.heading else ""
        blocks.append(heading + booktabs(header, part.written(LATEX), part.left))
    return "\n\n".join([*blocks, *(latex(note) for note in notes)]) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _html(title: str, parts: Sequence[Part], notes: Sequence[str]) -> str:
    blocks = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>',
        f"<title>{hypertext(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{hypertext(title)}</h1>",
    ]
    for part in parts:
        header = [(hypertext(group), hypertext(name)) for group, name in part.header]
        blocks += [f"<h2>{hypertext(part.heading)}</h2>"] if part.heading else []
        blocks.append(f'<div class="wide">\n{html_table(header, part.written(HTML), part.left)}\n</div>')
    told = "\n".join(f"<li>{hypertext(note)}</li>" for note in notes)
    return "\n".join([*blocks, f"<h2>Notes</h2>\n<ul>\n{told}\n</ul>\n</body>\n</html>"]) + "\n"
