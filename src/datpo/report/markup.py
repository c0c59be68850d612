"""Tables as Markdown and LaTeX text."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def signed(value: float) -> str:
    """A difference with one decimal and its sign; `−0.0` and `+0.0` still say on which side of 0 it lies."""
    return "0.0" if value == 0 else f"{value:+.1f}".replace("-", "−")


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


def markdown_score(score: Score, paper: float | None) -> str:
    """`61.8 [59.0, 64.5] ± 0.4; paper 62.0 (−0.2)`, the value in bold if it is the best."""
    value, low, high = score.interval
    text = f"**{value:.1f}**" if score.best else f"{value:.1f}"
    if not math.isnan(low):
        text += f" [{low:.1f}, {high:.1f}]"
    if score.spread is not None:
        text += f" ± {score.spread:.1f}"
    return text if paper is None else f"{text}; paper {paper:.1f} ({signed(value - paper)})"


def latex_score(score: Score, paper: float | None) -> str:
    """As `markdown_score`, the interval's ends as indices, spread and paper in a second and third line."""
    value, low, high = score.interval
    text = rf"\textbf{{{value:.1f}}}" if score.best else f"{value:.1f}"
    if not math.isnan(low):
        text += rf"$_{{{low:.1f}}}^{{{high:.1f}}}$"
    below = [] if score.spread is None else [rf"$\pm$ {score.spread:.1f}"]
    below += [] if paper is None else [f"{paper:.1f} ({latex(signed(value - paper))})"]
    lines = [text, *(rf"{{\tiny {line}}}" for line in below)]
    return rf"\shortstack[r]{{{NEW_LINE.join(lines)}}}" if below else text


def interval_text(interval: Interval) -> str:
    """`+4.2 [+2.7, +5.9]`."""
    value, low, high = interval
    return signed(value) if math.isnan(low) else f"{signed(value)} [{signed(low)}, {signed(high)}]"
