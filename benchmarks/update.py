"""The packed update against a sequence of its own for each block, leaf path or sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from accelerate import Accelerator

from benchmarks import made, naive
from benchmarks.measure import Row, compared, cpu, wall
from datpo.learn.minibatch import CreditedTree, Unit, gather, units_of
from datpo.learn.pack import packs
from datpo.learn.update import Learner, UpdateSettings
from datpo.methods.base import Method

PROMPT, LENGTHS = 120, (300, 400)
BUDGET, LOGITS = 16_384, 2**25
PATHS = "paths 300-400, prompt 120"


class Update:
    """A mini-batch's loss and gradient, both ways."""

    def __init__(self, size: made.Size, method: Method, trees: Sequence[CreditedTree], units: Sequence[Unit]) -> None:
        self.policy, self.method = made.policy(size), method
        self.batch = gather(method, trees, units, LENGTHS[1])
        self.flat = naive.sequences(method, trees, units)
        optimizer = torch.optim.AdamW(self.policy.model.parameters())
        self.learner = Learner(self.policy, optimizer, Accelerator())
        self.settings = UpdateSettings(1, "units", 64, 1.0, BUDGET, LOGITS, 1.0, LENGTHS[1])

    def packed(self) -> float:
        """Ours: every token once."""
        return self.learner.accumulate(self.method, self.batch, self.settings)[0]

    def plain(self) -> float:
        """Theirs: a sequence a unit."""
        return naive.accumulate(self.policy, self.method, self.flat, BUDGET, LOGITS)

    @property
    def limit(self) -> float:
        """Tokens of all sequences over tokens of the packs: the most that packing could gain."""
        packed = sum(len(pack.token_T) for pack in packs(self.batch.shares, BUDGET))
        return sum(len(flat.tokens) for flat in self.flat) / packed


def trees_of(
    method: Method, count: int, vocabulary: int, shape: tuple[int, int, int] = (4, 3, 4)
) -> list[CreditedTree]:
    """Trees of one shape."""
    rng = np.random.default_rng(0)
    return made.with_credit(method, [made.tree(*shape, PROMPT, LENGTHS, rng, vocabulary) for _ in range(count)], rng)


def whole_tree(size: made.Size, shape: tuple[int, int, int] = (4, 3, 4)) -> Update:
    """One tree, all its blocks."""
    method = made.methods()["datpo"]
    trees = trees_of(method, 1, size.vocabulary, shape)
    return Update(size, method, trees, units_of(trees))


def random_units(name: str, size: made.Size = made.ONE_M) -> Update:
    """64 random blocks or leaf paths of a step's 16 trees."""
    method = made.methods()[name]
    trees = trees_of(method, 16, size.vocabulary)
    units = units_of(trees)
    chosen = np.random.default_rng(1).permutation(len(units))[:64]
    return Update(size, method, trees, [units[i] for i in chosen])


def group(size: made.Size = made.ONE_M) -> Update:
    """GRPO's 16 samples of one problem with a long prompt."""
    method, rng = made.methods()["grpo"], np.random.default_rng(0)
    trees = made.with_credit(method, [made.tree(16, 0, 0, 500, LENGTHS, rng, size.vocabulary)], rng)
    return Update(size, method, trees, units_of(trees))


def rows() -> Iterator[Callable[[], Row]]:
    """Each row, to be made when it is called."""

    def row(
        name: str, against: str, update: Callable[[], Update], least: float, repeats: int, within: float | None
    ) -> Row:
        it = update()
        return compared(name, against, cpu(it.packed), cpu(it.plain), least, repeats, it.limit, within)

    def large() -> Row:
        """Minutes long: once, without a round before it, on two threads and by the clock."""
        it, name = whole_tree(made.HUNDRED_M), f"update, a whole (4,3,4) tree, 100M, two threads, one run ({PATHS})"
        torch.set_num_threads(2)
        row = compared(name, own, wall(it.packed), wall(it.plain), 1.8, 1, it.limit, 1.35, warm=False, unit="s")
        torch.set_num_threads(1)
        return row

    own = "each block its own sequence (released way)"
    yield lambda: row(f"update, a whole (4,3,4) tree, 1M ({PATHS})", own, lambda: whole_tree(made.ONE_M), 1.8, 5, 1.35)
    yield large
    yield lambda: row("update, 64 random blocks of 16 trees, 1M", own, lambda: random_units("datpo"), 0, 3, 1.35)
    yield lambda: row(
        "update, 64 random leaf paths of 16 trees, 1M",
        "each path its own sequence",
        lambda: random_units("treerl"),
        0,
        3,
        1.35,
    )
    yield lambda: row(
        "update, 16 samples on a prompt of 500 tokens, 1M", "padded batch, a row per sample", group, 1.3, 5, None
    )
