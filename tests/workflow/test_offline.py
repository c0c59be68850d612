"""Jobs on nodes without a network: they need none, and ask for none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import Tree, copy_project

# Every Python that finds it in PYTHONPATH, which is every job's, notes each call that would leave the machine, and
# fails it.
WATCH = '''
"""Notes in asked.txt whoever asks the network for something, and in watched.txt who was watched."""
import pathlib, sys

HERE = pathlib.Path(__file__).parent
SENDING = ("socket.connect", "socket.sendto", "socket.sendmsg")
NAMING = ("socket.getaddrinfo", "socket.gethostbyname")
LOCAL = ("localhost", "127.0.0.1", "::1", "")


def note(name, *words):
    with open(HERE / name, "a") as file:
        print(*words, file=file)


def watch(event, args):
    if event in SENDING + NAMING:
        where = args[event in SENDING]
        host = where[0] if isinstance(where, tuple) else where
        unix = event in SENDING and not isinstance(where, tuple)
        if not unix and host not in LOCAL:
            note("asked.txt", event, where, sys.orig_argv)
            raise PermissionError(f"{event} {where}: a job asks the network")


sys.addaudithook(watch)
note("watched.txt", *sys.orig_argv[1:5])
'''
ALONE = ("unshare", "--net")  # a network of one's own, with nothing in it
SLICE = (
    "scale=ci",
    "runs={grpo: null, dr_grpo: null, treerl: null, attnrl: null}",
    "benchmarks={moves-medium: null, moves-hard: null}",
)
VERBS = {
    "config",
    "data",
    "pretrain",
    "train",
    "sample",
    "score",
    "metrics",
    "explore",
    "table2",
    "table",
    "fork-table",
}


def watched(target: Path) -> Tree:
    tree = copy_project(target)
    (tree.root / "src/sitecustomize.py").write_text(WATCH)
    return tree


def said_of(tree: Tree, name: str) -> list[str]:
    file = tree.root / "src" / name
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return watched(tmp_path_factory.mktemp("control"))


def job(tree: Tree, words: str, command: str) -> subprocess.CompletedProcess[str]:
    """A command as a rule runs it."""
    shell = f"export PYTHONPATH={tree.root}/src; source workflow/job.sh; {words}logged {tree.root}/log {command}"
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", shell],
        cwd=tree.root,
        env={**os.environ, "PATH": here},
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.mark.parametrize(
    "ask",
    [
        'import urllib.request as r; r.urlopen("http://198.51.100.1/", timeout=1)',
        'import socket; socket.create_connection(("example.org", 443), timeout=1)',
        'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"?", ("198.51.100.1", 53))',
    ],
)
def test_who_asks_the_network_is_seen(control: Tree, ask: str) -> None:
    before = len(said_of(control, "asked.txt"))
    asked = job(control, "", f"python -c '{ask}'")
    assert asked.returncode == 1
    assert "a job asks the network" in asked.stderr
    assert len(said_of(control, "asked.txt")) == before + 1


def test_who_talks_to_this_machine_alone_is_not(control: Tree) -> None:
    before = said_of(control, "asked.txt")
    ask = (
        'import socket; a, b = socket.socketpair(); s = socket.create_server(("127.0.0.1", 0)); '
        "socket.create_connection(s.getsockname())"
    )
    assert job(control, "", f"python -c '{ask}'").returncode == 0
    assert said_of(control, "asked.txt") == before


def test_a_rule_that_fetches_asks_and_any_other_would_not(control: Tree, tmp_path: Path) -> None:
    """A model of the hub that is not on this machine: the same command, after `online` and without it."""
    (tmp_path / "config.yaml").write_text("source: {hub: nobody/nothing, revision: abcdef}\n")
    command = f"python -m datpo fetch-model --config {tmp_path}/config.yaml --out {tmp_path}/out"
    before = said_of(control, "asked.txt")
    offline = job(control, "", command)
    assert offline.returncode == 2
    assert "nobody/nothing at abcdef cannot be downloaded" in offline.stderr
    assert said_of(control, "asked.txt") == before
    assert job(control, "online; ", command).returncode == 2
    assert "fetch-model" in said_of(control, "asked.txt")[-1]


@pytest.mark.slow
def test_real_jobs_ask_the_network_for_nothing_and_do_without(tmp_path: Path) -> None:
    """Where one can be had, in a network of their own in which nothing can be reached, this machine neither."""
    tree = watched(tmp_path / "project")
    alone = ALONE if not subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode else ()
    command = [*alone, sys.executable, "-m", "snakemake", "--cores", "2", "--config", *SLICE, "--"]
    ran = subprocess.run(
        [*command, "table2", "figure_passk", "figure_curves", "table1", "table12", "figure2", "figure3"],
        cwd=tree.root,
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    watched_verbs = {line.split()[2] for line in said_of(tree, "watched.txt") if line.startswith("-m datpo ")}
    assert watched_verbs >= VERBS
    assert said_of(tree, "asked.txt") == []
