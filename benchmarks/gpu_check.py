"""`python -m benchmarks.gpu_check`: what this machine's GPU makes of attention, update, sampling and a whole step.

Some minutes, no network, random weights. Options: --size qwen2.5-3b (where there is a GPU) or small; --minutes, after
which nothing is begun and what runs is stopped; --only SECTION, several times; --out FOLDER for gpu_check.json and
gpu_check.md, which are written anew after every line. A section that fails becomes a line that says why, and the others
still run; the exit code is then 1, as it is where something is not as it should be.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import torch
from tabulate import tabulate

from benchmarks.gpu import attention, generation, served, step, update
from benchmarks.gpu.bench import SCALES, Bench, Finding, failed
from benchmarks.gpu.machine import facts
from datpo.core.files import whole_file

Section = Callable[[Bench], Iterator[Finding]]

# The most important first; with the seconds that one needs at the least to be begun.
SECTIONS: dict[str, tuple[Section, float]] = {
    "attention": (attention.findings, 20),
    "update": (update.findings, 60),
    "generation": (generation.findings, 30),
    "step": (step.findings, 40),
    "twice": (step.repeated, 30),
    "vllm": (served.findings, 60),
}
AGAIN = 10  # seconds
HEADER = ("section", "what", "measured", "against", "met", "note")


class Sheet:
    """The findings so far, on the screen and in files."""

    def __init__(self, out: Path, scale: str, minutes: float) -> None:
        self.out, self.machine, self.rows = out, facts(), list[dict[str, object]]()
        self.asked = {"size": scale, "minutes": minutes}
        self.out.mkdir(parents=True, exist_ok=True)
        print(", ".join(f"{name} {value}" for name, value in self.machine.items()), flush=True)
        self.write(finished=False)

    def add(self, section: str, finding: Finding, seconds: float) -> None:
        """Print and write one more."""
        self.rows.append({"section": section, **asdict(finding), "at_s": round(seconds, 1)})
        print(f"[{seconds:4.0f} s] {' | '.join(filter(None, self._cells(self.rows[-1])))}", flush=True)
        self.write(finished=False)

    def write(self, finished: bool) -> None:
        """Both files, whole."""
        found = {**self.asked, "machine": self.machine, "finished": finished, "rows": self.rows}
        with whole_file(self.out / "gpu_check.json") as handle:
            json.dump(found, handle, indent=1)
        with whole_file(self.out / "gpu_check.md") as handle:
            handle.write(self.table() + "\n")

    def table(self) -> str:
        """All of it."""
        cells = [self._cells(row) for row in self.rows]
        return str(tabulate(cells, HEADER, tablefmt="pipe", disable_numparse=True))

    @property
    def wrong(self) -> list[str]:
        """What failed, or is not as it should be."""
        return [str(row["what"]) for row in self.rows if row["verdict"] in ("error", "NO")]

    def _cells(self, row: dict[str, object]) -> list[str]:
        measured = "" if row["value"] is None else f"{_number(float(str(row['value'])))} {row['unit']}".strip()
        return [
            str(row["section"]),
            str(row["what"]),
            measured,
            *(str(row[key]) for key in ("against", "verdict", "note")),
        ]


def _number(value: float) -> str:
    if abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def check(sheet: Sheet, bench: Bench, sections: dict[str, tuple[Section, float]]) -> None:
    """Run the sections in turn; each error becomes a line."""
    for name, (section, least) in sections.items():
        if bench.left < least:
            sheet.add(
                name,
                Finding("all of it", verdict="skipped", note=f"{bench.left:.0f} s left of {least:.0f}"),
                bench.spent,
            )
            continue
        try:
            with _no_longer_than(bench.left):
                for finding in section(bench):
                    sheet.add(name, finding, bench.spent)
        except Exception as error:  # whatever it is, the others are still to run
            sheet.add(name, failed("stopped here", error), bench.spent)
        gc.collect()
        torch.cuda.empty_cache()


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what runs longer; again every few seconds, as some code passes over all errors."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the time given to all sections is over ({seconds:.0f} s were left to this one)")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write; the exit code."""
    usual = "qwen2.5-3b" if torch.cuda.is_available() else "small"
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--size", choices=SCALES, default=usual)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--only", action="append", choices=SECTIONS)
    parser.add_argument("--out", type=Path, default=Path("results/gpu_check"))
    options = parser.parse_args(arguments)
    bench = Bench(SCALES[options.size], options.minutes)
    sheet = Sheet(options.out, options.size, options.minutes)
    check(sheet, bench, {name: SECTIONS[name] for name in options.only or SECTIONS})
    sheet.write(finished=True)
    print(f"\n{sheet.table()}\n\n{len(sheet.wrong)} of {len(sheet.rows)} lines are not as they should be")
    return 1 if sheet.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
