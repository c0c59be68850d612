"""The cluster of these tests keeps away from one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm import cluster


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with Slurm's programs and an empty folder for its configuration."""
    monkeypatch.setattr(cluster, "program", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(cluster, "SYSTEM", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return tmp_path


def test_a_slurm_that_is_configured_is_left_alone(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cluster.why_not(accounting=False) is None
    (installed / "slurm.conf").write_text("ClusterName=real\n")
    assert "is left alone" in str(cluster.why_not(accounting=False))
    (installed / "slurm.conf").unlink()
    (installed / "slurm.conf").symlink_to("/nfs/etc/slurm.conf")
    assert "slurm.conf), and is left alone" in str(cluster.why_not(accounting=False))
    (installed / "slurm.conf").unlink()
    monkeypatch.setenv("SLURM_CONF", "/nfs/etc/slurm.conf")
    assert "SLURM_CONF=/nfs/etc/slurm.conf" in str(cluster.why_not(accounting=False))


def test_what_a_killed_run_of_the_tests_left_is_swept_away(installed: Path) -> None:
    (installed / "slurm.conf").symlink_to("/tmp/datpo-slurm-gone/etc/slurm.conf")
    assert cluster.why_not(accounting=False) is None
    cluster.sweep()
    assert not any(installed.iterdir())


def test_without_slurm_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "program", lambda name: None)
    assert "apt-get install slurmctld slurmd slurm-client munge" in str(cluster.why_not(accounting=False))
    assert "mariadb-server" in str(cluster.why_not(accounting=True))
