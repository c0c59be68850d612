"""Both theorems of the paper (appendix A), number by number; and pass@k of every run taken apart by the second."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pandas as pd

from datpo.config import read_settings
from datpo.core.files import Row, whole_file
from datpo.core.kinds import NAME, Kinds, check_kinds, whole
from datpo.report.theory.checks import Check, all_checks
from datpo.report.theory.figure import draw_theory
from datpo.report.theory.gap import Decomposition
from datpo.report.theory.page import theory_page
from datpo.report.theory.runs import IDENTITY, Measured, measure

SETTINGS: Kinds = {"scale": NAME, "seed": whole(), "draws": whole(2, 1_000_000)}
PARTS = tuple(Decomposition.__dataclass_fields__)
COLUMNS = ("what", "parameters", "value", "compared", "error", "standard_error", *IDENTITY, *PARTS)


def theory(metrics: list[Path], config: Path, out: Path) -> None:
    """Check both theorems in numbers, and say what they make of the runs.

    Writes `theory.csv`, a row for each number; `theory.png` and `.svg`; and `theory.html`, one page that holds the
    figure. What is checked, and what fails: docs/theory.md.

    Args:
        metrics: metrics files of any runs; only how many samples of each problem are right is read.
        config: YAML with `scale`, that of the runs; `seed` of the simulations; and `draws`, groups or problems of each.
        out: the folder.

    Raises:
        InputError: no metrics, two files of one checkpoint and benchmark, or a file of another scale.
    """
    settings = read_settings(config)
    check_kinds(str(config), settings, SETTINGS)
    runs = measure(metrics, settings["scale"])
    checks = all_checks(settings["draws"], settings["seed"])
    rows = [*map(_check_row, checks), *(row for run in runs for row in _run_rows(run))]
    out = Path(out)
    with whole_file(out / "theory.csv") as handle:
        handle.write(pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    draw_theory(out / "theory.png", checks, runs, settings["scale"])
    with whole_file(out / "theory.html") as handle:
        handle.write(theory_page(checks, runs, settings, (out / "theory.png").read_bytes()))


def _check_row(check: Check) -> Row:
    return {
        **check._asdict(),
        "value": float(check.value),
        "compared": float(check.compared),
        "error": check.error,
    }


def _run_rows(run: Measured) -> list[Row]:
    """A row for each k: J_k against its second-order approximation; then what changed, pass@k against its two parts."""
    measured = [("Jensen gap of a run: second order", part, part.jensen, part.second_order) for part in run.parts]
    changed = [
        ("change of pass@k from the base model: f_k(mu) less J_k", part, part.passed, part.f_mu - part.jensen)
        for part in run.change
    ]
    return [
        {
            **run.identity,
            **asdict(part),
            "what": what,
            "parameters": f"k={part.k}",
            "value": value,
            "compared": compared,
            "error": compared - value,
        }
        for what, part, value, compared in [*measured, *changed]
    ]
