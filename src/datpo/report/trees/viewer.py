"""Rollout trees as web pages: where a tree branches, where it fails, and where credit goes (docs/viewer.md).

Everything that a model or a data set wrote is hostile. It travels as one JSON text in which no character can end the
element that holds it, scripts set it as text and never as markup, and a page may run its own script alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.files import Row, whole_file
from datpo.core.saved import SavedTree, load_graded_trees
from datpo.core.seeds import generator
from datpo.core.tree import Branch, Floats, RolloutTree
from datpo.credit.values import value_of_root
from datpo.methods import Method, load
from datpo.report.credit import credit, method_numbers
from datpo.report.trees.layout import rows_of
from datpo.report.trees.token_texts import token_texts
from datpo.search.forks import RULES

PARTS = Path(__file__).parent / "page"
SCRIPTS = {"tree.html": ("common.js", "tree.js", "block.js", "page.js"), "index.html": ("common.js", "index.js")}
POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
FORKS_OF_UNFORKED = 3  # how often rules are asked to fork a rollout that was not forked


def view(trees: Path, model: Path, method: str, set: list[str], out: Path, problem: str | None = None) -> None:
    """Make a web page of each saved tree, and an index.html of all of them.

    Each page is one file that needs no network. What it shows stands in docs/viewer.md.

    Args:
        trees: graded trees, JSON Lines as described in docs/trees.md.
        model: the checkpoint folder whose tokenizer reads the tokens.
        method: gives the blocks credit; its numbers are those of config/methods/NAME.yaml.
        set: numbers of its own, `key=value` with a YAML value each, such as `alpha=[0.2,0.2]`.
        out: the folder of the pages; it may hold other files.
        problem: id of the only problem whose trees are shown.

    Raises:
        InputError: an unknown method, number or problem; a line that is no graded tree; a checkpoint without tokenizer.
    """
    numbers = method_numbers(method, set)
    chosen = load(method, numbers)
    after_first_token = numbers.get("fork_offset") == "after_first_token"
    rows: dict[int, list[Row]] = {}
    for row in credit(trees, method, set):
        rows.setdefault(row["tree"], []).append(row)
    shown = [
        (index, saved)
        for index, saved in enumerate(load_graded_trees(trees))
        if problem is None or saved.tree.problem.id == problem
    ]
    if not shown:
        raise InputError(f"{trees}: no tree of problem {problem!r} in this file")
    names = [f"tree-{index:04d}.html" for index, _ in shown]
    source = {"file": Path(trees).name, "method": method, "numbers": numbers}
    overview = []
    for place, (index, saved) in enumerate(shown):
        data = {
            **source,
            "tree": index,
            "previous": names[place - 1] if place else None,
            "next": names[place + 1] if place + 1 < len(names) else None,
            **tree_data(saved, chosen, rows[index], model, after_first_token),
        }
        _write(Path(out) / names[place], page("tree.html", data))
        overview.append(_summary(names[place], data))
    _write(Path(out) / "index.html", page("index.html", {**source, "trees": overview}))


def tree_data(
    saved: SavedTree, method: Method, credits: Sequence[Row], model: Path, after_first_token: bool
) -> dict[str, Any]:
    """What a page shows of a tree: all of it that is in the file, its credit, its tokens' texts and other forks.

    Args:
        saved: a graded tree.
        method: whose credit it is.
        credits: a row for each block, as the verb `credit` gives them.
        model: the checkpoint folder whose tokenizer reads the tokens.
        after_first_token: whether a branch keeps the token that a fork rule points at.
    """
    tree = saved.tree
    words: dict[str, int] = {}  # each distinct text of a token once
    branches = []
    for index, (branch, row) in enumerate(zip(tree.branches, rows_of(tree), strict=True)):
        texts = token_texts(model, tree.response(index))[branch.start :]
        said = [words.setdefault(text, len(words)) for text in texts]
        branches.append({"row": row, "words": said, **_branch_data(branch)})
    for root in tree.roots:
        branches[root]["rules"] = list(_other_forks(tree, root, after_first_token))
    blocks = [_block_data(tree, index, row) for index, row in enumerate(credits)]
    return {
        "problem": vars(tree.problem),
        "step": saved.step,
        "fraction": saved.fraction,
        "root": value_of_root(tree, method.root_value),
        "diversity": _source_of_diversity(saved, method),
        "words": list(words),
        "branches": branches,
        "blocks": blocks,
    }


def _branch_data(branch: Branch) -> dict[str, Any]:
    signals = branch.signals
    return {
        "parent": branch.parent,
        "start": branch.start,
        "stop": branch.stop,
        "finish": branch.finish,
        "reward": branch.reward,
        "verdict": branch.verdict,
        "tokens": branch.tokens.tolist(),
        "logprobs": _rounded(branch.logprobs) if branch.logprobs.any() else None,  # zeros where they are not known
        "entropy": _rounded(signals["entropy"]) if "entropy" in signals else None,
        "sentences": _first_tokens(branch, "sentence"),
        "steps": _first_tokens(branch, "step"),
    }


def _rounded(values: Floats) -> list[float]:
    return [round(value, 3) for value in values.tolist()]


def _first_tokens(branch: Branch, unit: str) -> list[int] | None:
    """The positions where a sentence or step starts, the branch's start aside; None if they are not in the file."""
    if unit not in branch.signals:
        return None
    return (branch.start + 1 + np.flatnonzero(np.diff(branch.signals[unit]) > 0)).tolist()


