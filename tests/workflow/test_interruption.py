"""Real jobs killed anywhere, by whatever kills them: the same command again ends in the bytes of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from datpo.core.files import is_sealed
from tests.workflow.project import PROJECT, SERVER, Tree, copy_project, run_snakemake

pytestmark = pytest.mark.xdist_group("interruption")  # one base model and one undisturbed run for all

RUN, TREES = "results/ci/ci/datpo/datpo/seed0", "results/ci/explorations"
BASE = "results/ci/ci/base/base/seed0"
SCORES, FORKS = f"{RUN}/scores/moves-easy.jsonl", f"{TREES}/forks"
# All that a verb made and that was made of it.
MADE = {"train": [RUN], "sample": [f"{RUN}/{made}" for made in ("samples", "scores", "work")], "explore": [TREES]}
STEPS, SAMPLES = 6, 8
SETTINGS = (
    "scale=ci",
    "runs={grpo: null, dr_grpo: null, treerl: null, attnrl: null}",
    "benchmarks={moves-medium: null, moves-hard: null}",
    "models={ci: {pretrain: {steps: 60}}}",
    f"train={{duration: {{steps: {STEPS}}}, state_every: 1, prompts_per_step: 3, validate_every: null}}",
    "evaluation={generation_batch: 16}",  # two of ten problems at a time
    "explorations={forks: {problems: 6, repeats: 3}}",  # six chunks
)
# What is drawn and grown is noted where that is done, so that nothing can be done twice unseen.
NOTES = {
    "src/datpo/evaluate/sample.py": (
        '    stops = settings["prompt"].get("stop") or []\n    samples = []\n',
        '    open("done.txt", "a").writelines(f"sample {problem.id}\\n" for problem in problems)\n',
    ),
    "src/datpo/evaluate/explore.py": (
        "        rows: list[Row] = []\n",
        '        open("done.txt", "a").write(f"explore {folder.name[1:7]}\\n")\n',
    ),
}


@dataclass(frozen=True)
class Kill:
    """Who is killed: the `job` of a verb, `snakemake` alone or `everything`, some seconds after so much was done."""

    who: str
    verb: str
    done: int
    seconds: float

    def earlier(self) -> Kill:
        return replace(self, done=self.done // 2, seconds=self.seconds / 2)


@dataclass(frozen=True)
class Struck:
    """A kill that hit a verb at work, what that could go on from, and how much had been noted by then."""

    kill: Kill
    done: list[str]
    notes: int


def run(tree: Tree, target: str) -> None:
    """The command that is repeated until all is there; unlocked first, as one has to where Snakemake was killed."""
    unlock(tree)
    tree.snakemake(*command(target))


def command(target: str) -> tuple[str, ...]:
    return ("--cores", "1", "--config", *SETTINGS, "--", target)


def unlock(tree: Tree) -> None:
    if any(tree.root.glob(".snakemake/locks/*")):
        tree.snakemake("--unlock", "--config", *SETTINGS)


def in_a_session_of_its_own(*arguments: Any) -> None:
    os.setsid()
    run_snakemake(*arguments)


def lines(file: Path) -> list[str]:
    """The whole lines of a file that may be written just now."""
    return file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []


def at_work(tree: Tree, verb: str) -> list[int]:
    """The processes of a verb in this tree."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text(errors="replace").split("\0")
            if words[1:4] == ["-m", "datpo", verb] and (process / "cwd").resolve() == tree.root.resolve():
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found


def done(tree: Tree, verb: str) -> list[str]:
    """What the verb could go on from if it were killed now; nothing while it tidies up at its end."""
    try:
        return finished(tree, verb)
    except FileNotFoundError:
        return []


def finished(tree: Tree, verb: str) -> list[str]:
    """The log rows of a training that a state stands behind, the problems of a sampler or the chunks of an explorer."""
    run = tree.root / RUN
    if verb == "train":
        steps = [int(state.name[-6:]) for state in run.glob("work/*/state-*") if is_sealed(state)]
        return [row for log in run.glob("work/*/metrics.jsonl") for row in lines(log)][: max(steps, default=0)]
    if verb == "sample":
        rows = [json.loads(row) for file in run.glob("work/moves-easy/*.jsonl") for row in lines(file)]
        drawn = Counter(row["problem"] for row in rows)
        return [problem for problem in drawn if drawn[problem] == SAMPLES]
    return [chunk.name for chunk in tree.root.glob(f"{TREES}/work/forks/*/[0-9]*") if is_sealed(chunk)]


