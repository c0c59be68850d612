"""Where a tree's branches stand when it is drawn from left to right, position by position."""

from __future__ import annotations

from datpo.core.tree import RolloutTree


def rows_of(tree: RolloutTree) -> list[int]:
    """The row of each branch, counted from 0 at the top, so that no line from a fork to its branches crosses another.

    A branch stands beneath the one it forked from, and those of a later fork above those of an earlier one: the line
    down to these passes the others on the left, before they start.
    """
    below: dict[int | None, list[int]] = {}
    for index, branch in enumerate(tree.branches):
        below.setdefault(branch.parent, []).append(index)
    order: list[int] = []
    waiting = below[None][::-1]  # the next one last
    while waiting:
        index = waiting.pop()
        order.append(index)
        forked = sorted(below.get(index, []), key=lambda child: (-tree.branches[child].start, child))
        waiting += forked[::-1]
    rows = [0] * len(order)
    for row, index in enumerate(order):
        rows[index] = row
    return rows
