"""How figures look: one hand for all of them, readable in grey and at the width of a text column."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from datpo.core.files import whole_file
from datpo.evaluate.bootstrap import Interval
from datpo.report.runs import Run

Look = dict[str, Any]  # colour, dash and marker of a line

TEXT_WIDTH = 6.9  # inches
ACROSS = 3  # panels side by side
ALONE = 0.65  # of the text width for a panel that has no neighbour
HEIGHT = 1.75  # inches, of a panel with its title
LINE = 0.18  # inches, of a row of the legend or of names beside a panel
NAME = 34  # letters of a line's name side by side
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
    "text.parse_math": False,  # names are shown as they are, dollars included
    "svg.hashsalt": "datpo",
    "savefig.dpi": 200,
}
# Dark to light by turns, so that neighbours differ in grey too; told apart by dash and marker as well.
_LOOKS: dict[str, Look] = {
    "base": {"color": "#7f7f7f", "linestyle": ":", "marker": "o"},
    "grpo": {"color": "#0072b2", "linestyle": "--", "marker": "s"},
    "dr_grpo": {"color": "#56b4e9", "linestyle": "-.", "marker": "^"},
    "treerl": {"color": "#009e73", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    "attnrl": {"color": "#e69f00", "linestyle": (0, (3, 1)), "marker": "D"},
    "datpo": {"color": "#b2182b", "linestyle": "-", "marker": "P"},
}
_DASHES = ("--", ":", "-.")
_FURTHER = [
    {"color": color, "linestyle": _DASHES[(turn + place) % len(_DASHES)], "marker": marker}
    for turn, (place, (color, marker)) in product(
        range(len(_DASHES)), enumerate([("#000000", "x"), ("#cc79a7", "<"), ("#6a3d9a", ">"), ("#8c510a", "*")])
    )
]


def looks(runs: Sequence[Run]) -> dict[Run, Look]:
    """For every run its colour, dash and marker; a method looks the same in all figures and for all models."""
    variants = list(dict.fromkeys((run.method, run.run) for run in runs if not _is_known(run)))
    return {
        run: _LOOKS[run.method] if _is_known(run) else _FURTHER[variants.index((run.method, run.run)) % len(_FURTHER)]
        for run in runs
    }


def ordered_looks(names: Sequence[str]) -> dict[str, Look]:
    """Looks of lines that have an order, such as group sizes: the further behind, the darker."""
    colours = plt.get_cmap("viridis")(np.linspace(0.72, 0.05, len(names)))
    rest = zip(cycle(["-.", "--", "-", ":"]), cycle("^sovDP"))
    return {
        name: {"color": to_hex(colour), "linestyle": line, "marker": marker}
        for name, colour, (line, marker) in zip(names, colours, rest, strict=False)
    }


def legend_of(runs: Sequence[Run]) -> dict[str, Look]:
    """The legend's entries for runs, those of several models once."""
    look = looks(runs)
    return {run.label: look[run] for run in runs}


def _is_known(run: Run) -> bool:
    return run.named_after_method and run.method in _LOOKS


def titles(models: Sequence[str], of: str = "") -> list[str]:
    """Titles of one group of panels for each model: its name where there are several, and what holds of all."""
    names = models if len(models) > 1 else [""] * len(models)
    return [", ".join(filter(None, (name, of))) for name in names]


@contextmanager
def figure(
    out: Path,
    groups: Sequence[str],
    each: int,
    legend: Mapping[str, Look],
    note: str,
    across: int = ACROSS,
    height: float = HEIGHT,
) -> Iterator[list[list[Any]]]:
    """Draw small panels, then save them as PNG at `out` and as SVG beside it, each file whole.

    Args:
        out: the PNG.
        groups: titles of the groups of panels, which stand one under the other; one without a title is "".
        each: panels of a group.
        legend: the lines, named once above all panels; none where the axes name them.
        note: what a reader has to know, beneath them.
        across: panels side by side, at most; so many fill a page's text width.
        height: of a panel, in inches.

    Yields:
        Each group's panels.
    """
    width = TEXT_WIDTH * max(min(each, across) / across, ALONE)
    across = min(each, across)
    names = {textwrap.fill(label, NAME): look for label, look in legend.items()}
    entries = _entries(list(names), width)
    lines = math.ceil(len(names) / entries) * max((name.count("\n") + 1 for name in names), default=0)
    told = textwrap.wrap(note, int(17 * width))
    around = 0.3 * sum(map(bool, groups)) + LINE * lines + 0.2 + 0.14 * len(told)
    with plt.style.context(RULES):
        size = (width, len(groups) * math.ceil(each / across) * height + around)
        drawing = plt.figure(figsize=size, layout="constrained")
        try:
            yield _panels(drawing, groups, math.ceil(each / across), across, each)
            if names:
                handles = [Line2D([], [], **look) for look in names.values()]
                drawing.legend(handles, list(names), loc="outside upper center", ncols=entries, handlelength=3.2)
            drawing.supxlabel("\n".join(told), fontsize=7, color="0.35")
            drawing.draw_without_rendering()
            drawing.set_layout_engine("none")  # laid out once, for both files
            for path in (Path(out).with_suffix(".png"), Path(out).with_suffix(".svg")):
                with whole_file(path, "wb") as handle:
                    drawing.savefig(handle, format=path.suffix[1:], metadata=_undated(path))
        finally:
            plt.close(drawing)


