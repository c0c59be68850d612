"""Tables as Markdown, LaTeX and HTML text."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from tabulate import tabulate

from datpo.evaluate.bootstrap import Interval
from datpo.report.scores import Score

NEW_LINE = r" \\ "
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "−": r"$-$",
        "–": "--",
    }
)
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_|[]<>#~$"})


def latex(text: str) -> str:
    """Text with every character that LaTeX would read as a command escaped."""
    return text.translate(_LATEX)


def markdown(text: str) -> str:
    """Text on one line, with every character that Markdown would read as formatting escaped."""
    return " ".join(text.splitlines()).translate(_MARKDOWN)


def hypertext(text: str) -> str:
    """Text with every character that a browser would read as markup escaped."""
    return html.escape(text)


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; `−0.0` and `+0.0` still say on which side of 0 it lies."""
    return f"{0:.{digits}f}" if value == 0 else f"{value:+,.{digits}f}".replace("-", "−")


def pipe_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A Markdown table, one line a row; the first `left` columns are aligned left, the numbers right."""
    align = ["left"] * left + ["right"] * (len(header) - left)
    table: str = tabulate(rows, list(header), tablefmt="pipe", colalign=align, disable_numparse=True)
    return table


def booktabs(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], left: int) -> str:
    """A LaTeX tabular in the manner of booktabs.

    Args:
        header: for every column (group, name); neighbours of one non-empty group stand under one heading.
        rows: cells, already LaTeX; a rule is drawn where the first cell changes, which is then not repeated.
        left: how many columns are aligned left.
    """
    groups = [(name, len(list(columns))) for name, columns in groupby(header, key=lambda column: column[0])]
    spans, rules, at = [], [], 1
    for name, width in groups:
        spans.append(rf"\multicolumn{{{width}}}{{c}}{{{name}}}" if name else " &" * (width - 1))
        if name:
            rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    lines = [rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(header) - left)}}}", r"\toprule"]
    if rules:
        lines += [" & ".join(spans) + r" \\", " ".join(rules)]
    lines += [" & ".join(name for _, name in header) + r" \\", r"\midrule"]
    previous = None
    for first, *others in rows:
        if previous not in (None, first):
            lines.append(r"\midrule")
        lines.append(" & ".join(["" if first == previous else first, *others]) + r" \\")
        previous = first
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def html_table(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], left: int) -> str:
    """An HTML table; arguments as for `booktabs`, cells already HTML."""
    groups = [(name, len(list(columns))) for name, columns in groupby(header, key=lambda column: column[0])]
    spans = "".join(
        f'<th colspan="{width}" class="group">{name}</th>' if name else "<th></th>" * width for name, width in groups
    )
    names = "".join(f"<th{_side(place, left)}>{name}</th>" for place, (_, name) in enumerate(header))
    lines = ["<table>", "<thead>"]
    if any(name for name, _ in groups):
        lines.append(f"<tr>{spans}</tr>")
    lines += [f"<tr>{names}</tr>", "</thead>", "<tbody>"]
    for row in rows:
        lines.append(
            "<tr>" + "".join(f"<td{_side(place, left)}>{cell}</td>" for place, cell in enumerate(row)) + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table>"])


def _side(place: int, left: int) -> str:
    return ' class="text"' if place < left else ""


def markdown_score(score: Score, paper: float | None, digits: int = 1) -> str:
    """`61.8 [59.0, 64.5] ± 0.4; paper 62.0 (−0.2)`, the best value in bold, the second best underlined."""
    text = _marked(score, digits, {"best": "**{}**", "second": "<ins>{}</ins>"}) + _ends(score, digits)
    if score.spread is not None:
        text += f" ± {score.spread:,.{digits}f}"
    return text if paper is None else f"{text}; paper {_beside(score, paper, digits)}"


def latex_score(score: Score, paper: float | None, digits: int = 1) -> str:
    """As `markdown_score`, the interval's ends as indices, spread and paper in a second and third line."""
    _, low, high = score.interval
    text = _marked(score, digits, {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"})
    if not math.isnan(low):
        text += rf"$_{{{low:.{digits}f}}}^{{{high:.{digits}f}}}$"
    below = [] if score.spread is None else [rf"$\pm$ {score.spread:,.{digits}f}"]
    below += [] if paper is None else [latex(_beside(score, paper, digits))]
    lines = [text, *(rf"{{\tiny {line}}}" for line in below)]
    return rf"\shortstack[r]{{{NEW_LINE.join(lines)}}}" if below else text


def html_score(score: Score, paper: float | None, digits: int = 1) -> str:
    """As `markdown_score`, all but the value small and in lines of their own."""
    below = [_ends(score, digits).strip()]
    below += [] if score.spread is None else [f"± {score.spread:,.{digits}f}"]
    below += [] if paper is None else [f"paper {_beside(score, paper, digits)}"]
    text = _marked(score, digits, {"best": "<b>{}</b>", "second": "<u>{}</u>"})
    return text + "".join(f"<br/><small>{line}</small>" for line in below if line)


def _marked(score: Score, digits: int, marks: Mapping[str, str]) -> str:
    return marks.get(score.mark, "{}").format(f"{score.interval.value:,.{digits}f}")


def _ends(score: Score, digits: int) -> str:
    _, low, high = score.interval
    return "" if math.isnan(low) else f" [{low:.{digits}f}, {high:.{digits}f}]"


def _beside(score: Score, paper: float, digits: int) -> str:
    return f"{paper:,.{digits}f} ({signed(score.interval.value - paper, digits)})"


def interval_text(interval: Interval, digits: int = 1) -> str:
    """`+4.2 [+2.7, +5.9]`."""
    value, low, high = (signed(number, digits) for number in interval)
    return value if math.isnan(interval.low) else f"{value} [{low}, {high}]"
