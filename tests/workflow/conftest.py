"""Copies of the project, made once."""

from __future__ import annotations

import os

import pytest

from tests.workflow.project import Tree, copy_project, stand_in_conda, stubbed_project


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy for dry-runs: nothing is computed in it."""
    return copy_project(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy in which everything has been run at scale ci, with stand-ins for the work itself.

    Tests may plan in it whatever they like, and leave it as they found it.
    """
    tree = stubbed_project(tmp_path_factory.mktemp("finished"))
    tree.snakemake("--cores", "2", "--config", "scale=ci")
    return tree


@pytest.fixture(scope="session")
def with_conda(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a conda is found, which Snakemake asks for even where it only plans."""
    return {"PATH": f"{stand_in_conda(tmp_path_factory.mktemp('conda'))}:{os.environ['PATH']}"}
