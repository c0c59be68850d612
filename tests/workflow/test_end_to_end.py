"""The whole path for real, small: from nothing to the table, as a new user runs it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from datpo.core.files import read_jsonl
from tests.workflow.project import Tree, copy_project, without_studies

# A method without forks, one whose rollouts wait a step, and one that embeds: the others take the same ways.
CI = ("--cores", "2", "--config", "scale=ci", "runs={dr_grpo: null, treerl: null}")
ONE_BENCHMARK = "benchmarks={moves-easy: null, moves-hard: null}"


def test_scale_ci_runs_from_nothing_to_the_table_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    tree = copy_project(tmp_path / "project")
    without_studies(tree)
    tree.snakemake(*CI)
    results = tree.root / "results/ci"

    with (results / "tables/table2.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["Base", "GRPO", "AttnRL", "DATPO"]
    assert all(0 <= float(row["average_avg"]) <= float(row["average_pass"]) <= 100 for row in rows)
    assert float(rows[0]["average_pass"]) > 0  # else the model speaks no puzzles, and nothing was exercised
    assert "| DATPO " in (results / "tables/table2.md").read_text()
    assert "\\toprule" in (results / "tables/table2.tex").read_text()
    for figure in ("pass_at_k", "learning_curves_tokens", "gained"):
        assert (results / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (results / f"figures/{figure}.svg").read_text()
    assert (results / "ci/difficulty/counts.csv").read_text().startswith("subset,")
    assert "100%" in (results / "ci/datpo/datpo/seed0/logs/train.log").read_text()

    assert tree.plan(*CI) == {}
    tree.snakemake("--report", "results/ci/report.html", *CI)
    assert (results / "report.html").stat().st_size > 100_000


@pytest.mark.slow
def test_every_table_and_figure_of_the_paper_is_made_for_real_and_its_numbers_lead_back_to_their_files(
    tmp_path: Path,
) -> None:
    """At scale ci, alone to begin with and then together; the report holds them."""
    tree = copy_project(tmp_path / "project")
    scale = ("--cores", "2", "--config", "scale=ci")
    tree.snakemake(*scale, "--", "table12", "figure4")
    tree.snakemake(*scale)
    assert tree.plan(*scale[2:]) == {}
    results = tree.root / "results/ci"
    for number in range(1, 15):
        for ending in ("csv", "md", "tex", "html"):
            assert (results / f"tables/table{number}.{ending}").stat().st_size > 100, number
    for name in [*(f"figure{number}" for number in range(1, 12)), "figure1_updates"]:
        assert (results / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (results / f"figures/{name}.svg").read_text()
    assert len(list((results / "viewer").glob("tree-*.html"))) == 4
    assert "Jensen" in (results / "theory/theory.html").read_text()
    for table in sorted((results / "tables").glob("table*.csv")):
        if table.stem != "table2":
            assert trace_all(tree, table) > 0
    tree.snakemake("--report", "results/ci/report.html", *scale[2:])
    report = (results / "report.html").read_text(encoding="utf-8")
    assert all(f"table{number}.html" in report for number in range(1, 15))
    assert all(f"figure{number}.svg" in report for number in range(1, 12))


def trace_all(tree: Tree, table: Path) -> int:
    """How many numbers of a table were counted anew from their raw files, all with the same result."""
    traced = subprocess.run(
        [sys.executable, "-m", "datpo", "trace", str(table)],
        cwd=tree.root,
        env={**os.environ, "PYTHONPATH": str(tree.root / "src")},
        capture_output=True,
        check=True,
        text=True,
    )
    rows = [json.loads(line) for line in traced.stdout.splitlines()]
    assert all(row["agrees"] for row in rows)
    return len(rows)


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
