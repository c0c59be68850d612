"""`python -m benchmarks`: every row of the table, one after the other.

Options: --trl PYTHON, the Python of an environment with benchmarks/requirements-trl.txt; --answers FILE, lines of
{id, gold, response}; --only GROUP, one of update, generation, step, memory, cheap; --out FOLDER for table.md and
table.csv. Rows that need what is not given are left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tabulate import tabulate

from benchmarks import cheap, generation, memory, step, update
from benchmarks.measure import Row

PACKAGES = ("torch", "transformers", "accelerate", "math-verify", "snakemake")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--trl", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--only", choices=("update", "generation", "step", "memory", "cheap"))
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    options = parser.parse_args()
    began = time.monotonic()
    found: list[Row] = []
    with TemporaryDirectory() as folder:
        for make in _rows(options, Path(folder)):
            row = make()
            found.append(row)
            print(f"[{time.monotonic() - began:4.0f} s] {' | '.join(_cells(row))}", flush=True)
    _write(options.out, found)
    print()
    print(_table(found))
    targets = [row for row in found if row.target]
    missed = [row.name for row in targets if not row.met]
    print(f"\n{len(missed)} of {len(targets)} targets missed{': ' if missed else ''}{'; '.join(missed)}")


def _rows(options: argparse.Namespace, folder: Path) -> Iterator[Callable[[], Row]]:
    groups = {
        "update": update.rows,
        "generation": generation.rows,
        "step": lambda: step.rows(options.trl, folder),
        "memory": lambda: memory.rows(options.trl),
        "cheap": lambda: cheap.rows(options.answers, folder),
    }
    for name, rows in groups.items():
        if options.only in (None, name):
            yield from rows()


def _cells(row: Row) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"

    spread = "" if row.low is None or row.high is None else f" ({row.low:.2f}-{row.high:.2f})"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x{spread}"
    limit = "" if row.limit is None else f"{row.limit:.2f}x"
    met = ("yes" if row.met else "NO") if row.target else ""
    return [row.name, row.against, f"{number(row.ours)} {row.unit}", number(row.theirs), ratio, limit, row.target, met]


HEADER = ("what", "against", "ours", "theirs", "ratio (least-most)", "token limit", "target", "met")


def _table(rows: list[Row]) -> str:
    return str(tabulate([_cells(row) for row in rows], HEADER, tablefmt="pipe", disable_numparse=True))


def _write(out: Path, rows: list[Row]) -> None:
    """The table as Markdown, and as CSV with the versions and the machine."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(_table(rows) + "\n", encoding="utf-8")
    made = {name: version(name) for name in PACKAGES}
    made |= {"python": platform.python_version(), "machine": platform.processor() or platform.machine()}
    made |= {"threads": os.environ.get("OMP_NUM_THREADS", "")}
    with open(out / "table.csv", "w", newline="", encoding="utf-8") as handle:
        table = csv.DictWriter(handle, [*asdict(rows[0]), *made])
        table.writeheader()
        table.writerows({**asdict(row), **made} for row in rows)


if __name__ == "__main__":
    main()
