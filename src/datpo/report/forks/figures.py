"""Figures about where trees fork: what a token buys (Figure 2), and where rules fork one rollout (Figures 8 and 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator

from datpo.core.errors import InputError
from datpo.report.forks.explorations import Exploration, Structure, load_exploration
from datpo.report.forks.showcase import Showcase, load_showcase, looks_of
from datpo.report.forks.text import draw_text, lines_of, rows_of, shown
from datpo.report.style import LINE, Look, draw_line, figure, name_rows

Beside = tuple[tuple[float, float], str]  # a point: offset and alignment of its label
BESIDE: Sequence[Beside] = (((0, 4), "center"), ((0, -10), "center"), ((5, -2.5), "left"))  # of lines by turns
FAINT = 0.12  # of the bands
FEW = 64  # tokens that can be named beneath an axis
TEXT_COLUMNS = 96  # of Figure 9, at most


def figure2(config: Path, rollouts: Path, out: Path) -> None:
    """Show what generated tokens buy: the share of problems with a right leaf, in parallel samples and in trees.

    One line for parallel sampling, and one for each way to fork trees; along a line the number of base rollouts grows.

    Args:
        config: settings of the exploration.
        rollouts: its `rollouts.csv`.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: settings or rollouts that cannot be read.
    """
    found = load_exploration(config, rollouts)
    lines = lines_of_structures(found.structures)
    note = (
        f"{found.identity['model']} on {found.problems} problems of {found.benchmark}, {found.repeats} repeats each. "
        "Numbers at points: base rollouts. Bands: 95 % intervals by bootstrap over problems."
    )
    looks = looks_of(list(lines))
    with figure(out, [""], 1, looks, note, across=1, height=2.8) as [[panel]]:
        for place, (name, structures) in enumerate(lines.items()):
            _draw_tokens(panel, found, name, structures, looks[name], BESIDE[place % len(BESIDE)])
        panel.set_xlabel("generated tokens a problem")
        panel.set_ylabel("PassRate (%)")


def lines_of_structures(structures: Sequence[Structure]) -> dict[str, list[Structure]]:
    """Structures that differ in the number of base rollouts alone, by the name of their line.

    A name that two lines would share has their forks and branches behind it.
    """
    groups: dict[tuple[str, str], list[Structure]] = {}
    for structure in structures:
        rest = {key: value for key, value in structure.numbers.items() if key != "roots"}
        groups.setdefault((structure.label, f"{structure.method} {sorted(rest.items())}"), []).append(structure)
    times = Counter(label for label, _ in groups)
    names = [_line_name(mine[0], times[label] > 1) for (label, _), mine in groups.items()]
    if len(set(names)) < len(names):
        raise InputError(
            f"structures of one name, {max(names, key=names.count)!r}, differ in more than a figure can show"
        )
    return dict(zip(names, groups.values(), strict=True))


def _line_name(structure: Structure, with_numbers: bool) -> str:
    if not with_numbers:
        return structure.label
    skipped = ("roots", "alpha", "clip", "fork_rule")
    told = ", ".join(f"{key} {value}" for key, value in structure.numbers.items() if key not in skipped)
    return f"{structure.label} ({told})"


def _draw_tokens(
    panel: Any, found: Exploration, name: str, structures: Sequence[Structure], look: Look, beside: Beside
) -> None:
    points = []
    for structure in structures:
        solved = {problem: 100 * value for problem, value in found.values(structure, "solved").items()}
        tokens = found.interval(found.values(structure, "tokens"))
        rate = found.interval(solved)
        if tokens and rate:  # which are measured of every tree
            points.append((tokens.value, rate, structure.numbers.get("roots", "")))
    points.sort(key=lambda point: point[0])
    draw_line(panel, name, [x for x, _, _ in points], [rate for _, rate, _ in points], look, FAINT)
    for x, rate, roots in points:
        offset, side = beside
        panel.annotate(f"{roots}", (x, rate.value), offset, textcoords="offset points", fontsize=6.5, ha=side)


def figure8(trees: Path, model: Path, out: Path) -> None:
    """Show where each rule forks one real rollout: the entropies of its tokens, and beneath them a row for each rule.

    The rollout is chosen by the rule in `datpo.report.forks.showcase.load_showcase`. A bar is a token; a mark stands at
    the left edge of the first token that is sampled anew.

    Args:
        trees: the folder of an exploration's trees.
        model: the checkpoint that grew them.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: as in `load_showcase`.
    """
    case = load_showcase(trees, model)
    note = f"{case.place} Bars: tokens. Grey lines: sentences begin. Marks: before the first token of a branch."
    height = max(1.3, 0.5 + LINE * len(case.forks))
    with figure(out, [""], 2, {}, note, across=1, height=height) as [[entropies, rows]]:
        count = len(case.texts)
        entropies.bar(range(count), case.base.signals["entropy"][:count], width=0.85, align="edge", color="0.35")
        entropies.set_ylabel("entropy (nats)")
        name_rows(rows, list(case.forks))
        looks = looks_of(list(case.forks))
        for row, (label, places) in enumerate(case.forks.items()):
            look = looks[label]
            rows.plot(places, [row] * len(places), linestyle="none", color=look["color"], marker=look["marker"], ms=5)
        for panel in (entropies, rows):
            panel.set_xlim(-0.5, count + 0.5)
            panel.grid(visible=False, axis="x")
            for at in case.sentences:
                panel.axvline(at, color="0.75", linewidth=0.6, zorder=0)
        _name_tokens(entropies, case)
        rows.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        rows.set_xlabel("tokens of the rollout that a branch keeps")


def _name_tokens(panel: Any, case: Showcase) -> None:
    """Write what each token says beneath it, where there is room."""
    if len(case.texts) > FEW:
        panel.tick_params(axis="x", labelbottom=False, length=0)
        return
    places = [at + 0.4 for at in range(len(case.texts))]
    panel.set_xticks(places, [shown(text) for text in case.texts], rotation=90, fontsize=6, family="DejaVu Sans Mono")
    panel.tick_params(axis="x", length=0)


def figure9(trees: Path, model: Path, out: Path) -> None:
    """Show before which words each rule forks one real rollout: its text, and beneath each line the rules' marks.

    The rollout is that of `figure8`. The text stands as the model wrote it; line breaks are shown as ↵ and spaces kept;
    what the font lacks or would reorder is shown as �.

    Args:
        trees: the folder of an exploration's trees.
        model: the checkpoint that grew them.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: as in `load_showcase`.
    """
    case = load_showcase(trees, model)
    lines = lines_of(case.texts, case.forks, TEXT_COLUMNS)
    note = f"{case.place} A mark stands beneath the place where a rule ends the prefix: what follows is sampled anew."
    with figure(out, [""], 1, {}, note, across=1, height=0.2 + LINE * rows_of(lines)) as [[panel]]:
        draw_text(panel, lines, looks_of(list(case.forks)))