def outer_labels(panels: Sequence[Any], x: str, y: str = "") -> None:
    """Label the axes of a group of panels once: x where no panel stands beneath, y at the left."""
    across = panels[0].get_subplotspec().get_gridspec().ncols
    for panel in panels[-across:]:
        panel.set_xlabel(x)
    for panel in panels[::across]:
        panel.set_ylabel(y)


def draw_line(panel: Any, name: str, x: Sequence[float], found: Sequence[Interval], look: Look, faint: float) -> None:
    """A line of values with their intervals as a band."""
    values, low, high = np.array(found).T
    panel.fill_between(x, low, high, color=look["color"], alpha=faint, linewidth=0)
    panel.plot(x, values, label=name, **look)


def draw_bars(panel: Any, name: str, x: Sequence[float], found: Sequence[Interval], look: Look) -> None:
    """A line of values with their intervals as bars."""
    values, low, high = np.array(found).T
    panel.errorbar(x, values, _reach(values, low, high), fmt="none", ecolor=look["color"], elinewidth=0.8, capsize=2)
    panel.plot(x, values, label=name, **look)


def draw_dots(panel: Any, names: Sequence[str], found: Sequence[Interval], looks: Sequence[Look]) -> None:
    """A value with its interval for each name, one under the other, the first on top."""
    for row, (name, (value, low, high), look) in enumerate(zip(names, found, looks, strict=True)):
        reach = _reach(*np.array([[value], [low], [high]]))
        panel.errorbar([value], [row], xerr=reach, fmt="none", ecolor=look["color"], elinewidth=1, capsize=2.5)
        panel.plot([value], [row], label=name, color=look["color"], marker=look["marker"], markersize=5)
    name_rows(panel, names)


def name_rows(panel: Any, names: Sequence[str]) -> None:
    """Name the rows of a panel at its left, the first on top; a name may have several lines."""
    panel.set_yticks(
        range(len(names)), ["\n".join(textwrap.fill(line, NAME) for line in name.split("\n")) for name in names]
    )
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)


def from_zero(panel: Any, least: float) -> None:
    """Let an axis of what cannot be negative begin at zero, span at least so much, and end above the highest marker."""
    panel.set_ylim(bottom=0, top=max(least, panel.get_ylim()[1], 1.05 * panel.dataLim.y1))


def _reach(values: Any, low: Any, high: Any) -> Any:
    """How far intervals reach below and above; never below zero, as rounding would have it."""
    return np.maximum([values - low, high - values], 0)


def _entries(names: Sequence[str], width: float) -> int:
    """Of the legend, side by side."""
    longest = max((len(line) for name in names for line in name.split("\n")), default=1)
    return max(1, min(len(names), int(width / (0.75 + 0.07 * longest))))


def _panels(drawing: Figure, groups: Sequence[str], rows: int, across: int, each: int) -> list[list[Any]]:
    parts = drawing.subfigures(len(groups), squeeze=False).ravel().tolist()
    for part, title in zip(parts, groups, strict=True):
        if title:
            part.suptitle(title, fontweight="bold")
    panels = [part.subplots(rows, across, squeeze=False).ravel().tolist() for part in parts]
    for unused in (panel for group in panels for panel in group[each:]):
        unused.set_axis_off()
    return [group[:each] for group in panels]


def _undated(path: Path) -> dict[str, Any] | None:
    """No date in the SVG: equal figures are equal files."""
    return {"Date": None} if path.suffix == ".svg" else None
