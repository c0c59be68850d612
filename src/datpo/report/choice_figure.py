"""Figure 10: what the sets of multiple-choice questions are made of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import located_rows
from datpo.core.kinds import NAME, TEXT, Kinds, check_kinds
from datpo.report.style import LINE, figure, name_rows, outer_labels

QUESTION: Kinds = {"id": NAME, "category": TEXT}
NONE = "(no category)"


def figure10(questions: list[Path], out: Path) -> None:
    """Show how many questions of each category a set has, the most frequent first; a panel for each set.

    Args:
        questions: files `SET.jsonl` that `datpo.data.choices.fetch_questions` wrote.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: no files, no questions in one, or a row that is none.
    """
    if not questions:
        raise InputError("no files of multiple-choice questions given: the figure shows what they are made of")
    sets = {path.stem: categories(path) for path in questions}
    most = max(map(len, sets.values()))
    note = "Questions by category, as their source names it."
    with figure(out, [""], len(sets), {}, note, across=2, height=0.6 + LINE * most) as (panels,):
        for panel, (name, counts) in zip(panels, sets.items(), strict=True):
            bars = panel.barh(range(len(counts)), list(counts.values()), height=0.7, color="0.45")
            panel.bar_label(bars, fontsize=7, padding=2)
            name_rows(panel, list(counts))
            panel.set_ylim(most - 0.5, -0.5)  # bars of the same height in all panels
            panel.margins(x=0.12)
            panel.set_title(f"{name}: {sum(counts.values())} questions")
        outer_labels(panels, "questions")


def categories(path: Path) -> dict[str, int]:
    """How many questions of each category a file has, the most frequent first, equal ones by name."""
    counts: Counter[str] = Counter()
    for place, row in located_rows(path):
        check_kinds(place, row, QUESTION)
        counts[row["category"] or NONE] += 1
    if not counts:
        raise InputError(f"{path}: no questions")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
