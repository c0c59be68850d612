"""What a job goes on from, once it has given all it was to give."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

ASKER = "DATPO_ASKED_BY"  # the process that waits for the job: Snakemake (workflow/job.sh)


def drop_spent(paths: Iterable[Path]) -> None:
    """Remove files and folders that a job would go on from; it has published all; asked again, it starts anew.

    They stay where whoever asked for the job is gone: nobody takes note of what it published, the next Snakemake will
    delete that and ask once more, and then it is made from these.
    """
    if not _asker_waits():
        return
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _asker_waits() -> bool:
    """Whether the process that asked is alive; true where none has said so."""
    process = os.environ.get(ASKER, "")
    if not process.isdigit() or not Path("/proc/self/stat").exists():
        return True
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")  # dead, and nobody has looked yet
