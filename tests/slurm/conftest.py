"""A Slurm cluster for the tests of this folder, one at a time on a machine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests.slurm.cluster import PREFIX, Cluster, cluster, why_not
from tests.workflow.conftest import with_conda  # noqa: F401


def started(accounting: bool) -> Iterator[Cluster]:
    if reason := why_not(accounting):
        pytest.skip(reason)
    with FileLock(f"/tmp/{PREFIX}one-at-a-time"):
        if reason := why_not(accounting):
            pytest.skip(reason)
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))  # short: a socket's path has 107 characters at most
        try:
            with cluster(root, accounting) as running:
                yield running
        finally:
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def slurm(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster, without accounting unless a test has it as its parameter."""
    yield from started(accounting=getattr(request, "param", False))


@pytest.fixture(scope="module")
def accounted() -> Iterator[Cluster]:
    """A cluster with MariaDB and slurmdbd."""
    yield from started(accounting=True)
