"""What a method says about trees on disk, block by block: to look at credit without training anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from datpo.config import merge, read_settings
from datpo.config_schema import as_number
from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.saved import SavedTree, load_graded_trees
from datpo.core.tree import Floats, RolloutTree
from datpo.credit.diversity import sibling_diversity
from datpo.credit.values import start_values, value_of_root
from datpo.learn.embed import embedder as embedder_named
from datpo.learn.minibatch import CreditedTree, credited, gather, units_of
from datpo.methods import Method, load, names
from datpo.search.budget import Progress

PROJECT = Path(__file__).resolve().parents[3]


def credit(trees: Path, /, method: str, set: list[str], embedder: str | None = None) -> Iterator[Row]:
    """Print the credit that a method gives to each block of saved trees, one line a block.

    What the columns mean stands in docs/trees.md.

    Args:
        trees: graded trees, JSON Lines as described in docs/trees.md.
        method: its name; its numbers are those of config/methods/NAME.yaml.
        set: numbers of its own, `key=value` with a YAML value each, such as `alpha=[0.2,0.2]`.
        embedder: computes sibling diversity from the blocks' texts, `lexical` or a sentence-transformers model; not
            given, the diversity in the file is taken, and computed with `lexical` only where there is none.

    Raises:
        InputError: an unknown method, number or embedder; a line that is no graded tree; or a named embedder and a
            tree without texts.
    """
    chosen = load(method, method_numbers(method, set))
    rows = load_graded_trees(trees)
    diversities = _diversities(trees, rows, chosen, embedder)
    return (
        {"problem": saved.tree.problem.id, "tree": index, **row}
        for index, (saved, diversity_B) in enumerate(zip(rows, diversities, strict=True))
        for row in credit_of_blocks(chosen, saved.tree, Progress(saved.step, saved.fraction), diversity_B)
    )


def method_numbers(method: str, settings: Sequence[str]) -> dict[str, Any]:
    """The numbers in config/methods/NAME.yaml of this project or of the working folder, with others laid over them.

    Raises:
        InputError: there is no such file, or a setting is no `key=value`.
    """
    files = [folder / "config" / "methods" / f"{method}.yaml" for folder in (PROJECT, Path.cwd())]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise InputError(f"method {method!r} has no file {files[0]}; known methods: {', '.join(names())}")
    return merge(read_settings(found), dict(_setting(setting) for setting in settings))


def credit_of_blocks(method: Method, tree: RolloutTree, progress: Progress, diversity_B: Floats) -> Iterator[Row]:
    """Where each block stands, the values at its ends, its advantage without and with diversity, its pull and push.

    Pull and push are the sums of max(A, 0) and max(-A, 0) over the units that contain the block, the whole tree
    taken as one mini-batch of a token mean: not yet divided by anything.
    """
    method = replace(method, aggregate="token_mean")
    value_B = method.value(tree)
    start_B = start_values(tree, value_B, value_of_root(tree, method.root_value))
    base_B = _mean_advantages(method, credited(method, tree, progress, np.zeros(len(tree.blocks))))
    whole = credited(method, tree, progress, diversity_B)
    advantage_B = _mean_advantages(method, whole)
    pull_B, push_B = _pull_and_push(method, whole)
    for index, block in enumerate(tree.blocks):
        yield {
            "branch": block.branch,
            "start": block.start,
            "stop": block.stop,
            "leaves": list(block.leaves),
            "value_start": float(start_B[index]),
            "value_end": float(value_B[index]),
            "base_advantage": base_B[index],
            "diversity": float(diversity_B[index]),
            "advantage": advantage_B[index],
            "pull": float(pull_B[index]),
            "push": float(push_B[index]),
        }


def _mean_advantages(method: Method, whole: CreditedTree) -> list[float | None]:
    """The advantage of each block, where leaves disagree the mean over the trained ones below; None without one."""
    tree, advantages = whole.tree, whole.advantages
    if method.unit == "blocks":
        return [float(advantage) for advantage in advantages]
    advantages_LB = np.broadcast_to(advantages, (len(tree.branches), len(tree.blocks)))
    units = set(whole.units)
    trained = [[leaf for leaf in block.leaves if leaf in units] for block in tree.blocks]
    return [float(advantages_LB[leaves, index].mean()) if leaves else None for index, leaves in enumerate(trained)]


def _pull_and_push(method: Method, whole: CreditedTree) -> tuple[Floats, Floats]:
    """What the loss would be given for this tree alone, (B,) each."""
    shares = gather(method, [whole], units_of([whole]), longest_response=1).shares
    if not shares:  # no block has any credit
        return np.zeros(len(whole.tree.blocks)), np.zeros(len(whole.tree.blocks))
    return shares[0].pull_B, shares[0].push_B


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise InputError(f"--set wants key=value, not {text!r}")
    try:
        return key, _with_numbers(yaml.safe_load(value))
    except yaml.YAMLError:
        raise InputError(f"--set {text}: {value!r} is not YAML") from None


def _with_numbers(value: Any) -> Any:
    """A value from YAML, which takes 1e-4 for a word."""
    if isinstance(value, list):
        return [_with_numbers(item) for item in value]
    return as_number(value) if isinstance(value, str) else value


def _diversities(path: Path, rows: Sequence[SavedTree], method: Method, embedder: str | None) -> list[Floats]:
    """The diversity of each tree's blocks: kept in the file, or computed from its texts, or 0 for all."""
    known = [saved.diversity_B if embedder is None else None for saved in rows]
    asked = [saved for saved, diversity_B in zip(rows, known, strict=True) if diversity_B is None]
    if embedder is not None and method.groups is not None:
        for saved in asked:
            if saved.texts is None:
                raise InputError(f"{path}: problem {saved.tree.problem.id!r}: no texts that --embedder could embed")
    spoken = [saved for saved in asked if saved.texts is not None]
    computed = iter(_diversities_of_texts(spoken, method, embedder or "lexical"))
    return [
        diversity_B
        if diversity_B is not None
        else (next(computed) if saved.texts is not None else np.zeros(len(saved.tree.blocks)))
        for saved, diversity_B in zip(rows, known, strict=True)
    ]


def _diversities_of_texts(rows: Sequence[SavedTree], method: Method, embedder: str) -> list[Floats]:
    """The diversity that the method reads from the blocks' texts, all embedded in one call."""
    if method.groups is None or not rows:
        return [np.zeros(len(saved.tree.blocks)) for saved in rows]
    texts = [text for saved in rows for text in saved.texts or ()]
    first = np.cumsum([0, *(len(saved.tree.blocks) for saved in rows[:-1])])
    numbered = [_with_block_numbers(saved.tree, int(start)) for saved, start in zip(rows, first, strict=True)]
    return sibling_diversity(numbered, lambda tokens: texts[tokens[0]], embedder_named(embedder), method.groups)


def _with_block_numbers(tree: RolloutTree, first: int) -> RolloutTree:
    """The tree with the number of its block, counted from `first`, for each token."""
    number_T = np.repeat(np.arange(first, first + len(tree.blocks)), [len(block) for block in tree.blocks])
    ends = np.cumsum([len(branch.tokens) for branch in tree.branches])
    branches = zip(tree.branches, np.split(number_T, ends[:-1]), strict=True)
    return replace(tree, branches=tuple(replace(branch, tokens=tokens) for branch, tokens in branches))
