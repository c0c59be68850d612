"""Peak memory of an update, each measured in a process of its own.

    python -m benchmarks.memory SIDE LEAVES VOCABULARY BUDGET       SIDE: packed | plain

prints the bytes by which the process grew beyond what it held with model, gradients and optimiser state in place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import made, naive, update
from benchmarks.measure import Row

SHAPES = {13: (1, 3, 4), 52: (4, 3, 4), 200: (4, 7, 7)}
BUDGET = 4096
# What is freed goes back at once; else the allocator's leftovers count, which grow with the number of packs.
TIDY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
VOCABULARIES = (32_000, 152_000)


def peak(side: str, leaves: int, vocabulary: int, budget: int) -> int:
    """Bytes beyond model, gradients and AdamW's moments at the highest point of a mini-batch."""
    it = update.whole_tree(replace(made.ONE_M, vocabulary=vocabulary), SHAPES[leaves])
    it.settings = replace(it.settings, token_budget=budget)
    it.learner.clear_gradients()
    it.learner.optimizer.step()  # this makes the moments
    before = resident("VmRSS")
    if side == "packed":
        it.packed()
    else:
        naive.accumulate(it.policy, it.method, it.flat, budget, update.LOGITS)
    return resident("VmHWM") - before


def resident(kind: str) -> int:
    """Bytes of this process now (VmRSS) or at its highest (VmHWM; what getrusage says would include the parent's)."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind)]
    return int(line.split()[1]) * 1024


@cache
def measured(side: str, leaves: int, vocabulary: int, budget: int = BUDGET) -> float:
    """`peak` in a fresh process, in MB."""
    command = [sys.executable, "-m", "benchmarks.memory", side, str(leaves), str(vocabulary), str(budget)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **TIDY})
    return int(found.stdout.split()[-1]) / 1e6


def trl_head(python: Path, vocabulary: int) -> tuple[float, str]:
    """The same of a padded micro-batch of as many tokens through TRL's fused head, in MB; and its versions."""
    with TemporaryDirectory() as folder:
        made.policy(replace(made.ONE_M, vocabulary=vocabulary)).model.save_pretrained(folder)
        command = [str(python), str(Path(__file__).with_name("trl_head.py")), folder, str(BUDGET)]
        found = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **TIDY})
    versions, grown = found.stdout.splitlines()[-2:]
    return int(grown) / 1e6, versions


def rows(trl: Path | None) -> Iterator[Callable[[], Row]]:
    """Each row, to be made when it is called."""

    def flat(name: str, small: float, large: float, most: float) -> Row:
        met = large / small <= most
        return Row(name, "itself, smaller", large, small, "MB", small / large, None, None, f">= {1 / most:g}x", met)

    def leaves() -> Row:
        found = [measured("packed", leaves, 1024, 2048) for leaves in SHAPES]
        print("  MB at 13, 52, 200 leaves:", ", ".join(f"{mb:.0f}" for mb in found))
        return flat("peak memory, 200 leaves against 13 (budget 2,048 tokens)", found[0], found[-1], 1.25)

    def vocabulary() -> Row:
        small, large = (measured("packed", 52, vocabulary) for vocabulary in VOCABULARIES)
        return flat("peak memory, vocabulary 152k against 32k (budget 4,096)", small, large, 1.25)

    def against(name: str, theirs: Callable[[], tuple[float, str]], least: float | None) -> Row:
        ours, (other, peer) = measured("packed", 52, VOCABULARIES[1]), theirs()
        target = "" if least is None else f">= {least:g}x"
        met = least is None or other >= least * ours
        return Row(
            "peak memory, vocabulary 152k (budget 4,096)",
            name,
            ours,
            other,
            "MB",
            other / ours,
            None,
            None,
            target,
            met,
            peer=peer,
        )

    yield leaves
    yield vocabulary
    yield lambda: against(
        "each block its own sequence, same budget", lambda: (measured("plain", 52, VOCABULARIES[1]), ""), None
    )
    if trl is not None:
        yield lambda: against("TRL's fused head, 4,096 tokens", lambda: trl_head(trl, VOCABULARIES[1]), 2)


if __name__ == "__main__":
    print(peak(sys.argv[1], *map(int, sys.argv[2:])))