def _other_forks(tree: RolloutTree, root: int, after_first_token: bool) -> Iterator[dict[str, Any]]:
    """Where each rule would fork a base rollout, as often as it was forked; or the signal that it lacks."""
    branch = tree.branches[root]
    forks = len({other.start for other in tree.branches if other.parent == root}) or FORKS_OF_UNFORKED
    for name, (build, _) in RULES.items():
        rng = generator(0, "view", tree.problem.id, root)
        try:
            yield {"rule": name, "at": build(after_first_token)(branch, forks, rng)}
        except KeyError as missing:
            yield {"rule": name, "missing": missing.args[0]}


def _block_data(tree: RolloutTree, index: int, credit: Row) -> dict[str, Any]:
    """A block's place in the tree and its credit."""
    block = tree.blocks[index]
    kept = ("branch", "start", "stop", "leaves", "value_start", "value_end", "base_advantage", "diversity")
    place = {"parent": block.parent, "terminal": block.terminal}
    return {**place, **{key: credit[key] for key in (*kept, "advantage", "pull", "push")}}


def _source_of_diversity(saved: SavedTree, method: Method) -> str:
    if method.groups is None:
        return "unread"
    if saved.diversity_B is not None:
        return "file"
    return "texts" if saved.texts is not None else "absent"


def _summary(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """What the index shows of a tree: enough to draw it as small as a stamp."""
    keys = ("row", "parent", "start", "stop", "reward")
    return {
        "page": name,
        "problem": data["problem"],
        "step": data["step"],
        "root": data["root"],
        "branches": [{key: branch[key] for key in keys} for branch in data["branches"]],
        "blocks": [{key: block[key] for key in ("branch", "start", "stop", "value_end")} for block in data["blocks"]],
    }


def page(name: str, data: dict[str, Any]) -> str:
    """A page of `page/` with its style, its script and its data inside, in ASCII."""
    style = _part("viewer.css")
    script = "\n".join(_part(part) for part in SCRIPTS[name])
    policy = POLICY.format(style=_allowed(style), script=_allowed(script))
    return Template(_part(name)).substitute(policy=policy, style=style, script=script, data=inline_json(data))


def inline_json(data: Any) -> str:
    """A value as JSON that may stand in a script element: nothing in it can open or end an element or a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _allowed(text: str) -> str:
    """The source of a content security policy that allows just this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    with whole_file(path) as handle:
        handle.write(text)
