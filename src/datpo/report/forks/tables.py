"""The paper's Tables 1, 6 and 7 as files: what fork rules find on the same given rollouts, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import Interval
from datpo.report.forks.comparison import (
    AGAINST,
    COSTS,
    LAYOUTS,
    ForkTable,
    Measure,
    load_paper_rows,
    marked,
    structure_of,
)
from datpo.report.forks.explorations import load_exploration, rule_label
from datpo.report.forks.notes import fork_notes
from datpo.report.scores import Mark, Score
from datpo.report.sheet import Cell, Content, Gap, Part, write_sheet, write_text

PLACES = 5  # decimals in the CSV
AHEAD = tuple(f"minus_{AGAINST}{end}" for end in ("", "_low", "_high"))
Marks = Mapping[Measure, Mapping[str, Mark]]


def fork_table(config: Path, rollouts: Path, published: Path, table: str, out: Path) -> None:
    """Write one of the tables about fork rules: what each finds, how sure that is, and how it differs from `random`.

    Writes `TABLE.csv`, `TABLE.md`, `TABLE.tex` (booktabs) and `TABLE.html` into a folder.

    Args:
        config: settings of the exploration.
        rollouts: its `rollouts.csv`.
        published: the paper's numbers (YAML, a section of the table's name); shown only if the scale is `paper`.
        table: `table1`, `table6` or `table7`.
        out: the folder.

    Raises:
        InputError: an unknown table, an exploration that lacks one of its rules, or a file of another shape.
    """
    if table not in LAYOUTS:
        raise InputError(f"--table must be one of {', '.join(LAYOUTS)}, not {table!r}")
    exploration = load_exploration(config, rollouts)
    structures = {rule: structure_of(exploration, rule) for rule in LAYOUTS[table].rules}
    found = ForkTable(table, exploration, structures, *load_paper_rows(published, table, exploration.identity["scale"]))
    marks = {measure: marked(found, measure) for measure in found.layout.measures}
    write_text(Path(out) / f"{table}.csv", _tidy(found, marks).to_csv(index=False))
    title = f"{found.layout.title}, at scale {exploration.identity['scale']}"
    parts = [_scores(found, marks), _differences(found), _trees(found)]
    write_sheet(Path(out) / table, title, parts, fork_notes(found))


def _scores(table: ForkTable, marks: Marks) -> Part:
    header = [("", "model"), ("", "rule")]
    for measure in table.layout.measures:
        header += [(_title(measure), "chosen"), (_title(measure), "uniform")] if table.layout.uniform else []
        header += [] if table.layout.uniform else [("", _title(measure))]
    rows: list[list[Content]] = []
    for rule in table.layout.rules:
        row: list[Content] = [table.model, rule_label(rule)]
        for measure in table.layout.measures:
            interval = table.exploration.interval(table.values(rule, measure))
            score = None if interval is None else Score(interval, None, marks[measure].get(rule, ""))
            row.append(None if score is None else Cell(score, table.paper(rule, measure), measure.digits))
            if table.layout.uniform:
                expected = table.uniform(rule, measure)
                row.append(None if expected is None else f"{expected:.{measure.digits}f}")
        rows.append(row)
    return Part("", header, rows)


def _title(measure: Measure) -> str:
    return f"{measure.title} (%)" if measure.factor == 100 else measure.title


def _differences(table: ForkTable) -> Part:
    rows: list[list[Content]] = [
        [
            table.model,
            f"{rule_label(rule)} − {rule_label(AGAINST)}",
            *(_gap(table.difference(rule, measure), measure.digits) for measure in table.layout.measures),
        ]
        for rule in table.layout.rules
        if rule != AGAINST
    ]
    titles = ["model", "rules", *map(_title, table.layout.measures)]
    return Part("Paired differences with 95 % intervals", [("", title) for title in titles], rows)


def _gap(interval: Interval | None, digits: int) -> Gap | None:
    return None if interval is None else Gap(interval, digits)


def _trees(table: ForkTable) -> Part:
    rows: list[list[Content]] = [
        [table.model, rule_label(rule), *(f"{cost[column]:,.1f}" for column in COSTS)]
        for rule, cost in table.costs.items()
    ]
    return Part("What a tree is made of", [("", title) for title in ("model", "rule", *COSTS.values())], rows)


def _tidy(table: ForkTable, marks: Marks) -> pd.DataFrame:
    """A row a number."""
    found, costs = table.exploration, table.costs
    rows = []
    for rule in table.layout.rules:
        for measure in table.layout.measures:
            values = table.values(rule, measure)
            interval, ahead = found.interval(values), table.difference(rule, measure)
            row: dict[str, object] = {
                "table": table.name,
                **{key: found.identity[key] for key in ("scale", "model", "method", "run", "seed")},
                "benchmark": found.benchmark,
                "rule": rule_label(rule),
                "structure": table.structures[rule].name,
                "measure": measure.title,
                "problems": len(values),
                "repeats": found.repeats,
                **{column: round(cost, 2) for column, cost in costs[rule].items()},
                **_rounded(interval, Interval._fields),
                "mark": marks[measure].get(rule, ""),
                **_rounded(None if rule == AGAINST else ahead, AHEAD),
            }
            if table.layout.uniform:
                expected = table.uniform(rule, measure)
                row["uniform"] = None if expected is None else round(expected, PLACES)
            paper = table.paper(rule, measure)
            if paper is not None and interval is not None:
                row |= {"paper": paper, "minus_paper": round(interval.value - paper, PLACES)}
            rows.append(row)
    return pd.DataFrame(rows)


def _rounded(interval: Interval | None, names: Sequence[str]) -> dict[str, float | None]:
    numbers = (None, None, None) if interval is None else (round(number, PLACES) for number in interval)
    return dict(zip(names, numbers, strict=True))
