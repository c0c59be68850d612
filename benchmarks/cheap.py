"""What needs no model: checking answers, metrics, blocks and credit, and the workflow's own planning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from tests.workflow.project import stubbed_project

from benchmarks import made
from benchmarks.measure import Row, compared, cpu, single, wall
from datpo.core.problem import Problem
from datpo.core.tree import RolloutTree
from datpo.evaluate.bootstrap import intervals
from datpo.evaluate.metrics import pass_at_k
from datpo.evaluate.verify.boxed import find_answer
from datpo.evaluate.verify.math import Mathematics
from datpo.evaluate.verify.normalise import normalise
from datpo.search.budget import Progress

ROOT = Path(__file__).resolve().parents[1]


def checker(file: Path) -> Row:
    """Our checker with its workers, against Math-Verify in this process with its own time limits."""
    from math_verify import parse, verify

    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    items = [
        (Problem(str(row["id"]), "", row["gold"]), row["response"]) for row in read if find_answer(row["response"])
    ]
    Mathematics().grade_all([(Problem("", "", f"f(x)+{i}"), rf"\boxed{{f(x)+{i}}}+g(y)") for i in range(8)])

    def ours() -> None:
        normalise.cache_clear()
        Mathematics().grade_all(items)

    def theirs() -> None:
        for problem, response in items:
            verify(parse(f"${problem.answer}$"), parse(response))

    row = compared(
        f"{len(items)} boxed answers checked", "Math-Verify in process", wall(ours), wall(theirs), 1, 3, unit="s"
    )
    print(f"  answers a second: {len(items) / row.ours:,.0f} (ours)")
    return row


def statistics() -> Row:
    """pass@k of every k with its intervals."""
    right = np.random.default_rng(0).integers(0, 257, 500)
    ks = np.arange(1, 257)
    return single(
        "pass@k with intervals, 500 problems x 256 samples, all k",
        "",
        cpu(lambda: intervals(pass_at_k(np.full(500, 256), right, ks))),
        2,
        "CPU s",
        3,
    )


def credit() -> Row:
    """Blocks derived anew, and DATPO's credit."""
    rng = np.random.default_rng(0)
    method = made.methods()["datpo"]
    trees = [made.tree(4, 3, 4, 120, (300, 400), rng, 1024) for _ in range(16)]

    def work() -> None:
        for tree in trees:
            fresh = RolloutTree(tree.problem, tree.prompt, tree.branches)
            method.credit(fresh, Progress(0, 0.5, {}), np.zeros(len(fresh.blocks)))

    return single("blocks and credit of 16 trees of 52 leaves", "", cpu(work), 20, "CPU ms", 5, 1000)


def plan() -> Row:
    """`snakemake -n` of the paper's scale."""
    return single(
        "dry-run of the paper's scale", "", wall(lambda: _snakemake("-n", "--config", "scale=paper")), 10, "s", 1
    )


def nothing_to_do(folder: Path) -> Row:
    """A second start after everything at the scale `ci` is there; stand-ins did the work."""
    tree = stubbed_project(folder / "finished")
    start = partial(tree.snakemake, "--cores", "2", "--config", "scale=ci")
    start()
    return single("a run with nothing to do (ci, two runs)", "", wall(start), 5, "s", 1)


def _snakemake(*arguments: str) -> None:
    python = Path(sys.executable)
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [str(python.parent / "snakemake"), "--quiet", "all", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def rows(answers: Path | None, folder: Path) -> Iterator[Callable[[], Row]]:
    """Each row, to be made when it is called; the checker's if there is a file of {id, gold, response}."""
    if answers is not None:
        yield lambda: checker(answers)
    yield statistics
    yield credit
    yield plan
    yield lambda: nothing_to_do(folder)
