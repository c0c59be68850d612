"""How jobs run: threads, logs, failures, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.workflow.project import Tree, stubbed_project

CI = ("--config", "scale=ci")
WORK = "results/ci/ci/grpo/grpo/seed0/work"
RETRIES = "jobs={retries: 2}"
TRAINED = ("results/ci/ci/grpo/grpo/seed0/metrics.jsonl", "results/ci/ci/datpo/datpo/seed0/metrics.jsonl")


@pytest.fixture
def stubbed(tmp_path: Path) -> Tree:
    return stubbed_project(tmp_path)


def trainings(tree: Tree) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tree.root / "trained.txt").read_text().splitlines()]


def test_two_trainings_run_side_by_side_on_one_thread_each(stubbed: Tree) -> None:
    said = stubbed.snakemake("--cores", "2", *TRAINED, *CI, STUB_SLEEP="4")
    first, second = trainings(stubbed)
    assert max(first["began"], second["began"]) < min(first["ended"], second["ended"])
    calls = (stubbed.root / "calls.txt").read_text().splitlines()
    assert all(call.endswith("threads 1") for call in calls)
    assert "train: 100%" in said
    assert "train: 100%" in (stubbed.root / "results/ci/ci/grpo/grpo/seed0/logs/train.log").read_text()


def test_a_failed_training_keeps_its_state_and_the_others_results(stubbed: Tree) -> None:
    said = stubbed.snakemake("--cores", "1", "--keep-going", *TRAINED, *CI, RETRIES, fails=True, STUB_FAIL="datpo")
    run = stubbed.root / "results/ci/ci/datpo/datpo/seed0"
    assert said.count("datpo train: datpo has no more luck") == 3  # the first attempt and two retries
    assert (run / "work/state").exists()
    assert not (run / "checkpoint").exists()
    assert not (run / "metrics.jsonl").exists()
    assert "no more luck" in (run / "logs/train.log").read_text()
    assert [training["run"] for training in trainings(stubbed)] == ["grpo"]

    said = stubbed.snakemake("--cores", "1", *TRAINED, *CI, fails=True, STUB_FAIL="datpo")
    assert said.count("datpo train: datpo has no more luck") == 1  # on one's own machine nothing is tried again
    stubbed.snakemake("--cores", "1", *TRAINED, *CI)
    assert [(training["run"], training["resumed"]) for training in trainings(stubbed)] == [
        ("grpo", False),
        ("datpo", True),
    ]


def test_a_score_that_fails_is_tried_again_too(stubbed: Tree) -> None:
    scores = "results/ci/ci/base/base/seed0/scores/moves-easy.jsonl"
    fails = '"score": lambda options: fail_if_told("score", "score"),\n        "difficulty"'
    with stubbed.edited("src/datpo/__main__.py", '"difficulty"', fails):
        said = stubbed.snakemake("--cores", "1", scores, *CI, RETRIES, fails=True, STUB_FAIL="score")
    assert said.count("datpo score: score has no more luck") == 3


def test_every_job_that_goes_to_a_cluster_says_what_it_needs_and_is_tried_again() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in Path("rules").rglob("*.smk"))
    rules = re.split(r"^rule ", text, flags=re.M)
    sent = [rule for rule in rules if "\n    shell:" in rule and "\n    localrule: True" not in rule]
    assert len(sent) > 20
    for rule in sent:
        assert re.search(r"\n    retries: RETRIES\n", rule), rule
        assert re.search(r"\n        \*\*(model|light)_job\(", rule), rule


@contextmanager
def training_under_way(tree: Tree) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Snakemake in a process of its own, at a training that waits: Snakemake and the training's process id."""
    running = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", TRAINED[0], *CI, RETRIES],
        cwd=tree.root,
        env={**os.environ, "STUB_WAIT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    waiting = tree.root / WORK / "pid"
    try:
        deadline = time.time() + 120
        while not waiting.exists() and time.time() < deadline:
            time.sleep(0.1)
        yield running, int(waiting.read_text())
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)


def test_a_training_stopped_by_sigterm_is_waited_for_and_resumed(stubbed: Tree) -> None:
    with training_under_way(stubbed) as (running, job):
        for process in (parent_of(job), job):  # the job's shell too, as a cluster does it
            os.kill(process, signal.SIGTERM)
        said, _ = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert "stopped by SIGTERM, state written" in said
    assert (stubbed.root / WORK / "last-words").exists()
    assert [training["resumed"] for training in trainings(stubbed)] == [True]


def test_after_a_kill_of_everything_the_same_command_goes_on(stubbed: Tree) -> None:
    with training_under_way(stubbed) as (running, _):
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate(timeout=60)
    calls = stubbed.root / "calls.txt"
    before = calls.read_text().splitlines()
    stubbed.snakemake("--unlock", *CI)
    stubbed.snakemake("--cores", "1", TRAINED[0], *CI)
    assert [training["resumed"] for training in trainings(stubbed)] == [True]
    again = calls.read_text().splitlines()[len(before) :]
    assert [call.split()[0] for call in again] == ["train"]


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_a_report_holds_the_table_and_the_figures_with_their_captions(finished: Tree) -> None:
    finished.snakemake("--report", "results/ci/report.html", *CI)
    page = (finished.root / "results/ci/report.html").read_text()
    for name in ("table2.html", "pass_at_k.svg", "learning_curves_steps.svg"):
        assert name in page
    assert "training seeds 0." in page
