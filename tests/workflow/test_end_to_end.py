"""The whole path for real, small: from nothing to the table, as a new user runs it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from datpo.core.files import read_jsonl
from tests.workflow.project import copy_project

# A method without forks, one whose rollouts wait a step, and one that embeds: the others take the same ways.
CI = ("--cores", "2", "--config", "scale=ci", "runs={dr_grpo: null, treerl: null}")
ONE_BENCHMARK = "benchmarks={moves-easy: null, moves-hard: null}"


def test_scale_ci_runs_from_nothing_to_the_table_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    tree = copy_project(tmp_path / "project")
    tree.snakemake(*CI)
    results = tree.root / "results/ci"

    with (results / "tables/table2.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["Base", "GRPO", "AttnRL", "DATPO"]
    assert all(0 <= float(row["average_avg"]) <= float(row["average_pass"]) <= 100 for row in rows)
    assert float(rows[0]["average_pass"]) > 0  # else the model speaks no puzzles, and nothing was exercised
    assert "| DATPO " in (results / "tables/table2.md").read_text()
    assert "\\toprule" in (results / "tables/table2.tex").read_text()
    for figure in ("pass_at_k", "learning_curves"):
        assert (results / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (results / f"figures/{figure}.svg").read_text()
    assert (results / "ci/difficulty/counts.csv").read_text().startswith("subset,")
    assert "100%" in (results / "ci/datpo/datpo/seed0/logs/train.log").read_text()

    assert tree.plan(*CI) == {}
    tree.snakemake("--report", "results/ci/report.html", *CI)
    assert (results / "report.html").stat().st_size > 100_000


@pytest.mark.slow
def test_checkpoints_at_equal_budgets_are_evaluated_each_at_its_own(tmp_path: Path) -> None:
    tree = copy_project(tmp_path / "project")
    runs = "runs={grpo: null, dr_grpo: null, attnrl: null, datpo: null}"
    tree.snakemake(
        *CI[:3], "scale=ci", runs, ONE_BENCHMARK, "train={duration: {steps: 1, updates: 20}}", "--", "budgets"
    )
    tables = tree.root / "results/ci/tables"
    log = read_jsonl(tree.root / "results/ci/ci/treerl/treerl/seed0/metrics.jsonl")
    for unit in ("steps", "updates"):
        step = next(row["step"] for row in log if unit in row["reached"])
        with (tables / f"at-{unit}/table2.csv").open(newline="") as file:
            base, row = csv.DictReader(file)
        assert (base["label"], row["label"], float(row["steps"])) == ("Base", "TreeRL", step)
        assert f"at equal {unit}" in (tables / f"at-{unit}/table2.md").read_text()
    assert not (tables / "table2.csv").exists()