def strike(tree: Tree, target: str, kill: Kill) -> Struck | None:
    """Let it run and kill; nothing if the verb ended before. A job that outlives Snakemake is left alone."""
    unlock(tree)
    said = str(tree.root / f"said-{len(list(tree.root.glob('said-*')))}.txt")
    running = SERVER.Process(target=in_a_session_of_its_own, args=(command(target), tree.root, dict(os.environ), said))
    running.start()
    deadline = time.monotonic() + 1200
    while not at_work(tree, kill.verb) or len(done(tree, kill.verb)) < kill.done:
        if not running.is_alive():
            return None
        assert time.monotonic() < deadline, Path(said).read_text()
        time.sleep(0.1)
    time.sleep(kill.seconds)
    struck = Struck(kill, done(tree, kill.verb), len(lines(tree.root / "done.txt")))
    jobs = at_work(tree, kill.verb)
    with suppress(ProcessLookupError):
        for process in jobs if kill.who == "job" else [running.pid]:
            (os.killpg if kill.who == "everything" else os.kill)(process, signal.SIGKILL)
    running.join(120)
    assert not running.is_alive()
    return struck if jobs else None


def interrupted(tree: Tree, target: str, kills: Sequence[Kill]) -> list[Struck]:
    """One kill after the other, and then to the end. A verb that had ended is begun again, so that each kill hits."""
    hits: list[Struck] = []
    since = 0  # the first of them that struck what is there now
    for kill in kills:
        while not (hit := strike(tree, target, kill)):
            assert kill.done or kill.seconds > 0.1, kill  # a verb has not begun by then
            run_to_the_end(tree, target, hits[since:])
            for name in MADE[kill.verb]:
                shutil.rmtree(tree.root / name, ignore_errors=True)
            kill, since = kill.earlier(), len(hits)
        hits.append(hit)
    run_to_the_end(tree, target, hits[since:])
    return hits


def run_to_the_end(tree: Tree, target: str, struck: Sequence[Struck]) -> None:
    """What was done when a job was struck was neither lost nor done again."""
    run(tree, target)
    notes = [line.split(" ", 1) for line in lines(tree.root / "done.txt")]
    log = lines(tree.root / RUN / "metrics.jsonl")
    for each in struck:
        verb = each.kill.verb
        if verb == "train":
            assert log[: len(each.done)] == each.done, each  # its times too
        else:
            assert not {what for noted, what in notes[each.notes :] if noted == verb} & set(each.done), each


def made(tree: Tree) -> dict[str, Any]:
    """All that the targets consist of, but for times."""
    folders = [
        tree.root / RUN / "checkpoint",
        tree.root / RUN / "samples",
        tree.root / RUN / "scores",
        tree.root / FORKS,
    ]
    found: dict[str, Any] = {
        str(file.relative_to(tree.root)): file.read_bytes()
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and file.name != ".snakemake_timestamp"
    }
    for row in map(json.loads, lines(tree.root / RUN / "metrics.jsonl")):
        found[f"step {row['step']}"] = {key: value for key, value in row.items() if not key.startswith("seconds")}
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the project with a base model."""
    tree = copy_project(tmp_path_factory.mktemp("base") / "project")
    for name, (place, note) in NOTES.items():
        file = tree.root / name
        text = file.read_text(encoding="utf-8")
        assert text.count(place) == 1, f"{name} has changed; say where its work is done"
        file.write_text(text.replace(place, note + place), encoding="utf-8")
    run(tree, f"{BASE}/checkpoint")
    return tree


@pytest.fixture(scope="module")
def undisturbed(base: Tree, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What training, samples and scores are without a kill."""
    tree = base.copied(tmp_path_factory.mktemp("undisturbed") / "project")
    run(tree, SCORES)
    return made(tree)


