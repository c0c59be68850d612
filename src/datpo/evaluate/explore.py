"""Growing rollout structures with a checkpoint, without training: what forking here or there would find.

All structures grow from the same base rollouts: those of a problem and repeat are sampled once, as many as the largest
structure has, and each structure gets the first of them. So they are equal also on devices where equal seeds do not
give equal bits.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import is_sealed, sealed_folder, whole_file, whole_folder
from datpo.core.problem import Problem, load_problems
from datpo.core.saved import SavedTree, save_trees
from datpo.core.spent import drop_spent
from datpo.core.tree import Ints, RolloutTree
from datpo.credit.diversity import Embed, Vectors, block_diversity, embedded, siblings, tree_diversity
from datpo.engines.build import engine_versions
from datpo.evaluate.sample import PRECISIONS
from datpo.learn.device import usable
from datpo.learn.embed import embedder_of
from datpo.learn.grading import check_keys
from datpo.learn.policy import Policy, checkpoint_hash, load_policy
from datpo.learn.prompts import prompts_of
from datpo.learn.rollouts import rollouts_of
from datpo.methods import Method, load
from datpo.progress import ProgressLines
from datpo.search.budget import Progress
from datpo.search.forks import NO_FORKS, ForkRule
from datpo.search.localisation import (
    clustering_ratio,
    fork_positions,
    mean_pairwise_distance,
    nearest_neighbour_distance,
)
from datpo.search.rollout import Growing, Rollouts, under_way

Row = dict[str, Any]
Structures = Mapping[str, Method]  # name -> how its trees grow

# Kept of every base rollout, so that one sees what other rules would choose there.
SIGNALS = ("sentence", "step", "influence")
LOCALISATION: Mapping[str, Callable[[Ints, int], float]] = {
    "nnd": nearest_neighbour_distance,
    "mpd": mean_pairwise_distance,
    "wcr5": partial(clustering_ratio, percent=5),
    "wcr10": partial(clustering_ratio, percent=10),
}
COLUMNS = (
    *("structure", "problem", "repeat", "leaves", "right", "tokens", "forks", "sibling_diversity"),
    *(*LOCALISATION, "length"),
)
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Chunk:
    """What is grown at a time and lost at most: some problems of one repeat, as many as a training step has."""

    repeat: int
    problems: Sequence[Problem]
    prompts: Sequence[Ints]


@dataclass(frozen=True)
class Explorer:
    """What it takes to grow and measure trees.

    Attributes:
        structures: name -> method.
        seed: branch b of a problem's tree is drawn from (seed, repeat, problem, b), whatever the structure.
    """

    policy: Policy
    rollouts: Rollouts
    structures: Structures
    embed: Embed
    seed: int

    def trees(self, chunk: Chunk) -> dict[str, list[RolloutTree]]:
        """The trees of every structure, each from the same base rollouts."""
        seedlings = [RolloutTree(*pair) for pair in zip(chunk.problems, chunk.prompts, strict=True)]
        bases = base_rollouts(list(self.structures.values()))
        planted = self.rollouts.plant(bases, under_way(seedlings, chunk.repeat), self.seed)
        # the first structure would find the cached keys of the bases, the others no more: all of them do without
        self.rollouts.engine.forget()
        progress = Progress(step=chunk.repeat)
        return {
            name: self.rollouts.fork(method, [first_bases(one, method) for one in planted], progress, self.seed)[0]
            for name, method in self.structures.items()
        }

    def grow(self, chunk: Chunk, folder: Path) -> None:
        """Write a chunk's trees and what is measured of them: a file for each structure, and one for all."""
        rows: list[Row] = []
        for name, trees in self.trees(chunk).items():
            vectors = embedded(trees, self.policy.decode, self.embed)
            saved = [self._saved(chunk.repeat, *pair) for pair in zip(trees, vectors, strict=True)]
            save_trees(folder / f"{name}.jsonl", saved)
            rows += [measures(name, chunk.repeat, *pair) for pair in zip(trees, vectors, strict=True)]
        _write_rows(folder / "rollouts.csv", rows)

    def _saved(self, repeat: int, tree: RolloutTree, vectors: Vectors) -> SavedTree:
        texts = tuple(self.policy.decode(tree.block_tokens(block)) for block in tree.blocks)
        return SavedTree(tree, step=repeat, texts=texts, diversity_B=block_diversity(tree, vectors, siblings))


