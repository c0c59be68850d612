"""What a job goes on from, and when that may go.

Between the end of a job and Snakemake's note of it, Snakemake can die, or find fault with the job. It then deletes what
the job published and asks for it again, and it is made from what the job had gone on from, if that is still there. So
that stays until Snakemake has accepted what was published: until a job is asked for that works with it, or Snakemake
holds it for whole, which is sure when it starts or ends, and while it runs some minutes later.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from datpo.core.files import write_json

NOTES = "DATPO_SPENT"  # names the folder of notes in jobs that Snakemake asked for (rules/common.smk)
PATIENCE = 600  # seconds, longer than a cluster takes to tell how a job ended, or a failed job's outputs to be deleted
BEGUN = Path(".snakemake/incomplete")  # Snakemake's: a file for each output that it does not hold for whole


def drop_spent(paths: Iterable[Path], out: Path) -> None:
    """Remove files and folders that the job which has just published `out` would have gone on from.

    Where Snakemake asked for the job they stay, and a note of them, until it has accepted `out`.
    """
    spent = list(paths)
    if not os.environ.get(NOTES):
        _remove(spent)
        return
    try:
        write_json(_note(out), {"out": str(out), "spent": [str(path) for path in spent]})
    except OSError as error:  # no reason to fail: all is published
        print(f"{error}; nobody will remove {', '.join(map(str, spent))}", file=sys.stderr)


def drop_used(inputs: Iterable[Path]) -> None:
    """Remove, as a job starts, what the jobs behind its inputs would have gone on from, and what others long need not.

    Of the paths that a job is given, its inputs are those that exist: Snakemake deletes old outputs before it starts.
    """
    if not os.environ.get(NOTES):
        return
    for path in inputs:
        for out in (path, path.parent):  # a checkpoint on the way lies in the folder of the last one
            if out.exists():
                _drop(_note(out))
    drop_accepted(Path(os.environ[NOTES]), PATIENCE)


def drop_accepted(notes: Path, patience: float = 0) -> None:
    """Remove what jobs that ended `patience` seconds ago would have gone on from, if Snakemake holds all for whole.

    For a moment it also seems to hold for whole what a failed job published, and on a cluster what has only just ended.
    """
    if not BEGUN.exists():  # it keeps its books elsewhere
        return
    for note in notes.glob("*.json"):
        out, _ = _read(note)
        if out and Path(out).exists() and not _is_begun(out) and _age(note) >= patience:
            _drop(note)


def _note(out: Path) -> Path:
    return Path(os.environ[NOTES]) / f"{hashlib.sha256(str(out).encode()).hexdigest()[:16]}.json"


def _read(note: Path) -> tuple[str, list[Path]]:
    """An output, and what it was made from; nothing where there is no note, or none that can be read."""
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        return content["out"], [Path(path) for path in content["spent"]]
    except (OSError, ValueError, KeyError, TypeError):
        return "", []


def _drop(note: Path) -> None:
    out, spent = _read(note)
    if out and _remove(spent):
        note.unlink(missing_ok=True)


def _remove(paths: Iterable[Path]) -> bool:
    """Whether all of it is gone; another job may be removing it too."""
    paths = list(paths)
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return not any(path.exists() for path in paths)


def _is_begun(out: str) -> bool:
    """Whether Snakemake has asked for an output and does not hold it for whole.

    It names a file after each, in base64; what is too long for one name goes on in folders whose names begin with "@".
    """
    files = (Path(folder, name).relative_to(BEGUN) for folder, _, names in os.walk(BEGUN) for name in names)
    begun = ("".join(part.removeprefix("@") for part in file.parts) for file in files)
    return urlsafe_b64encode(out.encode()).decode() in begun


def _age(note: Path) -> float:
    try:
        return time.time() - note.stat().st_mtime
    except OSError:  # another job was faster
        return 0