def kills_of(chance: random.Random, verbs: Sequence[str], most: dict[str, int]) -> list[Kill]:
    """A kill of each verb in turn, anywhere from its start to shortly before its end."""
    whos = ["job", "snakemake", "everything"]
    return [Kill(chance.choice(whos), verb, chance.randint(0, most[verb]), chance.uniform(0, 1)) for verb in verbs]


def test_a_training_and_its_samples_survive_three_kills(
    base: Tree, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Each of the three kinds, at points drawn once, or before where the verb had ended by then."""
    chance = random.Random(7)
    kills = [
        Kill("snakemake", "train", 1, chance.random()),
        Kill("job", "train", 3, chance.random()),
        Kill("everything", "sample", 2, chance.random() / 2),
    ]
    tree = base.copied(tmp_path / "project")
    assert len(interrupted(tree, SCORES, kills)) == 3
    assert made(tree) == undisturbed


def test_snakemake_may_die_before_it_takes_note_that_a_job_ended(base: Tree, tmp_path: Path) -> None:
    tree, scores = base.copied(tmp_path / "project"), f"{BASE}/scores/moves-easy.jsonl"
    with open(tree.root / "workflow/job.sh", "a", encoding="utf-8") as script:
        script.write('end_turn() { if [[ $log == */sample.* ]] && mkdir died; then kill -KILL "$PPID"; fi }\n')
    unlock(tree)
    tree.snakemake(*command(scores), fails=True)
    assert (tree.root / "died").exists()
    run(tree, scores)
    drawn = [line for line in lines(tree.root / "done.txt") if line.startswith("sample ")]
    assert len(drawn) == len(set(drawn)) == 10
    assert not any((tree.root / BASE / "work/moves-easy").iterdir())
    assert not any((tree.root / ".snakemake/spent").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_killed_whenever_it_ends_in_the_same_bytes(
    base: Tree, undisturbed: dict[str, Any], tmp_path: Path, seed: int
) -> None:
    tree = base.copied(tmp_path / "project")
    kills = kills_of(random.Random(seed), ("train", "train", "sample", "sample"), {"train": 3, "sample": 6})
    assert len(interrupted(tree, SCORES, kills)) == 4
    assert made(tree) == undisturbed


@pytest.mark.slow
def test_an_exploration_survives_four_kills(base: Tree, tmp_path: Path) -> None:
    whole, tree = base.copied(tmp_path / "whole"), base.copied(tmp_path / "project")
    run(whole, FORKS)
    kills = kills_of(random.Random(11), ("explore",) * 4, {"explore": 4})
    assert len(interrupted(tree, FORKS, kills)) == 4
    assert made(tree) == made(whole)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A disk of its own under a folder, with what was in it."""
    held = folder.with_name("held")
    folder.rename(held)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs more rights")
    try:
        shutil.copytree(held, folder, symlinks=True, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, left: int) -> None:
    """Leave so many bytes of a disk."""
    (folder / "ballast").unlink(missing_ok=True)
    (folder / "ballast").write_bytes(bytes(shutil.disk_usage(folder).free - left))


@pytest.mark.slow
def test_a_full_disk_is_named_and_costs_nothing_that_was_there(
    base: Tree, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Too little for a log, for a state, for all states and for the checkpoint; then for samples or scores."""
    tree, chance = base.copied(tmp_path / "project"), random.Random(5)
    results, log = tree.root / "results", f"{RUN}/metrics.jsonl"

    def fails(target: str, verb: str, left: int) -> None:
        before = done(tree, verb)
        fill(results, left)
        said = tree.snakemake(*command(target), fails=True)
        assert "No space left on device" in said
        assert "Traceback" not in said
        assert done(tree, verb)[: len(before)] == before

    with small_disk(results, 16):
        run(tree, f"{RUN}/config.yaml")
        for most in (10_000, 500_000, 2_500_000, 4_500_000):
            fails(log, "train", chance.randint(most // 2, most))
        (results / "ballast").unlink()
        run(tree, log)
        for left in (4_000, 16_000):
            fails(SCORES, "sample", left)
        (results / "ballast").unlink()
        run(tree, SCORES)
        assert made(tree) == undisturbed


JOB = f"source {PROJECT}/workflow/job.sh; logged log bash -c "


@contextmanager
def job(folder: Path, does: str) -> Iterator[subprocess.Popen[str]]:
    """A command as a rule runs it, below a process that stands for Snakemake; that one goes on once it is there."""
    parent = "import subprocess, sys; sys.exit(subprocess.run(['bash', '-c', sys.argv[1]]).returncode)"
    process = subprocess.Popen(
        [sys.executable, "-c", parent, f"{JOB}'{does}'"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (folder / "began").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield process
    process.kill()
    process.communicate()


def again(folder: Path, does: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{JOB}'{does}'"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def stand_ins(folder: Path, **programs: str) -> str:
    """A PATH on which these programs are found first, each a line of shell."""
    (folder / "bin").mkdir()
    for name, line in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return f"{folder}/bin:{os.environ['PATH']}"


@pytest.mark.parametrize(("code", "then"), [(0, "began"), (3, "began,again")])
def test_a_second_copy_of_a_job_waits_and_does_only_what_the_first_did_not(
    tmp_path: Path, code: int, then: str
) -> None:
    with job(tmp_path, f"echo -n began >began; sleep 2; exit {code}") as first:
        second = again(tmp_path, "echo -n ,again >>began")
        assert first.wait(120) == code
    assert second.returncode == 0
    assert "log: another copy of this job is at work; waiting for its end" in second.stderr
    assert (tmp_path / "began").read_text() == then
    third = again(tmp_path, "echo -n ,third >>began")  # nobody is at work: it is asked for, so it is done
    assert third.returncode == 0
    assert "another copy" not in third.stderr
    assert (tmp_path / "began").read_text() == f"{then},third"


WAITS = 'trap "echo stopped >>began; exit 143" TERM; echo began >began; for i in {1..900}; do sleep 0.1; done'


@pytest.mark.parametrize("who", ["snakemake", "shell"])
def test_a_job_is_asked_to_stop_when_nobody_waits_for_it_any_more(tmp_path: Path, who: str) -> None:
    with job(tmp_path, WAITS) as first:
        (shell,) = (int(pid) for pid in Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split())
        os.kill(first.pid if who == "snakemake" else shell, signal.SIGKILL)
        second = again(tmp_path, "echo second >>began")
    assert second.returncode == 0
    assert "another copy of this job is at work" in second.stderr
    assert (tmp_path / "began").read_text().split() == ["began", "stopped", "second"]


def test_on_a_disk_without_locks_it_is_said_that_copies_do_not_wait(tmp_path: Path) -> None:
    said = again(tmp_path, "echo done >began", PATH=stand_ins(tmp_path, flock="exit 71"))
    assert (said.returncode, (tmp_path / "began").read_text()) == (0, "done\n")
    assert "log: no file locks on this disk; a second copy of this job would run beside the first" in said.stderr


@pytest.mark.parametrize(
    ("squeue", "scontrol", "queued", "named"),
    [
        ("echo RUNNING rule_train", "touch queued", True, False),
        ("echo RUNNING rule_train", "exit 1", False, True),
        ("exit 127", "touch queued", False, True),
        ("echo COMPLETING rule_train", "touch queued", False, False),  # it is being cancelled
        ("echo RUNNING", "touch queued", False, False),  # an allocation in which somebody runs Snakemake
    ],
)
def test_a_job_that_was_told_to_stop_is_queued_again_or_says_that_it_could_not_be(
    tmp_path: Path, squeue: str, scontrol: str, queued: bool, named: bool
) -> None:
    path = stand_ins(tmp_path, squeue=squeue, scontrol=scontrol)
    said = again(tmp_path, "exit 143", PATH=path, SLURM_JOB_ID="7")
    assert said.returncode == 143
    assert (tmp_path / "queued").exists() == queued
    assert ("job 7 cannot be queued again from here, so it counts as a retry" in said.stderr) == named
