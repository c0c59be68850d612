"""The workflow through the Slurm profile to Table 2, and a job that has to make room on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.site import Running, move_in, never_two_at_once, running
from tests.workflow.project import stubbed_project

pytestmark = pytest.mark.xdist_group("slurm")

CONFIG = ("--config", "scale=ci", "runs={datpo: null}", "benchmarks={moves-easy: null, moves-hard: null}")
GPUS = "jobs={gpus: 1, retries: 3}"
Jobs = list[dict[str, str]]
TABLE = "tables/table2.csv"
OTHER_SEED = Path("results/ci/ci/grpo/grpo/seed1")


@pytest.fixture(scope="module")
def made_room(slurm: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Jobs]]:
    """Stand-ins for the work. Made before are all but some scores and what follows; one more seed is asked for.

    The GPUs belong to others, who need them in the middle of its training.
    """
    tree = stubbed_project(tmp_path_factory.mktemp("site") / "project")
    tree.snakemake("--cores", "2", *CONFIG, "--", "table2")
    for file in ("ci/base/base/seed0/scores/moves-medium.jsonl", "ci/base/base/seed0/metrics/moves-medium.json", TABLE):
        (tree.root / "results/ci" / file).unlink()
    move_in(tree, slurm, gpus="scavenge")
    with running(tree, slurm, *CONFIG, GPUS, "--", "table2", str(OTHER_SEED / "metrics.jsonl"), STUB_WAIT="1") as run:
        run.wait_for((tree.root / OTHER_SEED / "work/pid").exists, "a training under way")
        slurm.take_all_gpus()
        run.queued_again()
        run.finish()
        yield run, [job for job in slurm.jobs().values() if job.get("Comment", "").startswith("rule_")]


def test_the_workflow_runs_through_the_profile_to_the_table(made_room: tuple[Running, Jobs]) -> None:
    run, jobs = made_room
    assert (run.tree.root / "results/ci" / TABLE).exists()
    on_gpus = [job for job in jobs if job.get("TresPerJob") == "gres:gpu:pretended:1"]
    on_cpus = [job for job in jobs if job not in on_gpus]
    assert (rules(on_gpus), {job["Partition"] for job in on_gpus}) == (["train_grpo"], {"scavenge"})
    assert (rules(on_cpus), {job["Partition"] for job in on_cpus}) == (["metrics", "score", "write_table2"], {"cpu"})


def test_a_job_that_made_room_goes_on_once_and_is_none_of_the_retries(made_room: tuple[Running, Jobs]) -> None:
    run, jobs = made_room
    trainings = [job for job in jobs if job["Comment"].startswith("rule_train")]
    assert [(job["Restarts"], job["JobState"]) for job in trainings] == [("1", "COMPLETED")]
    assert never_two_at_once(run.tree) == 2
    trained = [json.loads(line) for line in (run.tree.root / "trained.txt").read_text().splitlines()]
    assert trained[-1]["resumed"]
    assert (run.tree.root / OTHER_SEED / "work/last-words").exists()  # it was waited for while it wrote its state
    assert "Trying to restart" not in run.said()


def rules(jobs: Jobs) -> list[str]:
    """Of which rules these jobs were; what is not among them ran beside Snakemake."""
    return sorted(job["Comment"].removeprefix("rule_").split("_wildcards")[0] for job in jobs)
