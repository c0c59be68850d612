"""The log of a training run: one JSON object per step, and the same numbers as TensorBoard events."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from datpo.core.errors import InputError
from datpo.core.files import write_jsonl


class TrainingLog:
    """Appends to `metrics.jsonl`; opened at step s, rows after s (of an attempt that was cut short) are dropped."""

    def __init__(self, folder: Path, step: int) -> None:
        """The log of a run whose state is that of `step`.

        Raises:
            InputError: a step before it is missing.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "metrics.jsonl"
        self.rows = [row for row in self._whole_rows() if row["step"] <= step]
        if [row["step"] for row in self.rows] != list(range(1, step + 1)):
            raise InputError(
                f"{self.path}: lacks some of the {step} steps before the state; delete {folder} to start again"
            )
        write_jsonl(self.path, self.rows)
        self.events = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def add(self, row: dict[str, Any]) -> None:
        """Append one step."""
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
            handle.flush()
            os.fsync(handle.fileno())  # a state on disk must not outlive the rows before it
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                self.events.add_scalar(name, value, row["step"])

    def publish(self, path: Path) -> None:
        """Write the whole log where the workflow expects it."""
        self.events.close()
        write_jsonl(path, self.rows)

    def _whole_rows(self) -> list[dict[str, Any]]:
        """The rows on disk up to the first cut one: it was being written when the job died or the disk was full."""
        rows: list[dict[str, Any]] = []
        for line in self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else ():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows
