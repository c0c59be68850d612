"""An environment for each kind of job: pinned, whole, and found by its rules."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from datpo.__main__ import VERBS
from tests.workflow.project import PROJECT, Tree, stand_in_conda, stubbed_project
from tests.workflow.test_names import RULE_FILES, VERBS_OF

ENVIRONMENTS = sorted(path.stem for path in (PROJECT / "envs").glob("*.yaml"))
RULE = re.compile(r"^(?:use )?rule (?:\w+ as )?(\w+)(?: with)?:\n((?:(?:    .*)?\n)+)", re.MULTILINE)
AS_VLLM_WANTS = {"numpy": "2.3.5"}  # in the one environment that has it
RUN = "results/ci/ci/grpo/grpo/seed0"
ONE_BENCHMARK = ("--config", "scale=ci", "benchmarks={moves-medium: null, moves-hard: null}")


def dependencies(environment: str) -> list[str | dict[str, list[str]]]:
    return yaml.safe_load((PROJECT / f"envs/{environment}.yaml").read_text(encoding="utf-8"))["dependencies"]


def lines(environment: str) -> list[str]:
    """What an environment gives pip."""
    (pip,) = [entry["pip"] for entry in dependencies(environment) if isinstance(entry, dict)]
    return pip


def pins(environment: str) -> dict[str, str]:
    return dict(line.split("==") for line in lines(environment) if not line.startswith("--"))


def plain(name: str) -> str:
    """A package's name in the one spelling of its many."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_environments_pin_the_versions_of_requirements_txt(environment: str) -> None:
    required = dict(re.findall(r"^([\w.-]+)==(\S+)$", (PROJECT / "requirements.txt").read_text(), re.MULTILINE))
    ours = pins(environment)
    if environment == "learn_cuda":  # has more than we ask for, which is pinned here alone
        required |= AS_VLLM_WANTS
        ours = {name: version for name, version in ours.items() if name in required or name in pins("learn")}
    assert {name: required.get(name) for name in ours} == ours
    beside_pip = [entry for entry in dependencies(environment) if isinstance(entry, str)]
    assert beside_pip == ["python=3.11.11", "pip=25.0"]


def test_the_two_builds_of_torch_differ_in_vllm_and_nothing_else_of_ours() -> None:
    """PyPI's is the CUDA build. The other index has the CPU build under a version that pip takes for newer."""
    assert [line for line in lines("learn") if line.startswith("--")] == [
        "--extra-index-url https://download.pytorch.org/whl/cpu"
    ]
    cuda = pins("learn_cuda")
    assert {name: cuda.get(name) for name in pins("learn")} == pins("learn") | AS_VLLM_WANTS
    assert not any(line.startswith("--") for name in set(ENVIRONMENTS) - {"learn"} for line in lines(name))


