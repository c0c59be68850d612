"""A copy of the project at a site: its profile filled in as a user does it, and Snakemake at work there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from tests.slurm.cluster import Cluster, alive, wait_for
from tests.workflow.project import Tree, stand_in_conda

PROFILE = "workflow/profiles/slurm/config.yaml"
# What a user of this cluster changes in the profile: lines that stand there, and what takes their place.
OWN = {
    "#  slurm_partition: cpu": "  slurm_partition: cpu",
    "#  gpu_partition: gpu": "  gpu_partition: {gpus}",
    "#  gpu_kind: a100": "  gpu_kind: pretended",
    "  runtime: 24h": "  runtime: 30",
    "latency-wait: 60": "latency-wait: 10",
}
WITHOUT_ACCOUNTING = {"#slurm-status-command: squeue": "slurm-status-command: squeue"}
WITH_ACCOUNTING = {
    "#  slurm_account: my_account": "  slurm_account: tests",
    "#  qos: normal": "  qos: normal",
}


def move_in(tree: Tree, cluster: Cluster, gpus: str = "gpu") -> None:
    """Fill in the profile of a copy of the project; look after jobs more often than a real site would."""
    profile = tree.root / PROFILE
    text = profile.read_text(encoding="utf-8")
    for old, new in (OWN | (WITH_ACCOUNTING if cluster.accounting else WITHOUT_ACCOUNTING)).items():
        assert text.count(f"\n{old}") == 1, old
        text = text.replace(f"\n{old}", f"\n{new.format(gpus=gpus)}")
    profile.write_text(f"{text}slurm-init-seconds-before-status-checks: 4\n", encoding="utf-8")
    shutil.copy(Path(__file__).with_name("watched.py"), tree.root / "src/sitecustomize.py")


@dataclass
class Running:
    """Snakemake at work through the profile, in a process of its own."""

    tree: Tree
    cluster: Cluster
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, *arguments: str, **environment: str) -> None:
        bin_ = self.tree.root.parent / "conda/bin"
        programs = bin_ if bin_.exists() else stand_in_conda(bin_.parent)
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Bytecode is kept: without it every job takes many seconds to begin.
        settings = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "1", **environment}
        with open(self.tree.root / "said.txt", "ab") as said:
            self.process = subprocess.Popen(
                ["snakemake", "--profile", "slurm", *arguments],
                cwd=self.tree.root,
                env={**os.environ, **settings},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored where tests run
            )

    def said(self) -> str:
        return (self.tree.root / "said.txt").read_text(encoding="utf-8")

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = 400) -> None:
        """Until something holds; at once an error if Snakemake ends before."""

        def holds() -> bool:
            if condition():
                return True
            assert self.process.poll() is None, self.said()
            return False

        try:
            wait_for(holds, what, seconds)
        except TimeoutError as error:
            jobs = self.cluster.run("squeue", "--states=all")
            raise TimeoutError(f"{error}\n{jobs}\n{self.said()}") from None

    def job(self) -> dict[str, str]:
        """What Slurm knows of the newest training."""
        return self.cluster.job("rule_train") or {}

    def queued_again(self, *changes: str) -> None:
        """Wait until Slurm has taken the training off its node and put it into the queue; let it start soon.

        Left alone, Slurm waits a minute or more. Not at once, though: a node refuses a job that it was told to end in
        the same second ("Job credential revoked"), and Slurm takes that for a failure of the job.
        """
        self.wait_for(lambda: self.job().get("JobState") == "PENDING", "a job that is queued again")
        self.cluster.run("scontrol", "update", f"JobId={self.job()['JobId']}", "StartTime=now+2", *changes)

    def finish(self, seconds: float = 600) -> str:
        """Wait for the end; all that was said."""
        wait_for(lambda: self.process.poll() is not None, f"the end of Snakemake\n{self.said()}", seconds)
        assert self.process.returncode == 0, self.said()
        return self.said()


@contextmanager
def running(tree: Tree, cluster: Cluster, *arguments: str, **environment: str) -> Iterator[Running]:
    """Start Snakemake, and leave neither it nor a job of its behind."""
    run = Running(tree, cluster)
    run.start(*arguments, **environment)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        cluster.clear()
        # what is left of a job that its cluster has lost: its training, and Snakemake, which waits for ever
        for process in {process for process, *_ in beats(tree)} | named(tree):
            if alive(process):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def named(tree: Tree) -> set[int]:
    """The processes whose command has the project's folder in it."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(tree.root) in file.read_text(errors="replace"):
                found.add(int(file.parent.name))
    return found


def beats(tree: Tree) -> list[tuple[int, float, float]]:
    """Every training that was at work, from the first: its process id, its first sign of life, its last."""
    file = tree.root / "beats.txt"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    signs = sorted((int(process), float(when)) for process, _, when in lines)
    of_each = [(process, [when for _, when in each]) for process, each in groupby(signs, key=lambda sign: sign[0])]
    return sorted(((process, min(times), max(times)) for process, times in of_each), key=lambda each: each[1])


def never_two_at_once(tree: Tree) -> int:
    """How many trainings were at work, each after the end of the one before it."""
    at_work = beats(tree)
    for (_, _, last), (_, first, _) in pairwise(at_work):
        assert last < first, at_work
    return len(at_work)
