"""`plan`: what a scale will take, before it is begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from datpo.config import load_config, read_settings
from datpo.core.files import whole_file
from datpo.plan.estimates import CPU, Estimate, Plan, make_plan
from datpo.plan.needs import plan_settings
from datpo.plan.notes import notes_of
from datpo.plan.tables import parts_of
from datpo.report.markup import pipe_table
from datpo.report.sheet import PLAIN, Part, write_sheet

RECKONED = ("rows", "tokens", "spared")  # of memory: no parts of it
PROJECT = Path(__file__).resolve().parents[3]


def plan(
    config: Path | None = None, scale: str | None = None, results: Path | None = None, out: Path | None = None
) -> None:
    """Say of every job of a scale what memory, tokens, updates, operations and hours it will take, and of all together.

    Args:
        config: the settings as the workflow writes them; without it, those of config/ at `scale`.
        scale: of which; without it, that of config/config.yaml.
        results: the scale's folder of results, where logs tell what has been measured; without it, results/SCALE.
        out: where to write the plan, a path without ending, as .md, .html, .tex and .csv (a row for each job); without
            it, it is printed.

    Raises:
        InputError: a mistake in the configuration, or something that the plan needs is not known.
    """
    asked = {} if scale is None else {"scale": scale}
    settings = plan_settings(load_config(PROJECT, asked)) if config is None else read_settings(config)
    found = make_plan(settings, results or Path("results", settings["scale"]), PROJECT / "config")
    title, parts, notes = f"Plan of the scale {found.scale}", parts_of(found), notes_of(found)
    if out is None:
        print(_printed(title, parts, notes))
        return
    write_sheet(out, title, parts, notes)
    with whole_file(out.with_name(f"{out.name}.csv")) as handle:
        rows(found).to_csv(handle, index=False, lineterminator="\n")


def rows(found: Plan) -> pd.DataFrame:
    """Every job of a plan; memory in bytes."""
    return pd.DataFrame([_row(each, found) for each in found.estimates])


def _row(each: Estimate, found: Plan) -> dict[str, Any]:
    work = each.work
    memory = {f"memory_{part}": value for part, value in asdict(work.memory).items() if part not in RECKONED}
    return {
        **asdict(each.job),
        "needed_by": " ".join(each.needed_by),
        "questions": work.questions,
        "updates": work.updates,
        **{f"new_tokens{end}": value for end, value in zip(("_low", "", "_high"), work.sampled, strict=True)},
        "trained_tokens": work.trained,
        "operations_sampling": work.operations[0],
        "operations_training": work.operations[1],
        **memory,
        "memory_peak": work.memory.peak,
        "vllm_cache": work.memory.pages(found.memory) if found.device != CPU else None,
        **{
            f"paper_hours{end}": value
            for end, value in zip(("_low", "", "_high"), each.paper or (None, None, None), strict=True)
        },
        "paper_source": each.source,
        "measured_hours": each.measured,
        "done": each.done,
    }


def _printed(title: str, parts: Sequence[Part], notes: Sequence[str]) -> str:
    """A plan for a terminal: laid out as Markdown is, but nothing is escaped."""
    blocks = [f"# {title}"]
    for part in parts:
        blocks += [f"## {part.heading}"] if part.heading else []
        blocks.append(pipe_table([name for _, name in part.header], part.written(PLAIN), part.left))
    return "\n\n".join([*blocks, "## Notes", "\n".join(f"- {note}" for note in notes)])
