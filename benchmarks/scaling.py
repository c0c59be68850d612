"""How the cost of an update and of sampling grows, and what threads do to it: tables without a target.

python -m benchmarks.scaling [FOLDER]        writes scaling.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks import made
from benchmarks.generation import Branches
from benchmarks.measure import cpu
from benchmarks.update import Update
from datpo.learn.minibatch import units_of
from datpo.learn.pack import packs

SHAPES = {4: (4, 0, 0), 13: (1, 3, 4), 52: (4, 3, 4), 100: (4, 6, 4), 200: (4, 7, 7)}  # leaves -> a tree's numbers
LENGTHS = (100, 200, 400, 800, 1600)
HEADER = ("", "unique tokens", "CPU s", "ms per 1,000 tokens")


def update_of(shape: tuple[int, int, int], length: int, trees: int = 1) -> Update:
    """Whole trees with paths of about `length` tokens."""
    method, rng = made.methods()["datpo"], np.random.default_rng(0)
    lengths = (length * 6 // 7, length * 8 // 7)
    grown = [made.tree(*shape, 120, lengths, rng, made.ONE_M.vocabulary) for _ in range(trees)]
    credits = made.with_credit(method, grown, rng)
    return Update(made.ONE_M, method, credits, units_of(credits))


def update_row(name: str, update: Update) -> list[str]:
    """Tokens, seconds, and their ratio."""
    tokens = sum(len(pack.token_T) for pack in packs(update.batch.shares, update.settings.token_budget))
    work = cpu(update.packed)
    work()
    seconds = min(work() for _ in range(2))
    return [name, f"{tokens:,}", f"{seconds:.2f}", f"{1e6 * seconds / tokens:.0f}"]


def generation_row(problems: int) -> list[str]:
    """The branches of so many (4,3,4) trees."""
    it = Branches(problems)
    tokens = sum(request.max_new_tokens for request in it.requests)
    work = cpu(it.reused)
    seconds = min(work() for _ in range(2))
    return [f"{48 * problems} branches", f"{tokens:,}", f"{seconds:.2f}", f"{1e6 * seconds / tokens:.0f}"]


def thread_rows() -> list[list[str]]:
    """Seconds on the clock for an update of a (4,3,4) tree, one job alone and two side by side."""
    rows = []
    for jobs in (1, 2):
        for threads in (1, 2):
            began = time.perf_counter()
            running = [_job(threads) for _ in range(jobs)]
            seconds = [float(job.communicate()[0]) for job in running]
            rows.append([f"{jobs} job(s), {threads} thread(s) each", f"{np.mean(seconds):.2f}"])
            print(rows[-1], f"{time.perf_counter() - began:.0f} s", flush=True)
    return rows


def _job(threads: int) -> subprocess.Popen[str]:
    script = (
        "import time; from benchmarks.scaling import SHAPES, update_of; u = update_of(SHAPES[52], 350); u.packed();"
        "t = time.perf_counter(); [u.packed() for _ in range(5)]; print((time.perf_counter() - t) / 5)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)


def main(out: Path) -> None:
    """Measure and write."""
    parts = [
        ("Update, by leaves (paths of about 350 tokens)", HEADER, _by_leaves()),
        ("Update, by length (13 leaves)", HEADER, _by_length()),
        ("Update, by trees (52 leaves each)", HEADER, _by_trees()),
        ("Sampling of branches", HEADER, [generation_row(problems) for problems in (1, 2, 4, 8)]),
        ("Threads: an update of 52 leaves", ("", "seconds on the clock"), thread_rows()),
    ]
    out.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(f"### {title}\n\n{_pipe(header, rows)}" for title, header, rows in parts)
    (out / "scaling.md").write_text(text + "\n", encoding="utf-8")
    print(text)


def _by_leaves() -> list[list[str]]:
    return [update_row(f"{leaves} leaves", update_of(shape, 350)) for leaves, shape in SHAPES.items()]


def _by_length() -> list[list[str]]:
    return [update_row(f"{length} tokens", update_of(SHAPES[13], length)) for length in LENGTHS]


def _by_trees() -> list[list[str]]:
    return [update_row(f"{trees} trees", update_of(SHAPES[52], 350, trees)) for trees in (1, 2, 4)]


def _pipe(header: Iterable[str], rows: list[list[str]]) -> str:
    return str(tabulate(rows, list(header), tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/benchmarks"))
