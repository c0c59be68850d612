"""What a job goes on from, and when that may go.

Between the end of a job and Snakemake's note of it, Snakemake can die. The next one then deletes what the job published
and asks for it again, and it is made from what the job had gone on from, if that is still there.
"""

from __future__ import annotations

import hashlib
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from datpo.core.files import read_json, write_json

# Below the folder in which Snakemake runs, and so do its jobs.
BEGUN = Path(".snakemake/incomplete")  # Snakemake's: a file for each output, from the start of its job to that note
SPENT = Path(".snakemake/spent")  # ours: a file for each output that a job has published, with what may go then


def drop_spent(paths: Iterable[Path], out: Path) -> None:
    """Remove files and folders that the job which has just published `out`, its last output, would have gone on from.

    Where Snakemake asked for it, they stay until it has taken note that `out` is there: see `drop_noted`.
    """
    spent = [str(path) for path in paths]
    if _is_begun(out):
        name = hashlib.sha256(str(out).encode()).hexdigest()[:16]
        write_json(SPENT / f"{name}.json", {"out": str(out), "spent": spent})
    else:
        _remove(spent)


def drop_noted() -> None:
    """Remove what ended jobs would have gone on from, where Snakemake has by now taken note of what they published."""
    for file in SPENT.glob("*.json"):
        if not file.exists():  # another job was faster
            continue
        ended = read_json(file)
        if Path(ended["out"]).exists() and not _is_begun(Path(ended["out"])):
            _remove(ended["spent"])
            file.unlink(missing_ok=True)


def _is_begun(out: Path) -> bool:
    """Whether Snakemake has asked for an output and not yet taken note that it is there.

    It names a file after each, in base64; what is too long for one name goes on in folders whose names begin with "@".
    """
    begun = ("".join(part.removeprefix("@") for part in file.relative_to(BEGUN).parts) for file in BEGUN.rglob("*"))
    return urlsafe_b64encode(str(out).encode()).decode() in begun


def _remove(paths: Iterable[str]) -> None:
    for path in map(Path, paths):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # another job may be at it
        else:
            path.unlink(missing_ok=True)
