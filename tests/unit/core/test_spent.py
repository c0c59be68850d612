"""What a finished job could go on from is dropped, but not before Snakemake has accepted what it published."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from snakemake.persistence.file import FilePersistence

from datpo.__main__ import main
from datpo.core.spent import BEGUN, NOTES, drop_accepted, drop_spent, drop_used

FOLDER = Path(".snakemake/spent")
CHECKPOINTS = ["results/run/checkpoint", "results/" + "a-long-name/" * 40 + "ümlaut?"]


@dataclass
class Job:
    """A job that has published a checkpoint, what it could go on from, and Snakemake's books."""

    out: Path
    spent: list[Path]
    keeper: FilePersistence

    def begin(self) -> None:
        self.keeper._mark_incomplete(str(self.out), None)

    def note(self) -> None:
        self.keeper._unmark_incomplete(str(self.out))
        BEGUN.mkdir(exist_ok=True)  # as every start of Snakemake does

    def kept(self) -> bool:
        """Whether all of it is there, or nothing; it is not left in pieces."""
        (kept,) = {path.exists() for path in self.spent}
        return kept


@pytest.fixture(params=CHECKPOINTS)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Job:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(NOTES, str(FOLDER))
    BEGUN.mkdir(parents=True)
    Path("work/chunk").mkdir(parents=True)
    Path("work/chunk/rows.csv").write_text("1\n")
    Path("work/partial.jsonl").write_text("{}\n")
    keeper = FilePersistence.__new__(FilePersistence)
    keeper._incomplete_path, keeper._incomplete_cache, keeper._max_len = str(BEGUN), None, None
    out = Path(request.param)
    (out / "at-tokens").mkdir(parents=True)
    return Job(out, [Path("work/chunk"), Path("work/partial.jsonl")], keeper)


def test_a_job_that_snakemake_did_not_ask_for_drops_it_at_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NOTES)
    drop_spent([*job.spent, *job.spent], job.out)  # and what is gone already is no error
    assert not job.kept()
    assert not FOLDER.exists()


@pytest.mark.parametrize("below", ["", "at-tokens"])
def test_it_stays_until_a_job_works_with_what_was_published(job: Job, below: str) -> None:
    drop_spent(job.spent, job.out)
    drop_used([Path("results/other"), Path("results")])
    assert job.kept()
    drop_used([Path("config.yaml"), job.out / below])
    assert not job.kept()
    Path("work/partial.jsonl").write_text("{}\n")
    drop_used([job.out])  # what another job has begun since is not this one's
    assert Path("work/partial.jsonl").exists()


def test_a_job_asked_for_again_keeps_its_own(job: Job) -> None:
    """Snakemake has deleted what it published."""
    drop_spent(job.spent, job.out)
    (job.out / "at-tokens").rmdir()
    job.out.rmdir()
    drop_used([job.out])
    drop_accepted(FOLDER)
    assert job.kept()


def test_it_goes_at_the_latest_with_the_next_start_or_end_of_a_snakemake_that_holds_it_for_whole(job: Job) -> None:
    job.begin()
    drop_spent(job.spent, job.out)
    drop_accepted(FOLDER)
    assert job.kept()
    job.note()
    drop_accepted(FOLDER)
    assert not job.kept()
    assert not list(FOLDER.iterdir())


def test_another_job_drops_it_too_where_snakemake_has_held_it_for_whole_for_some_minutes(job: Job) -> None:
    """Else the states of many trainings, whose checkpoints are sampled later, would pile up."""
    job.begin()
    drop_spent(job.spent, job.out)
    (note,) = FOLDER.iterdir()
    hour_ago = time.time() - 3600
    drop_used([])
    os.utime(note, (hour_ago, hour_ago))
    drop_used([])
    assert job.kept()
    job.note()
    os.utime(note)
    drop_used([])
    assert job.kept()
    os.utime(note, (hour_ago, hour_ago))
    drop_used([])
    assert not job.kept()


def test_snakemake_s_books_elsewhere_say_nothing(job: Job) -> None:
    drop_spent(job.spent, job.out)
    BEGUN.rmdir()
    drop_accepted(FOLDER)
    assert job.kept()


@pytest.mark.parametrize("content", ["", "[]", '{"out": "results"}', '{"out": "results", "spent": 3}'])
def test_a_damaged_note_stops_nobody(job: Job, content: str) -> None:
    drop_spent(job.spent, job.out)
    (note,) = FOLDER.iterdir()
    note.write_text(content)
    drop_used([job.out])
    drop_accepted(FOLDER)
    assert job.kept()


def test_a_note_that_cannot_be_written_fails_no_job(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    FOLDER.write_text("in the way")
    drop_spent(job.spent, job.out)
    assert "nobody will remove work/chunk, work/partial.jsonl" in capsys.readouterr().err
    assert job.kept()


def test_what_cannot_be_removed_stays_noted(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    drop_spent(job.spent, job.out)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    with monkeypatch.context() as rights:
        rights.setattr(os, "unlink", refuse)
        drop_used([job.out])
    assert job.kept()
    drop_used([job.out])
    assert not job.kept()


def test_every_verb_drops_what_is_behind_its_inputs(job: Job) -> None:
    drop_spent(job.spent, job.out)
    assert main(["trace", str(job.out)]) == 2  # which is no table
    assert not job.kept()
