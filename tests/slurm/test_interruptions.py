"""A training that a cluster interrupts in each of its ways: it goes on where it was, alone, to the same weights."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from datpo.core.files import read_jsonl
from tests.slurm.cluster import Cluster, alive, wait_for
from tests.slurm.site import Running, beats, move_in, never_two_at_once, running
from tests.workflow.project import Tree, copy_project, without_studies

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

STEPS = 16
CONFIG = (
    *("--config", "scale=ci", "jobs={gpus: 1, memory_gb: 2, retries: 1}", "models={ci: {pretrain: {steps: 120}}}"),
    f"train={{duration: {{steps: {STEPS}}}, state_every: 2, validate_every: 1000}}",
)
RUN = Path("results/ci/ci/datpo/datpo/seed0")
LOG = str(RUN / "metrics.jsonl")
WEIGHTS = RUN / "checkpoint/model.safetensors"
# Snakemake asks after jobs in one of two ways: `squeue` or, as on most sites, `sacct`.
BOTH_WAYS = pytest.mark.parametrize("slurm", [False, True], ids=["squeue", "sacct"], indirect=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A finished training, on this machine and without Slurm."""
    tree = copy_project(tmp_path_factory.mktemp("undisturbed"))
    without_studies(tree)
    tree.snakemake("--cores", "1", *CONFIG, "--", LOG, OMP_NUM_THREADS="1")
    assert sum(row["updates"] for row in read_jsonl(tree.root / LOG)) >= STEPS  # else the weights would tell nothing
    return tree


@pytest.fixture
def site(undisturbed: Tree, slurm: Cluster, tmp_path: Path) -> Iterator[Tree]:
    """The same before its training, where GPUs belong to others; then it has to be what it was."""
    tree = undisturbed.copied(tmp_path / "project")
    subprocess.run(["rm", "-r", RUN], cwd=tree.root, check=True)
    move_in(tree, slurm, gpus="scavenge")
    yield tree
    assert digest(tree) == digest(undisturbed)
    assert [row["step"] for row in read_jsonl(tree.root / LOG)] == list(range(1, STEPS + 1))


def digest(tree: Tree) -> str:
    """Of the final weights, bit by bit."""
    return hashlib.sha256((tree.root / WEIGHTS).read_bytes()).hexdigest()


@contextmanager
def under_way(tree: Tree, slurm: Cluster) -> Iterator[Running]:
    """Snakemake with a training in its middle, two states written."""
    with running(tree, slurm, *CONFIG, "--", LOG) as run:
        run.wait_for(lambda: state(tree) >= 4, "two states of the training")
        yield run


def state(tree: Tree) -> int:
    """The step of the newest state."""
    names = [folder.name.removeprefix("state-") for folder in tree.root.glob(f"{RUN}/work/*/state-*[0-9]")]
    return max(map(int, names), default=0)


def logged(tree: Tree) -> int:
    """The last step that was taken."""
    (log,) = tree.root.glob(f"{RUN}/work/*/metrics.jsonl")
    return len(log.read_text().splitlines())


def trainer(run: Running) -> int:
    """The process id of the newest training."""
    return beats(run.tree)[-1][0]


@BOTH_WAYS
def test_pre_empted(site: Tree, slurm: Cluster) -> None:
    with under_way(site, slurm) as run:
        slurm.take_all_gpus()
        run.queued_again()
        assert "Trying to restart" not in run.finish()
        assert run.job()["Restarts"] == "1"
    assert never_two_at_once(site) == 2


def test_pre_empted_with_time_to_leave(site: Tree, slurm: Cluster) -> None:
    """The training ends in that time, and with it the job, before Slurm takes it away."""
    slurm.run("scontrol", "update", "PartitionName=scavenge", "GraceTime=60")
    try:
        with under_way(site, slurm) as run:
            slurm.take_all_gpus()
            run.queued_again()
            assert "Trying to restart" not in run.finish()
            assert run.job()["Restarts"] == "1"
    finally:
        slurm.run("scontrol", "update", "PartitionName=scavenge", "GraceTime=0")
    assert never_two_at_once(site) == 2


