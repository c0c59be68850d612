"""Figure 3: one real tree, where it was forked and where its credit goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.saved import SavedTree, load_graded_trees
from datpo.core.tree import Block, RolloutTree
from datpo.report.credit import credit
from datpo.report.style import figure
from datpo.report.trees.layout import rows_of
from datpo.report.trees.token_texts import token_texts

ROW = 0.085  # inches from a branch to the next
LEAST = 1.0  # inches, of a tree
AROUND = 1.4  # inches, of what stands above and beneath it
THICK = 0.42  # of a bar, in rows
GAP = 1.3  # rows above a base rollout, for the values of its forks
QUOTED = 60  # characters of a block
# Light to dark, as in the viewer: values are read in grey, and the sign of an advantage off the side of its line.
VALUE = LinearSegmentedColormap.from_list("value", ["#fff0be", "#96c48c", "#14532d"])
ADVANTAGE = LinearSegmentedColormap.from_list("advantage", ["#c2410c", "#f3c5ae", "#f4f4f4", "#b4cbee", "#1f5fbf"])


def figure3(trees: Path, model: Path, method: str, set: list[str], out: Path) -> None:
    """Draw a real tree: x is the position in the response, a row is a branch, a bar a block with its advantage.

    Of the trees with right and wrong leaves that with the most forks is drawn, the first in the file of equals; of all
    trees if none has both.

    Args:
        trees: graded trees, JSON Lines as described in docs/trees.md.
        model: the checkpoint folder whose tokenizer reads the two blocks that are quoted.
        method: gives the blocks credit; its numbers are those of config/methods/NAME.yaml.
        set: numbers of its own, `key=value` with a YAML value each.
        out: the PNG; an SVG is written beside it.

    Raises:
        InputError: an unknown method or number; a line that is no graded tree; or a checkpoint without a tokenizer.
    """
    saved = load_graded_trees(trees)
    index = chosen_tree(saved)
    rows = [row for row in credit(trees, method, set) if row["tree"] == index]
    if any(row["advantage"] is None for row in rows):
        raise InputError(
            f"{trees}: {method} trains a part of the tree alone, so not all of its blocks have an advantage"
        )
    tree = saved[index].tree
    note = f"Problem: {_quoted(tree.problem.problem)}. {_quotes(tree, rows, model)}"
    titles, height = [_title(tree, rows)], AROUND + _high(tree)
    with figure(out, titles, each=1, legend={}, note=note, across=1, height=height) as [[panel]]:
        _draw(panel, tree, rows)
        _scales(panel, tree, rows)


def chosen_tree(trees: Sequence[SavedTree]) -> int:
    """The number of the tree that is drawn: mixed rewards before equal ones, then the most forks, then the first."""

    def worth(index: int) -> tuple[bool, int]:
        tree = trees[index].tree
        return len({*tree.rewards_L.tolist()}) > 1, len(tree.siblings)

    return max(range(len(trees)), key=worth)


def heights(tree: RolloutTree) -> list[float]:
    """Where each branch is drawn, in rows from the top: `rows_of` with a gap above every base rollout."""
    rows = rows_of(tree)
    tops = [rows[root] for root in tree.roots]
    return [row + GAP * sum(top <= row for top in tops) for row in rows]


def _high(tree: RolloutTree) -> float:
    """How high a tree is drawn, in inches."""
    return max(LEAST, ROW * (max(heights(tree)) + 1))


def _draw(panel: Any, tree: RolloutTree, rows: Sequence[Row]) -> None:
    """Branches and their leaves, blocks and their advantages, fork points and their values."""
    y = heights(tree)
    strongest, values = _strongest(rows), _values(rows)
    for branch, at in zip(tree.branches, y, strict=True):
        above = 0 if branch.parent is None else y[branch.parent]
        if branch.parent is not None:
            panel.plot([branch.start] * 2, [above, at], color="0.55", linewidth=0.6, zorder=1)
        panel.plot([branch.start, branch.stop], [at, at], color="0.55", linewidth=0.5, zorder=1)
        panel.scatter([branch.stop], [at], s=9, clip_on=False, zorder=3, **_leaf(branch.reward or 0.0))
    for row in rows:
        at, advantage = y[row["branch"]], row["advantage"]
        if advantage:
            color = ADVANTAGE(0.5 + 0.5 * advantage / strongest)
            bar = {"width": row["stop"] - row["start"], "height": -THICK if advantage > 0 else THICK}
            panel.barh(at, left=row["start"], align="edge", color=color, edgecolor="0.3", linewidth=0.25, **bar)
    for block, row in zip(tree.blocks, rows, strict=True):
        if not block.terminal:
            at, value = y[block.branch], row["value_end"]
            look = {"color": [VALUE(values(value))], "edgecolors": "black", "linewidths": 0.6}
            panel.scatter([block.stop], [at], s=16, zorder=4, **look)
            text = {"textcoords": "offset points", "ha": _beside(tree, block), "fontsize": 5.5}
            panel.annotate(f"{value:.2f}", (block.stop, at - THICK), (0, 1.5), **text)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set(
        xlim=(0, 1.01 * max(branch.stop for branch in tree.branches)),
        ylim=(max(y) + 0.8, 0),
        xlabel="position in the response (tokens)",
        yticks=[],
    )
    panel.grid(axis="y", visible=False)
    panel.spines["left"].set_visible(False)


def _leaf(reward: float) -> dict[str, Any]:
    """How a right, a wrong and a partly right leaf are marked."""
    if reward >= 1:
        return {"marker": "o", "color": "#14532d"}
    return {"marker": "x", "color": "#8f2d0c", "linewidth": 0.8} if reward <= 0 else {"marker": "D", "color": "0.5"}


def _beside(tree: RolloutTree, block: Block) -> str:
    """On which side of its fork point a value is written: away from a near one on the same branch."""
    near = 0.035 * max(branch.stop for branch in tree.branches)
    others = [other.stop for other in tree.blocks if other.branch == block.branch and not other.terminal]
    if any(0 < at - block.stop < near for at in others):
        return "right"
    return "left" if any(0 < block.stop - at < near for at in others) else "center"


def _title(tree: RolloutTree, rows: Sequence[Row]) -> str:
    rewards = tree.rewards_L
    root = next(row["value_start"] for row in rows if row["start"] == 0)
    leaves = "1 leaf" if len(rewards) == 1 else f"{len(rewards)} leaves"
    return f"{leaves}, {int((rewards >= 1).sum())} right (dots); V(root) = {root:.2f}"


def _scales(panel: Any, tree: RolloutTree, rows: Sequence[Row]) -> None:
    """What the colours mean, side by side between the title and the tree."""
    strongest = _strongest(rows)
    scales = (
        (ScalarMappable(Normalize(-strongest, strongest), ADVANTAGE), "advantage of a block; above its line: > 0"),
        (ScalarMappable(_values(rows), VALUE), "value at a fork point"),
    )
    inch = 1 / _high(tree)  # of the panel's height
    for place, (scale, label) in zip((0.0, 0.5), scales, strict=True):
        axes = panel.inset_axes([place, 1 + 0.2 * inch, 0.3, 0.06 * inch])
        bar = panel.figure.colorbar(scale, cax=axes, orientation="horizontal", ticklocation="top")
        bar.set_label(label, fontsize=7)
        bar.ax.tick_params(labelsize=6, pad=1, length=2)
        bar.outline.set_linewidth(0.4)


def _strongest(rows: Sequence[Row]) -> float:
    return max(abs(row["advantage"]) for row in rows) or 1.0


def _values(rows: Sequence[Row]) -> Normalize:
    values = [row["value_end"] for row in rows]
    return Normalize(min(0.0, *values), max(1.0, *values))


def _quotes(tree: RolloutTree, rows: Sequence[Row], model: Path) -> str:
    """What the most reinforced and the most penalised block say."""
    quotes = []
    for name, best in (("Highest", max), ("lowest", min)):
        index = best(range(len(rows)), key=lambda i: rows[i]["advantage"])
        block = tree.blocks[index]
        texts = token_texts(model, tree.response(block.branch))[block.start : block.stop]
        advantage = f"{rows[index]['advantage']:+.2f}".replace("-", "−")
        quotes.append(f"{name} advantage ({advantage}): {_quoted(''.join(texts))}")
    return "; ".join(quotes) + "."


def _quoted(text: str) -> str:
    """The start of a text on one line, in the letters that the figure's font has; others are question marks."""
    known = get_font(findfont("DejaVu Sans")).get_charmap()
    line = "".join(letter if ord(letter) in known else "?" for letter in " ".join(text.split()))
    return f"“{line}”" if len(line) <= QUOTED else f"“{line[:QUOTED]}…”"
