"""What a finished job could go on from is dropped, unless nobody is there to take note that it finished."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from datpo.core.spent import ASKER, drop_spent


@pytest.fixture
def spent(tmp_path: Path) -> list[Path]:
    (tmp_path / "chunk").mkdir()
    (tmp_path / "chunk/rows.csv").write_text("1\n")
    (tmp_path / "partial.jsonl").write_text("{}\n")
    return [tmp_path / "chunk", tmp_path / "partial.jsonl"]


def test_what_is_spent_goes_while_somebody_waits(spent: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASKER, str(os.getpid()))
    drop_spent(spent)
    assert not any(path.exists() for path in spent)


def test_a_job_that_nobody_in_particular_asked_for_drops_it_too(
    spent: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ASKER, raising=False)
    drop_spent([*spent, *spent])  # and what is gone already is no error
    assert not any(path.exists() for path in spent)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere nobody can be seen to be gone")
@pytest.mark.parametrize("looked_at", [True, False])
def test_it_stays_when_who_asked_is_gone(spent: list[Path], monkeypatch: pytest.MonkeyPatch, looked_at: bool) -> None:
    asker = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    asker.communicate() if looked_at else os.waitid(os.P_PID, asker.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setenv(ASKER, str(asker.pid))
    drop_spent(spent)
    assert all(path.exists() for path in spent)
    asker.wait()
