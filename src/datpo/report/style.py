"""How figures look: one hand for all of them, readable in grey and at the width of a text column."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from datpo.core.files import whole_file
from datpo.report.runs import Run

PANEL = (2.3, 1.75)  # inches
ACROSS = 3  # panels side by side; they fill a page's text width
RULES: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "figure.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "datpo",
    "savefig.dpi": 200,
}
# Dark to light by turns, so that neighbours differ in grey too; told apart by dash and marker as well.
_LOOKS: dict[str, dict[str, Any]] = {
    "base": {"color": "#7f7f7f", "linestyle": ":", "marker": "o"},
    "grpo": {"color": "#0072b2", "linestyle": "--", "marker": "s"},
    "dr_grpo": {"color": "#56b4e9", "linestyle": "-.", "marker": "^"},
    "treerl": {"color": "#009e73", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    "attnrl": {"color": "#e69f00", "linestyle": (0, (3, 1)), "marker": "D"},
    "datpo": {"color": "#b2182b", "linestyle": "-", "marker": "P"},
}
_FURTHER = [
    {"color": color, "linestyle": line, "marker": marker}
    for line, (color, marker) in product(
        ["-", "--", ":"], [("#000000", "x"), ("#cc79a7", "<"), ("#6a3d9a", ">"), ("#8c510a", "*")]
    )
]


def looks(runs: Sequence[Run]) -> dict[Run, dict[str, Any]]:
    """For every run its colour, dash and marker; a method looks the same in all figures and for all models."""
    variants = list(dict.fromkeys((run.method, run.run) for run in runs if not _is_known(run)))
    return {
        run: _LOOKS[run.method] if _is_known(run) else _FURTHER[variants.index((run.method, run.run)) % len(_FURTHER)]
        for run in runs
    }


def _is_known(run: Run) -> bool:
    return run.named_after_method and run.method in _LOOKS


@contextmanager
def figure(out: Path, groups: Sequence[str], each: int, runs: Sequence[Run], note: str) -> Iterator[list[list[Any]]]:
    """Draw small panels, then save them as PNG at `out` and as SVG beside it, each file whole.

    Args:
        out: the PNG.
        groups: titles of the groups of panels, which stand one under the other; a single one goes untitled.
        each: panels of a group.
        runs: the lines, named once above all panels.
        note: what a reader has to know, beneath them.

    Yields:
        Each group's panels.
    """
    across = min(each, ACROSS)
    rows = math.ceil(each / across)
    labels = list(dict.fromkeys(run.label for run in runs))
    width = max(across, 1.5) * PANEL[0]
    entries = max(1, int(width / (0.75 + 0.07 * max(map(len, labels)))))  # of the legend side by side
    titles = 0.3 * len(groups) if len(groups) > 1 else 0
    height = len(groups) * rows * PANEL[1] + titles + 0.4 + 0.18 * math.ceil(len(labels) / entries)
    with plt.style.context(RULES):
        drawing = plt.figure(figsize=(width, height), layout="constrained")
        try:
            yield _panels(drawing, groups, rows, across, each)
            _legend(drawing, runs, entries)
            drawing.supxlabel("\n".join(textwrap.wrap(note, int(17 * width))), fontsize=7, color="0.35")
            drawing.draw_without_rendering()
            drawing.set_layout_engine("none")  # laid out once, for both files
            for path in (Path(out).with_suffix(".png"), Path(out).with_suffix(".svg")):
                with whole_file(path, "wb") as handle:
                    drawing.savefig(handle, format=path.suffix[1:], metadata=_undated(path))
        finally:
            plt.close(drawing)


def outer_labels(panels: Sequence[Any], x: str, y: str = "") -> None:
    """Label the axes of a group of panels once: x where no panel stands beneath, y at the left."""
    for panel in panels[-ACROSS:]:
        panel.set_xlabel(x)
    for panel in panels[::ACROSS]:
        panel.set_ylabel(y)


def _panels(drawing: Figure, groups: Sequence[str], rows: int, across: int, each: int) -> list[list[Any]]:
    parts = drawing.subfigures(len(groups), squeeze=False).ravel().tolist()
    if len(groups) > 1:
        for part, title in zip(parts, groups, strict=True):
            part.suptitle(title, fontweight="bold")
    panels = [part.subplots(rows, across, squeeze=False).ravel().tolist() for part in parts]
    for unused in (panel for group in panels for panel in group[each:]):
        unused.set_axis_off()
    return [group[:each] for group in panels]


def _legend(drawing: Figure, runs: Sequence[Run], entries: int) -> None:
    look = looks(runs)
    lines = {run.label: Line2D([], [], **look[run]) for run in runs}
    drawing.legend(list(lines.values()), list(lines), loc="outside upper center", ncols=entries, handlelength=3.2)


def _undated(path: Path) -> dict[str, Any] | None:
    """No date in the SVG: equal figures are equal files."""
    return {"Date": None} if path.suffix == ".svg" else None