@BOTH_WAYS
def test_at_its_time_limit(site: Tree, slurm: Cluster) -> None:
    """It is told before, saves after the step under way, and goes on: as often as it takes, and at no retry's cost."""
    with under_way(site, slurm) as run:
        job, process = run.job(), trainer(run)
        os.kill(process, signal.SIGSTOP)  # Slurm looks at limits every half minute, in which it could come to its end
        slurm.run("scontrol", "update", f"JobId={job['JobId']}", "TimeLimit=2")  # less than it has to be told before
        run.wait_for(lambda: told(process), "a job that is told")
        with suppress(ProcessLookupError):  # Slurm lets it go on by itself
            os.kill(process, signal.SIGCONT)
        run.wait_for(lambda: run.job()["JobState"] == "PENDING", "a job that is queued again")
        assert beats(site)[0][2] - beats(site)[0][1] < 100
        assert state(site) == logged(site) >= 4
        run.queued_again("TimeLimit=30")
        assert "Trying to restart" not in run.finish()
        assert (run.job()["JobId"], run.job()["Restarts"]) == (job["JobId"], "1")
    assert never_two_at_once(site) == 2


def told(process: int) -> bool:
    """Whether SIGTERM waits for a process that was halted, or has ended it."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
    (pending,) = re.findall(r"^ShdPnd:\s*(\w+)", status, re.MULTILINE)
    return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)


def test_killed(site: Tree, slurm: Cluster) -> None:
    """Tried again in a job of its own, by the Snakemake that the user started and by no other."""
    with under_way(site, slurm) as run:
        first = run.job()["JobId"]
        os.kill(trainer(run), signal.SIGKILL)
        assert run.finish().count("Trying to restart") == 1
        assert slurm.jobs()[int(first)]["JobState"] == "FAILED"
        assert run.job()["JobId"] != first
    assert never_two_at_once(site) == 2


def test_daemon_and_step_of_a_node_killed(site: Tree, slurm: Cluster) -> None:
    """The training itself lives on, unknown to Slurm, which starts a second: that waits for the end of the first."""
    with under_way(site, slurm) as run:
        job = run.job()
        stuck = site.root / "stuck"
        stuck.touch()
        os.kill(slurm.daemon(job["NodeList"]), signal.SIGKILL)
        for step in steps_of(job["JobId"]):
            os.kill(step, signal.SIGKILL)
        run.queued_again()
        logs = site.root / ".snakemake/slurm_logs"
        waits = "another copy of this job is at work"
        run.wait_for(lambda: any(waits in file.read_text() for file in logs.rglob("*.log")), "a second copy that waits")
        assert alive(trainer(run))
        stuck.unlink()
        assert "Trying to restart" not in run.finish()
    assert never_two_at_once(site) == 2


def steps_of(job: str) -> list[int]:
    """The processes in which Slurm looks after a job."""
    names = ((process, process / "cmdline") for process in Path("/proc").glob("[0-9]*"))
    found = []
    for process, file in names:
        try:
            if file.read_text().startswith(f"slurmstepd: [{job}."):
                found.append(int(process.name))
        except OSError:
            continue
    assert found
    return found


def test_out_of_memory(site: Tree, slurm: Cluster) -> None:
    """The next try has twice as much."""
    with under_way(site, slurm) as run:
        (site.root / "greedy").touch()
        assert run.finish().count("Trying to restart") == 1
        trainings = [job for job in slurm.jobs().values() if job.get("Comment", "").startswith("rule_train")]
        memory = [job["MinMemoryNode"] for job in trainings]
        assert memory[-2:] == ["2000M", "4000M"]
    assert never_two_at_once(site) == 2


def test_snakemake_killed_while_its_job_goes_on(site: Tree, slurm: Cluster) -> None:
    """Started again, it submits the job again: the second waits for the first, and takes what that has done."""
    with under_way(site, slurm) as run:
        os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        site.snakemake("--unlock", *CONFIG)
        run.start(*CONFIG, "--", LOG)
        run.finish()
        wait_for(lambda: not slurm.run("squeue", "--noheader").strip(), "the end of both jobs")
    assert never_two_at_once(site) == 1


def test_cancelled_by_the_user(site: Tree, slurm: Cluster) -> None:
    """Ctrl-C ends the jobs too, and none comes back by itself; the same command goes on."""
    with under_way(site, slurm) as run:
        run.process.send_signal(signal.SIGINT)
        wait_for(lambda: run.process.poll() is not None, "the end of Snakemake")
        wait_for(lambda: not slurm.run("squeue", "--noheader").strip(), "the end of the job")
        assert (run.job()["JobState"], run.job()["Restarts"]) == ("CANCELLED", "0")
        assert state(site) == logged(site)
        run.start(*CONFIG, "--", LOG)
        run.finish()
    assert never_two_at_once(site) == 2
