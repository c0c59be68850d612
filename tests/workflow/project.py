"""A copy of the project to run Snakemake in, and ways to read what it plans."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
STUB = Path(__file__).with_name("stub_verbs.py")
TRAINING = {"pretrain", *(f"train_{method}" for method in ("grpo", "dr_grpo", "treerl", "attnrl", "datpo"))}

# Snakemake takes seconds to import: a server imports it once and forks a fresh process for each run.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["snakemake.cli"])


def run_snakemake(arguments: tuple[str, ...], folder: Path, environment: dict[str, str], said: str) -> None:
    """`snakemake ARGUMENTS` in a process of its own; all it prints goes to the file `said`."""
    from snakemake.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with open(said, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["snakemake", *arguments]
    main(list(arguments))


@dataclass(frozen=True)
class Tree:
    """A copy of the project's files, with its own results."""

    root: Path

    def snakemake(self, *arguments: str, fails: bool = False, **environment: str) -> str:
        """Run Snakemake to its end; what it said, once its exit code is as expected."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as said:
            process = SERVER.Process(
                target=run_snakemake, args=(arguments, self.root, {**os.environ, **environment}, said.name)
            )
            process.start()
            process.join(2400)
            if process.is_alive():
                process.kill()
            text = said.read()
        assert (process.exitcode != 0) == fails, text
        return text

    def plan(self, *arguments: str, **environment: str) -> dict[str, int]:
        """How many jobs of each rule a dry-run plans; nothing to do is an empty plan."""
        said = self.snakemake("-n", "--cores", "2", *arguments, **environment)
        table = re.search(r"^Job stats:\n.*\n-.*\n((?:.*\n)*?)total ", said, re.MULTILINE)
        assert table or "Nothing to be done" in said, said
        return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table[1] if table else "", re.M)}

    def copied(self, target: Path) -> Tree:
        """The same tree elsewhere, its results and what Snakemake remembers of them included."""
        shutil.copytree(self.root, target, symlinks=True)
        return Tree(target)

    @contextmanager
    def edited(self, name: str, old: str, new: str) -> Iterator[None]:
        """A file of the tree with a text replaced, for a while."""
        file = self.root / name
        before = file.read_text(encoding="utf-8")
        assert old in before, f"{name} does not say {old!r}"
        file.write_text(before.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")


def copy_project(target: Path) -> Tree:
    """The files a commit would hold: tracked ones and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=PROJECT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        source = PROJECT / name
        if os.path.lexists(source):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return Tree(target)


def stubbed_project(target: Path) -> Tree:
    """A copy whose verbs write small stand-ins at once; rules, checks and configuration are the real ones.

    Two runs and Table 2 are left of the configuration's: the others take the same ways, each with a dozen jobs.
    """
    tree = copy_project(target)
    shutil.copy(STUB, tree.root / "src/datpo/__main__.py")
    file = tree.root / "config/config.yaml"
    left_out = ("  dr_grpo:", "  treerl:", "  attnrl:")
    file.write_text("".join(line for line in file.open() if not line.startswith(left_out)))
    without_studies(tree)
    return tree


def without_studies(tree: Tree) -> None:
    """Leave Table 2 alone of a copy's studies, and nothing of the rest of the paper's."""
    for file in [*tree.root.glob("config/studies/*.yaml"), *tree.root.glob("config/explorations/*.yaml")]:
        if file.stem != "table2":
            file.unlink()
    scale = tree.root / "config/scales/ci.yaml"
    before, rest, _ = scale.read_text(encoding="utf-8").partition("# The paper's other tables and figures.")
    assert rest
    scale.write_text(before, encoding="utf-8")


def stand_in_conda(home: Path) -> Path:
    """A folder for PATH with a `conda` that makes empty environments."""
    programs = home / "bin"
    programs.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("stand_in_conda.py"), programs / "conda")
    (programs / "conda").chmod(0o755)
    (programs / "activate").write_text('export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n')
    return programs
