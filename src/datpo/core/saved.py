"""Rollout trees on disk: JSON Lines, one tree a line, described field by field in `docs/trees.md`.

A training run writes its trees to be looked at, and those it is in the middle of growing to go on with; a person
may write one by hand. Numbers come back exactly as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row, located_rows, write_jsonl
from datpo.core.problem import Problem, problem_of
from datpo.core.rows import number, numbers, object_of, whole_number, whole_numbers
from datpo.core.tree import Branch, Finish, Floats, Ints, RolloutTree

VERSION = 1


@dataclass(frozen=True)
class SavedTree:
    """A tree, when in its run it was grown, and what is known of its blocks.

    Attributes:
        tree: finished and graded, or half grown.
        step, fraction: rollout steps done before it, and the share of the run's duration spent before it.
        texts: what each block says, in the order of `tree.blocks`; None if not kept.
        diversity_B: how different each block is from its siblings (B,); None if not kept.
    """

    tree: RolloutTree
    step: int = 0
    fraction: float = 0.0
    texts: tuple[str, ...] | None = None
    diversity_B: Floats | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit the tree.

        Raises:
            ValueError: `texts` or `diversity_B` holds more or fewer than one entry per block.
        """
        blocks = len(self.tree.blocks)
        for name, entries in (("texts", self.texts), ("diversity", self.diversity_B)):
            if entries is not None and len(entries) != blocks:
                raise ValueError(f"{name} has {len(entries)} entries, but the tree has {blocks} blocks")


def save_trees(path: str | Path, trees: Iterable[SavedTree]) -> None:
    """Write trees as JSON Lines, whole or not at all.

    Raises:
        ValueError: a number is infinite or not a number; JSON has no such numbers.
    """
    write_jsonl(path, map(_row, trees))


def load_trees(path: str | Path) -> list[SavedTree]:
    """Read trees, graded or not.

    Raises:
        InputError: a line that is no tree of this version; file, line, problem, branch and key are named.
    """
    return [saved for _, saved in _located_trees(path)]


def load_graded_trees(path: str | Path) -> list[SavedTree]:
    """Read trees of which every leaf has a reward.

    Raises:
        InputError: as in `load_trees`; a leaf without a reward; or no tree at all.
    """
    trees = []
    for place, saved in _located_trees(path):
        for index, branch in enumerate(saved.tree.branches):
            if branch.reward is None:
                raise InputError(f"{place}: branch {index} has no reward; every leaf needs one to be given credit")
        trees.append(saved)
    if not trees:
        raise InputError(f"{path}: no trees in this file")
    return trees


def _row(saved: SavedTree) -> Row:
    tree = saved.tree
    row: Row = {
        "version": VERSION,
        "step": saved.step,
        "fraction": saved.fraction,
        "problem": asdict(tree.problem),
        "prompt": tree.prompt.tolist(),
        "branches": [_branch_row(branch) for branch in tree.branches],
    }
    if saved.texts is not None:
        row["texts"] = list(saved.texts)
    if saved.diversity_B is not None:
        row["diversity"] = _finite(saved.diversity_B).tolist()
    return row


def _branch_row(branch: Branch) -> Row:
    return {
        "parent": branch.parent,
        "start": branch.start,
        "tokens": branch.tokens.tolist(),
        "logprobs": _finite(branch.logprobs).tolist(),
        "finish": branch.finish,
        "reward": branch.reward,
        "verdict": branch.verdict,
        "signals": {name: _finite(values).tolist() for name, values in branch.signals.items()},
    }


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise ValueError("a tree with an infinite number, or one that is not a number, cannot be saved")
    return values


def _located_trees(path: str | Path) -> Iterator[tuple[str, SavedTree]]:
    """Every tree with its place, `FILE: line N: problem ID`."""
    for line, row in located_rows(path):
        if row.get("version") != VERSION or type(row["version"]) is not int:
            raise InputError(f"{line}: version must be {VERSION}, not {row.get('version')!r}")
        problem: Any = row.get("problem")
        named = isinstance(problem, dict) and "id" in problem
        place = f"{line}: problem {problem['id']!r}" if named else line
        yield place, _saved_tree(place, row)


def _saved_tree(place: str, row: Row) -> SavedTree:
    object_of(place, row, ("version", "problem", "branches"), ("step", "fraction", "prompt", "texts", "diversity"))
    fraction = number(f"{place}: fraction", row.get("fraction", 0.0))
    if not 0 <= fraction <= 1:
        raise InputError(f"{place}: fraction must lie between 0 and 1, not {fraction}")
    texts = row.get("texts")
    if texts is not None and not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise InputError(f"{place}: texts must be a list of strings, one per block")
    diversity = row.get("diversity")
    try:
        return SavedTree(
            _tree(place, row),
            step=whole_number(f"{place}: step", row.get("step", 0)),
            fraction=fraction,
            texts=None if texts is None else tuple(texts),
            diversity_B=None if diversity is None else numbers(f"{place}: diversity", diversity),
        )
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def _tree(place: str, row: Row) -> RolloutTree:
    tree = RolloutTree(_problem(place, row["problem"]), whole_numbers(f"{place}: prompt", row.get("prompt", [])))
    branches = row["branches"]
    if not isinstance(branches, list) or not branches:
        raise InputError(f"{place}: branches must be a list of at least one branch")
    for index, branch_row in enumerate(branches):
        here = f"{place}: branch {index}"
        branch = _branch(here, branch_row)
        if branch.parent is not None and branch.parent >= index:
            raise InputError(f"{here}: its parent must stand before it, which branch {branch.parent} does not")
        try:
            tree = tree.grow([branch])
        except ValueError as error:
            raise InputError(f"{here}: {error}") from error
    return tree


def _problem(place: str, value: Any) -> Problem:
    needed, optional = ("id", "problem", "answer"), ("level", "subject", "source")
    return problem_of(f"{place}: its problem", object_of(f"{place}: its problem", value, needed, optional))


def _branch(place: str, value: Any) -> Branch:
    needed, optional = ("parent", "start", "tokens", "finish"), ("logprobs", "reward", "verdict", "signals")
    row = object_of(place, value, needed, optional)
    if row["finish"] not in get_args(Finish):
        raise InputError(f"{place}: finish must be one of {', '.join(get_args(Finish))}, not {row['finish']!r}")
    verdict, reward = row.get("verdict"), row.get("reward")
    if verdict is not None and not isinstance(verdict, str):
        raise InputError(f"{place}: verdict must be a word or null, not {verdict!r}")
    tokens = whole_numbers(f"{place}: tokens", row["tokens"])
    signals = row.get("signals", {})
    if not isinstance(signals, dict):
        raise InputError(f"{place}: signals must be a JSON object with a list of numbers under each name")
    return Branch(
        parent=None if row["parent"] is None else whole_number(f"{place}: parent", row["parent"]),
        start=whole_number(f"{place}: start", row["start"]),
        tokens=tokens,
        logprobs=_per_token(f"{place}: logprobs", row.get("logprobs", [0.0] * len(tokens)), tokens),
        finish=row["finish"],
        signals={name: _per_token(f"{place}: signal {name!r}", values, tokens) for name, values in signals.items()},
        reward=None if reward is None else number(f"{place}: reward", reward),
        verdict=verdict,
    )


def _per_token(place: str, value: Any, tokens: Ints) -> Floats:
    found = numbers(place, value)
    if len(found) != len(tokens):
        raise InputError(f"{place} has {len(found)} numbers, but the branch has {len(tokens)} tokens")
    return found