def imported(module: str, seen: set[str]) -> set[str]:
    """Top-level names of the packages that a module of ours imports, and those that it imports of ours."""
    file = PROJECT / "src" / Path(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if module in seen or not file.exists():
        return set()
    seen.add(module)
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        wanted = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            wanted = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in wanted:
            found |= imported(name, seen) if name.startswith("datpo") else {name.split(".")[0]}
    return found


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_has_every_package_its_verbs_import(environment: str) -> None:
    distributions = importlib.metadata.packages_distributions()
    seen: set[str] = set()
    verbs = VERBS_OF[environment.removesuffix("_cuda")]
    packages = {name for verb in verbs for name in imported(VERBS[verb].split(":")[0], seen)}
    needed = {plain(name) for package in packages for name in distributions.get(package, [])}
    assert needed - {"datpo"} <= set(map(plain, pins(environment)))


def resolved(environment: str, folder: Path) -> dict[str, str]:
    """What an installer would put into an empty environment; without a network there is nothing to be said."""
    local = [f"--find-links={os.environ['PIP_FIND_LINKS']}"] if os.environ.get("PIP_FIND_LINKS") else []
    # A folder of local wheels, which hold the CPU build of torch, stands in for its index; PyPI's own is the other.
    given = [line for line in lines(environment) if not (local and line.startswith("--"))]
    (folder / "given.txt").write_text("\n".join(given))
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert uv, "uv is not there; `make setup` installs it"
    said = subprocess.run(
        [
            *(uv, "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--index-strategy=unsafe-best-match"),
            *("--python-version=3.11", "--python-platform=x86_64-manylinux_2_28", str(folder / "given.txt")),
            *([] if environment == "learn_cuda" else local),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode and re.search(r"error sending request|Failed to fetch|dns error", said.stderr):
        pytest.skip(f"no package index: {said.stderr[-300:]}")
    assert said.returncode == 0, said.stderr
    return dict(line.split("==") for line in said.stdout.split())


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_nothing_is_installed_that_is_not_pinned(environment: str, tmp_path: Path) -> None:
    """What is missing here, or is not needed any more, is in the difference."""
    found = resolved(environment, tmp_path)
    if "torch" in found:
        assert found["torch"] == {"learn": "2.13.0+cpu", "learn_cuda": "2.13.0"}[environment]
        found["torch"] = found["torch"].removesuffix("+cpu")
    assert found == pins(environment)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["evaluate", "learn"])
def test_pip_itself_finds_all_of_it(environment: str, tmp_path: Path) -> None:
    """For an empty environment. The two largest, but for the CUDA build, of which it would fetch gigabytes."""
    (tmp_path / "given.txt").write_text("\n".join(line for line in lines(environment) if not line.startswith("--")))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"]
    said = subprocess.run([*command, "-r", tmp_path / "given.txt"], capture_output=True, text=True, check=False)
    if "NewConnectionError" in said.stderr:
        pytest.skip(f"no package index: {said.stderr[-300:]}")
    assert said.returncode == 0, said.stderr
    (would,) = re.findall(r"^Would install (.*)$", said.stdout, re.MULTILINE)
    assert len(would.split()) == len(pins(environment))


def test_every_rule_with_a_command_names_its_environment() -> None:
    """A rule that narrows another has the other's; a job that may have a GPU has the one that is chosen by it."""
    for file in RULE_FILES:
        for name, body in RULE.findall(file.read_text(encoding="utf-8")):
            named = re.search(r"    conda:\n        (\S+)\n", body)
            assert named or "    shell:" not in body, name
            if named and named[1] != "LEARN":
                assert (file.parent / named[1].strip('"')).is_file(), f"{name}: {named[1]}"
            if "    shell:" in body:
                assert ("**model_job(" in body) == (named is not None and named[1] == "LEARN"), name


@pytest.fixture(scope="module")
def in_conda(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, str]:
    """A copy in which a training was run and shown in conda environments, and the PATH with its `conda`."""
    tree = stubbed_project(tmp_path_factory.mktemp("project"))
    path = f"{stand_in_conda(tmp_path_factory.mktemp('conda') / 'home')}:{os.environ['PATH']}"
    tree.snakemake("--cores", "2", "--use-conda", f"{RUN}/card.md", *ONE_BENCHMARK, PATH=path)
    return tree, path


def made_from(prefixes: Iterable[str]) -> list[str]:
    """The names of the files that environments were made from."""
    texts = {(PROJECT / f"envs/{name}.yaml").read_text(encoding="utf-8"): name for name in ENVIRONMENTS}
    return sorted(texts[Path(prefix, "made_from.yaml").read_text(encoding="utf-8")] for prefix in prefixes)


def test_jobs_run_in_the_environments_of_their_rules(in_conda: tuple[Tree, str]) -> None:
    tree, _ = in_conda
    assert made_from((tree.root / "conda.txt").read_text().split()) == ["data", "learn", "report", "score"]
    seen = set()
    for line in (tree.root / "python.txt").read_text().splitlines():
        prefix, python, path, alone, command = line.split("|")
        (environment,) = made_from([prefix])
        verb = command.removeprefix("-m datpo ")
        assert verb in VERBS_OF[environment], line
        assert python == f"{prefix}/bin/python"
        assert path == f"{tree.root}/src"
        assert alone == "1"  # the user's own packages are left out
        seen.add(verb)
    assert seen == {"config", "data", "pretrain", "train", "sample", "score", "metrics", "card"}


def test_a_bumped_pin_trains_nothing_in_conda_environments_either(in_conda: tuple[Tree, str]) -> None:
    tree, path = in_conda
    asked = ("--use-conda", f"{RUN}/metrics.jsonl", *ONE_BENCHMARK)
    with tree.edited("envs/learn.yaml", "numpy==", "numpy==9."):
        assert tree.plan(*asked, PATH=path) == {}
        assert "train_grpo" in tree.plan(*asked, "--rerun-triggers", "software-env", PATH=path)  # Snakemake's own


def test_the_settings_and_no_device_choose_the_build_of_torch(in_conda: tuple[Tree, str], tmp_path: Path) -> None:
    """As on a login node that makes the environments ahead. The paper's scale has a GPU for each such job."""
    tree = in_conda[0].copied(tmp_path / "tree")
    (tree.root / "conda.txt").unlink()
    for made in ("results", ".snakemake"):
        shutil.rmtree(tree.root / made)
    asked = ("--use-conda", "--conda-create-envs-only", f"{RUN}/metrics.jsonl", *ONE_BENCHMARK, "jobs={gpus: 1}")
    tree.snakemake("--cores", "1", *asked, PATH=in_conda[1])
    assert made_from((tree.root / "conda.txt").read_text().split()) == ["data", "learn_cuda"]
    scale = yaml.safe_load((PROJECT / "config/scales/paper.yaml").read_text(encoding="utf-8"))
    assert scale["jobs"]["gpus"] == 1
