"""The guide to a new baseline, followed word by word in a copy of the project."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from datpo.methods.base import Method
from datpo.report.runs import Run
from datpo.search.budget import Progress
from tests.trees import branch, tree
from tests.workflow.project import PROJECT, Tree, copy_project

GUIDE = (PROJECT / "docs/add_a_baseline.md").read_text(encoding="utf-8")
# A file stands below its name in bold, all by itself; what a terminal is told, in blocks of shell.
FILES = dict(re.findall(r"^\*\*`(\S+)`\*\*\n\n```\w+\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
SHELL = "".join(re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
RUN, REFUSED, RUN_AGAIN, CREDIT, ABLATION = map(shlex.split, SHELL.splitlines())
MODULE, RULE, NUMBERS = BASELINE = (
    "src/datpo/methods/rloo.py",
    "rules/methods/rloo.smk",
    "config/methods/rloo.yaml",
)
# Laid under the guide's command: no other run, one benchmark, one step.
SMALL = {
    "runs": dict.fromkeys(yaml.safe_load((PROJECT / "config/config.yaml").read_text())["runs"]),
    "benchmarks": {"moves-medium": None, "moves-hard": None},
    "train": {"duration": {"steps": 1}},
}


@pytest.fixture
def followed(tmp_path: Path) -> Tree:
    """A copy of the project, all its files known to git, to which the baseline was then added."""
    project = copy_project(tmp_path / "project")
    git(project, "init", "-q")
    git(project, "add", "--all")
    for name in BASELINE:
        (project.root / name).write_text(FILES[name], encoding="utf-8")
    return project


def git(project: Tree, *arguments: str) -> list[str]:
    """The lines that git answers."""
    done = subprocess.run(["git", *arguments], cwd=project.root, capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


def run_in(project: Tree, words: Sequence[str]) -> str:
    """What a program prints, one of this environment before any other, with the copy's own package."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    surroundings = {**os.environ, "PATH": path, "PYTHONPATH": "src"}
    done = subprocess.run(words, cwd=project.root, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rloo(roots: int) -> Method:
    """The guide's method, which no package holds."""
    names: dict[str, object] = {"__name__": "rloo"}
    exec(compile(FILES[MODULE], MODULE, "exec"), names)
    return names["build"](**{**yaml.safe_load(FILES[NUMBERS]), "roots": roots})


def test_the_baseline_is_three_new_files_of_under_forty_lines_together() -> None:
    assert set(FILES) == {*BASELINE, "ablation.yaml"}
    assert sum(len(FILES[name].splitlines()) for name in BASELINE) < 40
    assert not [name for name in BASELINE if (PROJECT / name).exists()]


def test_its_advantages_by_hand() -> None:
    # rewards 1 0 0 0: the others' means are 0, 1/3, 1/3, 1/3
    group = tree(*(branch(None, 0, tokens, reward) for tokens, reward in ((3, 1), (5, 0), (2, 0), (4, 0))))
    method = rloo(roots=4)
    advantages = method.credit(group, Progress(), np.zeros(4))
    assert advantages == pytest.approx(np.diag([1, -1 / 3, -1 / 3, -1 / 3]))
    assert (method.clip_range, method.aggregate, method.unit) == ((0.2, 0.2), "token_mean", "leaves")


@pytest.mark.slow
def test_its_command_trains_it_to_a_row_of_the_table_and_edits_no_file(followed: Tree) -> None:
    small = followed.root / "results/small.yaml"
    small.parent.mkdir()
    small.write_text(yaml.safe_dump(SMALL))
    small_too = ("--configfile", str(small))
    followed.snakemake(*small_too, *RUN[1:])
    with (followed.root / "results/ci/tables/table2.csv").open(newline="") as file:
        base, row = csv.DictReader(file)
    assert (base["label"], row["label"], row["method"], row["run"]) == ("Base", "rloo", "rloo", "rloo")
    assert float(row["updates"]) > 0
    assert float(row["leaves"]) == 16
    assert float(row["zero_signal"]) < 1  # else no advantage was ever other than 0
    assert git(followed, "diff", "--name-only") == []
    assert git(followed, "ls-files", "--others", "--exclude-standard") == sorted(BASELINE)

    with followed.edited(MODULE, "n / max", "-n / max"):
        assert followed.plan(*small_too, *RUN[1:]) == {}
    plan = followed.plan(*small_too, *RUN_AGAIN[1:])
    assert plan["train_rloo"] == plan["sample"] == plan["table2"] == 1


def test_the_checks_of_the_project_hold_for_it(followed: Tree) -> None:
    run_in(followed, ["ruff", "check", MODULE])
    run_in(followed, ["ruff", "format", "--check", MODULE])
    run_in(followed, ["snakefmt", "--check", RULE])
    run_in(followed, ["mypy", MODULE])
    assert " 0 broken" in run_in(followed, ["lint-imports", "--no-cache"])


@pytest.mark.slow
def test_the_tests_of_methods_in_general_hold_for_it(followed: Tree) -> None:
    of_every_method = ["-k", "rloo", "tests/unit/methods"]
    assert " passed" in run_in(followed, ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *of_every_method])


def test_its_command_plans_a_row_of_the_table(followed: Tree) -> None:
    said = followed.snakemake("-np", *RUN[1:])
    assert folders_in_the_table(said, "rloo") == {"results/ci/ci/rloo/rloo/seed0"}
    assert folders_in_the_table(said, "grpo") == {"results/ci/ci/grpo/grpo/seed0"}


def test_a_wrong_number_and_saved_trees_are_answered_as_the_guide_says(followed: Tree) -> None:
    said = followed.snakemake(*REFUSED[1:], fails=True)
    (answer,) = re.findall(r"^```text\n(.*)\n```$", GUIDE, re.MULTILINE)
    assert said.rstrip().splitlines()[-1] == answer

    (saved,) = re.findall(r"^```json\n(.*?)^```", (PROJECT / "docs/trees.md").read_text(), re.MULTILINE | re.DOTALL)
    (followed.root / "trees.jsonl").write_text(json.dumps(json.loads(saved)))
    printed = [json.loads(line) for line in run_in(followed, CREDIT).splitlines()]
    head, table = re.search(r"^(\| branch .*)\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE).groups()
    names = head.strip("| ").split(" | ")
    shown = ["| " + " | ".join(in_table(row[name]) for name in names) + " |" for row in printed]
    assert table.splitlines() == shown[:4]


def in_table(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def test_an_ablation_is_a_row_by_yaml_alone(copy: Tree, tmp_path: Path) -> None:
    (tmp_path / "ablation.yaml").write_text(FILES["ablation.yaml"])
    said = copy.snakemake("-np", *(str(tmp_path / word) if word == "ablation.yaml" else word for word in ABLATION[1:]))
    (folder,) = folders_in_the_table(said, "datpo_tokens")
    assert folder == "results/tiny/tiny/datpo/datpo_tokens/seed0"
    assert Run("tiny", "datpo", "datpo_tokens").label in GUIDE
    told = map(json.loads, re.findall(r"--settings '(.*)'", said))
    (settings,) = (each for each in told if "method" in each and each["identity"]["run"] == "datpo_tokens")
    assert settings["method"]["fork_rule"] == "tok-entropy"


def folders_in_the_table(said: str, run: str) -> set[str]:
    """The results of a run that the table would be made of, by what a dry run printed."""
    (table,) = re.findall(r"python -m datpo table2 .* --out results/\w+/tables(?: |$)", said, re.MULTILINE)
    return set(re.findall(rf"(\S+/{run}/seed\d+)/metrics/\S+\.json", table))
