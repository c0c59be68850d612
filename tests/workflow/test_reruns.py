"""What an edit plans again, and what it leaves alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.workflow.project import TRAINING, Tree, stand_in_conda, stubbed_project

CI = ("--config", "scale=ci")


def test_a_second_run_does_nothing(finished: Tree) -> None:
    assert finished.plan(*CI) == {}


def test_the_settings_of_a_run_are_one_file_with_its_slice(finished: Tree) -> None:
    text = (finished.root / "results/ci/ci/datpo/datpo/seed0/config.yaml").read_text()
    assert "alpha:\n  - 0.2\n  - 0.0\n" in text
    assert "bootstrap" not in text
    assert "moves-hard" not in text


@pytest.mark.parametrize(
    ("overrides", "planned"),
    [
        ("evaluation={bootstrap: 50}", {"metrics", "metrics_config", "table2", "figure_passk", "all"}),
        ("jobs={memory_gb: 9, threads: 2}", set()),
        ("difficulty={seed: 5}", {"difficulty_config", "split_by_difficulty", "all"}),
    ],
)
def test_an_edit_of_an_unrelated_key_trains_and_samples_nothing(
    finished: Tree, overrides: str, planned: set[str]
) -> None:
    assert set(finished.plan(*CI, overrides)) == planned


def test_a_new_k_counts_again_and_neither_samples_nor_scores(finished: Tree) -> None:
    with finished.edited("config/scales/ci.yaml", "k: [1, 2, 4, 8]", "k: [1, 2, 3, 4, 8]"):
        plan = finished.plan(*CI)
    assert set(plan) == {"metrics", "metrics_config", "table2", "figure_passk", "all"}
    assert plan["metrics"] == 9


def test_a_changed_number_trains_its_own_run_only(finished: Tree) -> None:
    plan = finished.plan(*CI, "runs={datpo: {numbers: {max_forks: 2}}}")
    assert plan["train_datpo"] == plan["train_config"] == 1
    assert not {"train_grpo", "pretrain", "data", "split_by_difficulty"} & set(plan)
    assert plan["sample"] == plan["metrics"] == 3


def test_another_run_and_another_benchmark_train_nothing_that_is_there(finished: Tree) -> None:
    plan = finished.plan(*CI, "runs={datpo_plain: {method: datpo, numbers: {alpha: [0.0, 0.0]}}}")
    assert plan["train_datpo"] == 1
    assert "train_grpo" not in plan
    plan = finished.plan(*CI, "benchmarks={moves-xl: {problems: {levels: [8], count: 4}, samples: 4, k: [1, 4]}}")
    assert not TRAINING & set(plan)
    assert plan["sample"] == 3


def test_a_comment_in_the_source_plans_nothing(finished: Tree) -> None:
    for name in ("src/datpo/config.py", "src/datpo/methods/datpo.py", "src/datpo/learn/trainer.py"):
        with (finished.root / name).open("a") as module:
            module.write("# a remark\n")
    assert finished.plan(*CI) == {}


def test_touched_files_train_nothing(finished: Tree) -> None:
    later = time.time() + 5
    touched = [*(finished.root / "config").rglob("*"), *(finished.root / "results").rglob("*")]
    touched = [file for file in touched if not file.name.startswith(".snakemake")]
    before = {file: file.stat().st_mtime for file in touched}
    try:
        for number, file in enumerate(touched):
            os.utime(file, (later + number, later + number))
        assert not TRAINING & set(finished.plan(*CI))
    finally:
        for file, stamp in before.items():
            os.utime(file, (stamp, stamp))


def test_a_bumped_pin_trains_nothing(finished: Tree) -> None:
    with finished.edited("envs/learn.yaml", "numpy==", "numpy==9."):
        assert finished.plan(*CI) == {}


def test_a_bumped_pin_trains_nothing_in_conda_environments_either(tmp_path: Path) -> None:
    tree = stubbed_project(tmp_path / "tree")
    home = stand_in_conda(tmp_path / "conda")
    target = "results/ci/ci/grpo/grpo/seed0/metrics.jsonl"
    asked = ("--use-conda", target, *CI)
    tree.snakemake("--cores", "2", *asked, PATH=f"{home}:{os.environ['PATH']}")
    assert len((tree.root / "conda.txt").read_text().splitlines()) == 2  # data and learn
    with tree.edited("envs/learn.yaml", "numpy==", "numpy==9."):
        assert tree.plan(*asked, PATH=f"{home}:{os.environ['PATH']}") == {}
        snakemakes_own = ("--rerun-triggers", "software-env")
        assert "train_grpo" in tree.plan(*asked, *snakemakes_own, PATH=f"{home}:{os.environ['PATH']}")
