"""What a finished job could go on from is dropped, but not before Snakemake has taken note that it finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from snakemake.persistence.file import FilePersistence

from datpo.core.spent import BEGUN, drop_noted, drop_spent

NAMES = ["results/samples/moves.jsonl", "results/" + "a-long-name/" * 40 + "ümlaut?.jsonl"]


@dataclass
class Bookkeeping:
    """Snakemake's, of one output."""

    out: Path
    keeper: FilePersistence

    def begin(self) -> None:
        self.keeper._mark_incomplete(str(self.out), None)

    def note(self) -> None:
        self.keeper._unmark_incomplete(str(self.out))


@pytest.fixture
def spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    BEGUN.mkdir(parents=True)
    Path("work/chunk").mkdir(parents=True)
    Path("work/chunk/rows.csv").write_text("1\n")
    Path("work/partial.jsonl").write_text("{}\n")
    return [Path("work/chunk"), Path("work/partial.jsonl")]


@pytest.fixture(params=NAMES)
def snakemake(spent: list[Path], request: pytest.FixtureRequest) -> Bookkeeping:
    keeper = FilePersistence.__new__(FilePersistence)
    keeper._incomplete_path, keeper._incomplete_cache, keeper._max_len = str(BEGUN), None, None
    out = Path(request.param)
    out.parent.mkdir(parents=True)
    out.write_text("{}\n")
    return Bookkeeping(out, keeper)


def test_a_job_that_snakemake_did_not_ask_for_drops_it_at_once(spent: list[Path]) -> None:
    drop_spent([*spent, *spent], Path("out"))  # and what is gone already is no error
    assert not any(path.exists() for path in spent)


def test_it_stays_until_snakemake_has_taken_note(spent: list[Path], snakemake: Bookkeeping) -> None:
    snakemake.begin()
    drop_spent(spent, snakemake.out)
    drop_noted()
    assert all(path.exists() for path in spent)
    snakemake.note()
    drop_noted()
    assert not any(path.exists() for path in spent)
    Path("work/partial.jsonl").write_text("{}\n")
    drop_noted()  # what another job has begun since is not this one's
    assert Path("work/partial.jsonl").exists()


def test_it_stays_where_what_was_published_is_gone(spent: list[Path], snakemake: Bookkeeping) -> None:
    """Snakemake deletes the outputs of a job that failed."""
    snakemake.begin()
    drop_spent(spent, snakemake.out)
    snakemake.note()
    snakemake.out.unlink()
    drop_noted()
    assert all(path.exists() for path in spent)