def explore(config: Path, problems: Path, model: Path, work: Path, out: Path) -> None:
    """Grow the rollout structures of an exploration with the checkpoint `model`, each problem and repeat in turn.

    Writes the folder `out`: `trees/NAME.jsonl` with the trees of a structure (docs/trees.md; `step` is the repeat), and
    `rollouts.csv` with a row for each tree. Finished chunks of problems are kept below `work`, so an interrupted job
    goes on where it stopped.
    """
    settings = read_settings(config)
    asked = load_problems(problems)[: settings["problems"]]
    structures = structures_of(settings["structures"])
    check_keys(settings["domain"], asked)
    policy = load_policy(model, PRECISIONS[settings["train"]["precision"]])
    policy = policy.ending_at(settings["prompt"].get("stop_tokens") or [])
    chunks = chunks_of(asked, policy, settings)
    folder = work / f"{settings['exploration']}-{_fingerprint(settings, asked, model)}"
    folders = {folder / f"{index:06d}": chunk for index, chunk in enumerate(chunks)}
    todo = {path: chunk for path, chunk in folders.items() if not is_sealed(path)}
    if todo:
        policy.model.to(usable(Accelerator().device))
        explorer = explorer_of(policy, structures, settings)
        total, left = (sum(len(chunk.problems) for chunk in some.values()) for some in (folders, todo))
        label = f"explore {settings['identity']['model']} {settings['identity']['run']} {settings['exploration']}"
        bar = ProgressLines(label, total, "problem", done=total - left)
        for path, chunk in todo.items():
            with sealed_folder(path) as target:
                explorer.grow(chunk, target)
            bar.advance(len(chunk.problems))
    with whole_folder(out) as target:
        _join([path / "rollouts.csv" for path in folders], target / "rollouts.csv", heads=1)
        for name in structures:
            _join([path / f"{name}.jsonl" for path in folders], target / "trees" / f"{name}.jsonl")
    drop_spent([folder], out)


def structures_of(entries: Sequence[Mapping[str, Any]]) -> dict[str, Method]:
    """The structures of an exploration by name, in order.

    Raises:
        InputError: none at all, a name that is no file name or stands twice, or a method that cannot be loaded.
    """
    structures: dict[str, Method] = {}
    for entry in entries:
        name = str(entry["name"])
        if not _NAME.fullmatch(name) or name in structures:
            raise InputError(f"structures: name {name!r} must be of letters, digits, `.`, `_`, `-`, and stand once")
        structures[name] = load(entry["method"], entry["numbers"])
    if not structures:
        raise InputError("structures: an exploration needs at least one structure to grow")
    return structures


def chunks_of(problems: Sequence[Problem], policy: Policy, settings: Row) -> list[Chunk]:
    """Every repeat of every problem, repeat by repeat; prompts are all looked at before the first is used."""
    prompts = prompts_of(problems, settings["prompt"], policy.tokenizer, policy.context_window)
    size = settings["train"]["prompts_per_step"]
    starts = range(0, len(problems), size)
    return [
        Chunk(repeat, problems[start : start + size], prompts[start : start + size])
        for repeat in range(settings["repeats"])
        for start in starts
    ]


def explorer_of(policy: Policy, structures: Structures, settings: Row) -> Explorer:
    """Rollouts as training has them, with the same limits, checker and embedder."""
    rollouts, embed = rollouts_of(policy, settings, trains=False), embedder_of(settings["train"])
    return Explorer(policy, rollouts, structures, embed, settings["seed"])


def base_rollouts(methods: Sequence[Method]) -> Method:
    """A method that samples the base rollouts of all these, with every signal that one of them may read."""
    largest = max(methods, key=lambda method: method.roots)
    asked = [name for method in methods for name in method.forks.signals]
    return replace(largest, forks=ForkRule(NO_FORKS.choose, tuple(dict.fromkeys([*SIGNALS, *asked]))))


def first_bases(planted: Growing, method: Method) -> Growing:
    """A problem with as many of its base rollouts as a method has."""
    tree = replace(planted.tree, branches=planted.tree.branches[: method.roots])
    return replace(planted, tree=tree, handles=())


def measures(structure: str, repeat: int, tree: RolloutTree, vectors: Vectors) -> Row:
    """What one tree found, and how its forks lie: a row of `rollouts.csv`.

    `right` counts its right leaves, `tokens` what was generated, a shared prefix once, `forks` its distinct fork
    points. `sibling_diversity` is eq. 6, the base continuation included. The measures of localisation are shares of a
    trajectory's length, and means over the base rollouts with two fork points or more; nan where there is none.
    `length` is that of a mean base rollout in tokens, end tokens left out.
    """
    places = fork_positions(tree)
    return {
        "structure": structure,
        "problem": tree.problem.id,
        "repeat": repeat,
        "leaves": len(tree.branches),
        "right": int((tree.rewards_L > 0).sum()),
        "tokens": tree.generated_tokens,
        "forks": len(tree.siblings),
        "sibling_diversity": tree_diversity(tree, vectors, siblings),
        **{name: _mean([measure(*place) for place in places]) for name, measure in LOCALISATION.items()},
        "length": float(np.mean([length for _, length in places])),
    }


def _mean(values: Sequence[float]) -> float:
    """The mean of those that are defined; nan if none is."""
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    with whole_file(path) as handle:
        table = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({key: "" if value != value else value for key, value in row.items()})  # nan: undefined


def _join(parts: Sequence[Path], whole: Path, heads: int = 0) -> None:
    """Write files one behind the other; the first `heads` lines, which they share, once."""
    with whole_file(whole, "wb") as handle:
        for number, part in enumerate(parts):
            with open(part, "rb") as lines:
                for _ in range(heads if number else 0):
                    lines.readline()
                shutil.copyfileobj(lines, handle)


def _fingerprint(settings: Row, problems: Sequence[Problem], model: Path) -> str:
    """What the trees depend on; chunks of other settings, problems or weights are never taken for these."""
    made_of = {
        "settings": settings,
        "problems": [asdict(problem) for problem in problems],
        "checkpoint": checkpoint_hash(model),
        "versions": engine_versions(settings["train"]["engine"]),
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
