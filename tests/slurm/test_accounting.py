"""The workflow for real through the Slurm profile, from nothing to Table 2, where every job has an account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.site import move_in, running
from tests.workflow.project import copy_project, without_studies

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

CONFIG = (
    *("--config", "scale=ci", "runs={datpo: null, dr_grpo: null, treerl: null, attnrl: null}"),
    *("benchmarks={moves-easy: null, moves-hard: null}", "jobs={gpus: 1, retries: 3}"),
)


def test_everything_for_real_from_nothing_to_the_table_with_accounting(accounted: Cluster, tmp_path: Path) -> None:
    tree = copy_project(tmp_path / "project")
    without_studies(tree)
    move_in(tree, accounted)
    with running(tree, accounted, *CONFIG, "--", "table2") as run:
        run.finish(1200)
        said = accounted.run("sacct", "--allocations", "--noheader", "--format=Account,Partition,State")
    assert {tuple(line.split()) for line in said.splitlines()} == {
        ("tests", "gpu", "COMPLETED"),
        ("tests", "cpu", "COMPLETED"),
    }
    table = (tree.root / "results/ci/tables/table2.md").read_text()
    assert "| GRPO " in table
    assert run.tree.plan(*CONFIG, "--", "table2") == {}
