"""One real rollout that every fork rule of an exploration was given, and where each of them forked it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np

from datpo.core.errors import InputError
from datpo.core.saved import SavedTree, load_graded_trees
from datpo.core.tree import Branch
from datpo.report.forks.explorations import RULE_LABELS, rule_label
from datpo.report.style import Look
from datpo.report.trees.token_texts import token_texts
from datpo.search.forks import spoken_length

# Told apart in grey by the marker, and by the row that each rule has of its own.
RULE_LOOKS: Mapping[str, Look] = {
    "parallel": {"color": "#0072b2", "linestyle": "--", "marker": "s"},
    "random": {"color": "#222222", "linestyle": ":", "marker": "o"},
    "fixed-seg": {"color": "#e69f00", "linestyle": "-.", "marker": "D"},
    "ATB": {"color": "#009e73", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    "tok-entropy": {"color": "#56b4e9", "linestyle": (0, (3, 1)), "marker": "^"},
    "tok-entropy, 5% distance": {"color": "#6a3d9a", "linestyle": (0, (1, 1)), "marker": "<"},
    "tok-entropy, 10% distance": {"color": "#000000", "linestyle": (0, (3, 1, 1, 1)), "marker": ">"},
    "sent-entropy": {"color": "#b2182b", "linestyle": "-", "marker": "P"},
}
OTHERS: Sequence[Look] = [
    {"color": "#8c510a", "linestyle": "-", "marker": "X"},
    {"color": "#cc79a7", "linestyle": "--", "marker": "p"},
    {"color": "#000000", "linestyle": ":", "marker": "*"},
]


@dataclass(frozen=True)
class Showcase:
    """A base rollout that was forked.

    Attributes:
        place: which problem and repeat it is of, and how it was chosen.
        base: the rollout.
        texts: what each of its tokens says, end tokens left out.
        forks: label of a rule -> positions it forked it at, ascending; a branch begins at the token of that number.
    """

    place: str
    base: Branch
    texts: tuple[str, ...]
    forks: Mapping[str, tuple[int, ...]]

    @property
    def sentences(self) -> list[int]:
        """The first token of each sentence but the first."""
        numbers = self.base.signals["sentence"][: len(self.texts)].tolist()
        return [at for at, (before, here) in enumerate(pairwise(numbers), start=1) if here != before]


def load_showcase(trees: Path, model: Path) -> Showcase:
    """The first base rollout of a problem that is neither easy nor hopeless, of usual length.

    Of the problems of the first repeat whose leaves, over all structures, are right and wrong both (of all problems, if
    there is none) it is the one whose first base rollout has the median length; of an even number the lower of the two
    in the middle, of equal ones the first in the file.

    Args:
        trees: the folder of an exploration's trees, a file for each structure.
        model: the checkpoint that grew them; its tokenizer is read.

    Raises:
        InputError: no trees, trees of different base rollouts, or none that is forked.
    """
    loaded = {path.stem: _first_repeat(path) for path in sorted(Path(trees).glob("*.jsonl"))}
    if not loaded:
        raise InputError(f"{trees}: no trees here; give the folder `trees` of an exploration")
    problem = _chosen(trees, loaded)
    grown = {name: mine[problem].tree for name, mine in loaded.items()}
    base = next(iter(grown.values())).branches[0]
    for name, tree in grown.items():
        if tree.branches[0].tokens.tolist() != base.tokens.tolist():
            raise InputError(f"{trees}: problem {problem!r}: {name} grew from another base rollout than the others")
        if not {"entropy", "sentence"} <= set(tree.branches[0].signals):
            raise InputError(f"{trees}: problem {problem!r}: {name} kept no entropy or sentences of the base rollout")
    forks = {name: tuple(sorted({b.start for b in tree.branches if b.parent == 0})) for name, tree in grown.items()}
    if not any(forks.values()):
        raise InputError(f"{trees}: problem {problem!r}: no structure forked its base rollout")
    order = [*(name for name in RULE_LABELS if name in forks), *(name for name in forks if name not in RULE_LABELS)]
    verdict = "right" if base.reward else "wrong"
    return Showcase(
        place=f"Problem {problem}, repeat 1; this rollout is {verdict}. Chosen by rule: leaves of both kinds, median "
        "length.",
        base=base,
        texts=tuple(token_texts(model, base.tokens[: spoken_length(base)])),
        forks={rule_label(name): forks[name] for name in order if forks[name]},
    )


def _first_repeat(path: Path) -> dict[str, SavedTree]:
    saved = load_graded_trees(path)
    return {each.tree.problem.id: each for each in saved if each.step == saved[0].step}


def _chosen(trees: Path, loaded: Mapping[str, Mapping[str, SavedTree]]) -> str:
    first = next(iter(loaded.values()))
    for name, mine in loaded.items():
        if list(mine) != list(first):
            raise InputError(f"{trees}: {name} has trees of other problems than {next(iter(loaded))}")
    rewards = {
        problem: np.concatenate([mine[problem].tree.rewards_L > 0 for mine in loaded.values()]) for problem in first
    }
    mixed = [problem for problem in first if rewards[problem].any() and not rewards[problem].all()]
    ordered = sorted(mixed or first, key=lambda problem: len(first[problem].tree.branches[0].tokens))
    return ordered[(len(ordered) - 1) // 2]


def looks_of(labels: Sequence[str]) -> dict[str, Look]:
    """Colour, dash and marker by label; a rule has its own in all figures, whatever is told behind it in brackets."""
    unknown = cycle(OTHERS)
    known = [(label, RULE_LOOKS.get(label.split(" (")[0])) for label in labels]
    return {label: dict(next(unknown) if look is None else look) for label, look in known}
