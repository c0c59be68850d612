"""What an edit plans again, and what it leaves alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.workflow.project import TRAINING, Tree

CI = ("--config", "scale=ci")
AAA = "benchmarks={aaa: {problems: {levels: [8], count: 4}, samples: 4, k: [1, 4]}}"  # before all others by name
SHOWN = {"write_table2", "draw_passk", "draw_curves", "draw_gained", "run_card"}


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
        (
            "evaluation={bootstrap: 50}",
            {"metrics", "metrics_config", "write_table2", "draw_passk", "draw_gained", "run_card", "all"},
        ),
        ("jobs={memory_gb: 9, threads: 2, retries: 1}", set()),
        (
            "evaluation={truncated: graded}",
            {
                "score",
                "score_config",
                "metrics",
                "write_table2",
                "draw_passk",
                "draw_gained",
                "run_card",
                "split_by_difficulty",
                "all",
            },
        ),
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
    assert set(plan) == {"metrics", "metrics_config", "write_table2", "draw_passk", "draw_gained", "run_card", "all"}
    assert plan["metrics"] == 9


def test_a_changed_number_trains_its_own_run_only(finished: Tree) -> None:
    plan = finished.plan(*CI, "runs={datpo: {numbers: {max_forks: 2}}}")
    assert plan["train_datpo"] == plan["train_config"] == 1
    assert not {"train_grpo", "pretrain", "problems", "split_by_difficulty"} & set(plan)
    assert plan["sample"] == plan["metrics"] == 3


def test_another_run_and_another_benchmark_train_nothing_that_is_there(finished: Tree) -> None:
    plan = finished.plan(*CI, "runs={datpo_plain: {method: datpo, numbers: {alpha: [0.0, 0.0]}}}")
    assert plan["train_datpo"] == 1
    assert "train_grpo" not in plan
    plan = finished.plan(*CI, AAA)
    assert not TRAINING & set(plan)
    assert plan["problems"] == plan["problems_config"] == 1
    assert plan["sample"] == plan["score"] == plan["metrics"] == 3


def test_a_benchmark_that_fails_takes_nothing_with_it(finished: Tree, tmp_path: Path) -> None:
    tree = finished.copied(tmp_path / "tree")
    sets = sorted((tree.root / "results/ci/data").rglob("*.jsonl"))
    before = [file.stat().st_mtime_ns for file in sets]
    said = tree.snakemake("--cores", "2", "--keep-going", *CI, AAA, fails=True, STUB_FAIL="benchmarks/aaa")
    assert "benchmarks/aaa has no more luck" in said
    assert [file.stat().st_mtime_ns for file in sets] == before
    assert set(tree.plan(*CI)) <= {"table_config", *SHOWN, "all"}


def shown(tree: Tree) -> set[str]:
    """The files behind the table; its stand-in lists them."""
    return set((tree.root / "results/ci/tables/table2.csv").read_text().split())


def test_one_run_brings_the_table_up_to_date(finished: Tree, tmp_path: Path) -> None:
    """Less of everything, then an edited samples file beside another benchmark, the order in which it once failed."""
    tree = finished.copied(tmp_path / "tree")
    assert any("/grpo/" in name for name in shown(tree))

    less = (*CI, "runs={grpo: null}", "benchmarks={moves-hard: null}")
    assert set(tree.plan(*less)) == {"table_config", *SHOWN, "all"}
    tree.snakemake("--cores", "2", *less)
    assert tree.plan(*less) == {}
    assert len(shown(tree)) == 4
    assert not any("/grpo/" in name or "moves-hard" in name for name in shown(tree))

    samples = tree.root / "results/ci/ci/datpo/datpo/seed0/samples/moves-easy.jsonl"
    samples.write_text("edited\n")
    scores = samples.parent.with_name("scores") / samples.name
    before = scores.stat().st_mtime_ns
    tree.snakemake("--cores", "2", *CI, AAA)
    assert scores.stat().st_mtime_ns > before
    assert len(shown(tree)) == 3 * 4
    assert tree.plan(*CI, AAA) == {}


def test_an_edited_file_of_problems_is_noticed(finished: Tree, tmp_path: Path) -> None:
    tree = finished.copied(tmp_path / "tree")
    own = (*CI, "benchmarks={own: {problems: {path: own.jsonl}, samples: 4, k: [1]}}")
    problem = '{"id": "a", "problem": "p", "answer": "%s"}\n'
    (tree.root / "own.jsonl").write_text(problem % "1")
    tree.snakemake("--cores", "2", *own)
    assert tree.plan(*own) == {}
    (tree.root / "own.jsonl").write_text(problem % "2")
    plan = tree.plan(*own)
    assert plan["problems"] == 1
    assert plan["score"] == 3
    assert not {"sample", *TRAINING} & set(plan)


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
