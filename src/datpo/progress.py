"""Progress of a long job as lines, so that two jobs can share a terminal and a log file stays readable."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm


class ProgressLines:
    """Prints `label: 42%|████▏     | 33/78 [01:10<01:36, …]` at most every few seconds, and once at the end."""

    def __init__(self, label: str, total: float, unit: str = "it", done: float = 0, every_s: float = 5.0) -> None:
        """`done` is what an earlier attempt already did: it counts as progress but not as speed."""
        self.label, self.total, self.unit, self.every_s = label, total, unit, every_s
        self.initial = self.done = done
        self.began = self.shown = time.monotonic()

    def advance(self, amount: float = 1, note: str = "") -> None:
        """Count `amount` more as done, and show it if the last line is old enough or this is the end."""
        self.done += amount
        now = time.monotonic()
        if now - self.shown < self.every_s and self.done < self.total:
            return
        self.shown = now
        line = tqdm.format_meter(
            min(self.done, self.total),
            self.total,
            now - self.began,
            ncols=100,
            prefix=self.label,
            unit=self.unit,
            unit_scale=True,
            initial=self.initial,
            postfix=note or None,
        )
        print(line, file=sys.stderr, flush=True)
