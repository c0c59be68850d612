"""A study: which runs, benchmarks and columns one of the paper's tables or figures is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.kinds import NAME, OBJECT, Kinds, check_kinds, list_of, map_of, one_of, or_null, whole
from datpo.report.runs import Run

SCORE_COLUMNS = ("avg", "pass", "maj")
LOG_COLUMNS = (
    *("tokens_per_question", "leaves", "hours", "seconds_rollout", "seconds_diversity", "seconds_update"),
    *("seconds_other", "seconds_step"),
)
STUDY: Kinds = {
    **dict.fromkeys(("study", "scale"), NAME),
    **dict.fromkeys(("models", "benchmarks"), list_of(NAME)),
    "seeds": list_of(whole()),
    "columns": list_of(one_of(*SCORE_COLUMNS, *LOG_COLUMNS)),
    "checkpoints": map_of(list_of(whole(1))),
    "rows": list_of(OBJECT),
    "against": or_null(NAME),
}
ROW: Kinds = {
    "label": or_null(NAME),
    **dict.fromkeys(("run", "method"), NAME),
    **dict.fromkeys(("numbers", "train"), OBJECT),
}


@dataclass(frozen=True)
class Row:
    """A row of a table or a line of a figure: one run, by the paper's name for it.

    Attributes:
        label: as the paper calls it; in the settings null where the main table has a name for it.
        run, method: whose results it shows.
        numbers: all numbers of its method; empty for the untrained model.
        train: all settings of its training; empty for the untrained model.
    """

    label: str
    run: str
    method: str
    numbers: Mapping[str, Any]
    train: Mapping[str, Any]

    @property
    def trained(self) -> bool:
        """Whether it is more than the untrained model."""
        return self.method != "base"

    def of(self, model: str) -> Run:
        """The run of one model that this row shows."""
        return Run(model, self.method, self.run)


@dataclass(frozen=True)
class Study:
    """What one table or figure is about.

    Attributes:
        study: its name, that of its section in the published numbers.
        columns: what its table shows, each one of `SCORE_COLUMNS` or `LOG_COLUMNS`.
        checkpoints: by unit (`tokens`, ...) the amounts after which checkpoints are evaluated too.
        rows: in the table's order.
        against: the row that the others are held against, if there is one.
    """

    study: str
    scale: str
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    seeds: tuple[int, ...]
    columns: tuple[str, ...]
    checkpoints: Mapping[str, tuple[int, ...]]
    rows: tuple[Row, ...]
    against: Row | None

    @property
    def amounts(self) -> list[str]:
        """Every checkpoint before the end, as headers and logs name it: `tokens-100000`, ..."""
        return [f"{unit}-{amount}" for unit, amounts in self.checkpoints.items() for amount in amounts]

    def row(self, run: Run) -> Row:
        """The row that shows a run.

        Raises:
            InputError: none does.
        """
        for row in self.rows:
            if row.of(run.model) == run and run.model in self.models:
                return row
        raise InputError(f"{run}: no row of the study {self.study!r} shows this run; was it made for another one?")


def load_study(path: Path) -> Study:
    """Read the settings of a study.

    Raises:
        InputError: a missing key, a value of the wrong kind, no rows or models, two rows of one run or label, or no row
            of the run that the others are held against.
    """
    settings = read_settings(path)
    check_kinds(str(path), settings, STUDY)
    for number, row in enumerate(settings["rows"], start=1):
        check_kinds(f"{path}: row {number}", row, ROW)
    rows = tuple(_row(**{key: row[key] for key in ROW}) for row in settings["rows"])
    if not rows or not settings["models"]:
        raise InputError(f"{path}: a study needs at least one model and one row")
    for what, names in (("run", [(row.method, row.run) for row in rows]), ("label", [row.label for row in rows])):
        if twice := [name for index, name in enumerate(names) if name in names[:index]]:
            raise InputError(f"{path}: two rows have the {what} {twice[0]!r}; a table shows each once")
    against = [row for row in rows if row.run == settings["against"]]
    if settings["against"] and not against:
        raise InputError(f"{path}: 'against' is {settings['against']!r}, a run that no row shows")
    return Study(
        study=settings["study"],
        scale=settings["scale"],
        models=tuple(settings["models"]),
        benchmarks=tuple(settings["benchmarks"]),
        seeds=tuple(settings["seeds"]),
        columns=tuple(settings["columns"]),
        checkpoints={unit: tuple(amounts) for unit, amounts in settings["checkpoints"].items()},
        rows=rows,
        against=against[0] if against else None,
    )


def _row(label: str | None, run: str, method: str, **trained: Mapping[str, Any]) -> Row:
    return Row(label or Run("", method, run).label, run, method, **trained)
