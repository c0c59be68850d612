"""Trees and a tokenizer for pages: plain ones, hostile ones, and one of the largest size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel

from datpo.core.problem import Problem
from datpo.core.saved import SavedTree, save_trees
from datpo.core.tree import Branch, RolloutTree
from datpo.report.trees.viewer import view

END = "<|end|>"
RUNS = "window.ran = (window.ran || 0) + 1"  # what every attack tries to run
ATTACKS = [
    f"<script>{RUNS}</script>",
    "</script>",
    f"</script><script>{RUNS}</script>",
    "<!--",
    "<!--<script>",
    "-->",
    "]]>",
    f"<img src=x onerror='{RUNS}'>",
    f"<svg onload='{RUNS}'>",
    f'"><iframe srcdoc="<script>{RUNS}</script>">',
    f"javascript:{RUNS}",
    "&lt;script&gt;",
    "${data}",
    "$style",
    "\\u003cscript\\u003e",
    "\u2028\u2029",
    "\u202ereversed\u202c",
    "\x00\x1b[31m",
    "'; alert(1); //",
]
ODD = [
    "🦉",
    "👩‍👩‍👧‍👦",
    "مرحبا بالعالم",
    " שלום",
    "e\u0301",
    "漢字",
    "\n",
    "\n\n",
    "\t",
    " " * 9,
    "W" * 600,
    "𝔘𝔫𝔦",
    "\ufeff",
]


class Writer:
    """Makes a checkpoint's tokenizer of the texts it is given, and tokens of texts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vocabulary = {"?": 0, END: 1}

    def tokens(self, *texts: str) -> np.ndarray:
        return np.array([self.vocabulary.setdefault(text, len(self.vocabulary)) for text in texts])

    def branch(self, parent, start, texts, reward, *, end=True, signals=(), verdict=None, logprobs=True) -> Branch:
        tokens = self.tokens(*texts, *([END] if end else []))
        count = len(tokens)
        known = {
            "entropy": np.linspace(0, 2, count),
            "sentence": np.where(np.arange(count) < len(texts), np.arange(count) // 5, -1).astype(float),
            "step": np.where(np.arange(count) < len(texts), np.arange(count) // 3, -1).astype(float),
            "influence": (np.arange(count) // 3) % 4 / 4,
            "token_influence": (np.arange(count) // 3) % 4 / 4,
        }
        return Branch(
            parent,
            start,
            tokens,
            np.full(count, -0.5 if logprobs else 0.0),
            "stop" if end else "length",
            {name: known[name] for name in signals},
            float(reward),
            verdict or ("right" if reward >= 1 else "wrong"),
        )

    def pages(self, trees, *arguments, method="datpo", numbers=()) -> Path:
        """The folder with the pages of some trees."""
        tokenizer = Tokenizer(WordLevel(self.vocabulary, unk_token="?"))
        tokenizer.decoder = Fuse()
        tokenizer.add_special_tokens([AddedToken(END, special=True)])
        self.folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(self.folder / "tokenizer.json"))
        saved = [tree if isinstance(tree, SavedTree) else SavedTree(tree) for tree in trees]
        save_trees(self.folder / "trees.jsonl", saved)
        view(self.folder / "trees.jsonl", self.folder, method, list(numbers), self.folder / "pages", *arguments)
        return self.folder / "pages"


def grown(branches, problem=None) -> RolloutTree:
    problem = problem or Problem("p/1", "What is 6 x 7?", "42", 1)
    return RolloutTree(problem, np.array([0])).grow(branches)


def plain_tree(writer: Writer) -> SavedTree:
    """Two base rollouts, of which the first is forked at 3 into two branches; the blocks are

    0: branch 0, 0 to 3, V 2/3    1: branch 0, 3 to its leaf, right    2: branch 1, wrong
    3: branch 2, right            4: branch 3, wrong
    """
    base = ("entropy", "sentence")
    tree = grown(
        [
            writer.branch(None, 0, ["Six", " times", " seven", " is", " 42", "."], 1, signals=base),
            writer.branch(None, 0, ["Let", " me", " guess", ":", " 41"], 0, signals=base, end=False),
            writer.branch(0, 3, [" is", " forty", "-two"], 1, signals=("entropy",)),
            writer.branch(0, 3, [" makes", " 13"], 0, signals=("entropy",)),
        ]
    )
    return SavedTree(tree, step=7, fraction=0.0, diversity_B=np.array([0, 0.25, 0, 0.5, 0.75]))


def hostile_tree(writer: Writer) -> SavedTree:
    """Attacks and oddities wherever a model or a data set may write."""
    everything = " ".join(ATTACKS)
    tree = grown(
        [
            writer.branch(None, 0, [*ATTACKS, *ODD], 1, verdict=everything, signals=("entropy", "sentence")),
            writer.branch(None, 0, ODD[::-1], 0, verdict=ATTACKS[0]),
            writer.branch(0, 3, [*ODD, *ATTACKS[::-1]], 0, end=False),
            writer.branch(0, 3, [ATTACKS[2], "\ud800"[:0] or "x"], 0.5),
        ],
        Problem(everything, f"{everything}\n{''.join(ODD)}\n\ud83d", ATTACKS[2], subject=ATTACKS[0], source=ATTACKS[1]),
    )
    return SavedTree(tree, texts=tuple(ATTACKS[: len(tree.blocks)]))


def largest_tree(writer: Writer, roots=4, forks=3, siblings=4, length=400) -> SavedTree:
    """roots x (1 + forks x siblings) leaves; every branch has `length` tokens of its own."""
    draw = np.random.default_rng(0)
    words = [f" word{n}" for n in range(3000)]
    every = ("entropy", "sentence", "step", "influence", "token_influence")

    def texts() -> list[str]:
        return [words[n] for n in draw.integers(0, len(words), length)]

    branches = [writer.branch(None, 0, texts(), draw.integers(0, 2), end=False, signals=every) for _ in range(roots)]
    for root in range(roots):
        for at in sorted(draw.choice(np.arange(20, length - 20), forks, replace=False).tolist()):
            branches += [
                writer.branch(root, at, texts(), draw.integers(0, 2), end=False, signals=("entropy",))
                for _ in range(siblings)
            ]
    noisy = [
        replace(branch, signals={**branch.signals, "entropy": draw.exponential(0.6, length)}) for branch in branches
    ]
    tree = grown(noisy)
    return SavedTree(tree, diversity_B=draw.uniform(0, 0.8, len(tree.blocks)))
