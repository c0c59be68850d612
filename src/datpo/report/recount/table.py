"""A table as it was written, and its rows counted anew from the raw files that they name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from io import StringIO
from pathlib import Path

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import read_text
from datpo.core.kinds import Kinds, check_kinds, whole
from datpo.report.paper import AVERAGE
from datpo.report.recount.logs import recount_log
from datpo.report.recount.scores import (
    Recount,
    Scored,
    read_scored,
    recount_difference,
    recount_sampling,
    recount_score,
)
from datpo.report.recount.trees import Grown, read_grown, recount_trees
from datpo.report.runs import Run

Written = Mapping[str, str]  # a row of a table, by column

# The columns by which a kind of table is known.
RUN = ("model", "method", "run")
STUDY = ("study", *RUN, "label", "benchmark", "column", "k", "value", "files")
SCORES = (*RUN, "label", "benchmark", "metric", "k", "value", "samples_sha256", "checkpoint", "files")
DIFFERENCES = (*RUN, "label", "against", "benchmark", "metric", "k", "difference", "files", "files_against")
FORKS = ("table", "model", "benchmark", "rule", "structure", "measure", "value")
KINDS = (STUDY, SCORES, DIFFERENCES, FORKS)
METRICS = ("avg", "pass", "maj")
AHEAD = ("ahead", "ahead_low", "ahead_high")  # of a row of a study, of that which it is held against
BOOTSTRAP: Kinds = {"bootstrap": whole(1), "seed": whole()}


@dataclass(frozen=True)
class Table:
    """The rows of a table, one number each, and its kind, one of `KINDS`. Each raw file is read once."""

    path: Path
    kind: tuple[str, ...]
    rows: Sequence[Written]
    read_scored: Callable[[Path], Scored] = field(default_factory=lambda: cache(read_scored))
    read_grown: Callable[[Path], Grown] = field(default_factory=lambda: cache(read_grown))

    def recount(self, row: Written) -> Recount:
        """The numbers of a row, counted anew.

        Raises:
            InputError: a raw file is missing, has changed, or is not of the row.
        """
        of = {STUDY: self._of_study, SCORES: self._of_scores, DIFFERENCES: self._of_differences, FORKS: self._of_forks}
        return of[self.kind](row)

    def _of_study(self, row: Written) -> Recount:
        if row["column"] not in METRICS:
            logs = self._files(row)
            for log in logs:
                _check_run(row, log, log.resolve().parts[-5:-2])
            return recount_log(logs, row["column"])
        k, ours = _k(row), self._scored(row)
        counted = recount_score(ours, row["column"], k)
        if not row.get("against"):
            return counted._replace(numbers={**counted.numbers, **dict.fromkeys(AHEAD)})
        apart = recount_difference(ours, self._scored(self._row_against(row)), row["column"], k)
        ahead = dict(zip(AHEAD, apart.numbers.values(), strict=True))
        return apart._replace(numbers={**counted.numbers, **ahead}, how=counted.how)

    def _of_scores(self, row: Written) -> Recount:
        found = self._scored(row)
        for key in ("samples_sha256", "checkpoint"):
            if row[key].split(" ") != [each.document["header"][key] for each in found]:
                raise InputError(f"{row['files']}: counted from another {key} than the row names; make the table again")
        counted = recount_score(found, row["metric"], _k(row))
        if row["benchmark"] == AVERAGE:
            return counted
        sampled = recount_sampling(found, row["metric"], int(row["k"]))
        return counted._replace(numbers={**counted.numbers, **sampled})

    def _of_differences(self, row: Written) -> Recount:
        sides = self._scored(row), self._scored(row, "files_against")
        return recount_difference(*sides, row["metric"], _k(row))

    def _of_forks(self, row: Written) -> Recount:
        folder = self.path.resolve().parents[1]
        settings = read_settings(_shown(folder / "settings/explorations/forks.shown.yaml"))
        check_kinds("settings/explorations/forks.shown.yaml", settings, BOOTSTRAP)
        trees = _shown(folder / "explorations/forks/trees")
        random = {each["structure"] for each in self.rows if each["rule"] == "random"} - {row["structure"]}
        return recount_trees(
            self.read_grown(trees / f"{row['structure']}.jsonl"),
            self.read_grown(trees / f"{random.pop()}.jsonl") if random else None,
            row["measure"],
            (settings["bootstrap"], settings["seed"]),
        )

    def _scored(self, row: Written, column: str = "files") -> list[Scored]:
        """The samples behind a row, or behind that which it is held against (`files_against`)."""
        found = {file: self.read_scored(file) for file in self._files(row, column)}
        for file, each in found.items():
            run = [each.document["header"][key] for key in RUN]
            if column == "files":
                _check_run(row, file, run)
            elif run[0] != row["model"] or Run(*run).label != row["against"]:
                raise InputError(f"{file}: of the run {'/'.join(run)}, not {row['against']} of {row['model']}")
        named = {each.document["header"]["benchmark"] for each in found.values()}
        if named != (self._benchmarks if row["benchmark"] == AVERAGE else {row["benchmark"]}):
            raise InputError(f"{row[column]}: of {', '.join(sorted(named))}, not of benchmark {row['benchmark']!r}")
        return list(found.values())

    def _files(self, row: Written, column: str = "files") -> list[Path]:
        """A row's files by their paths, which begin where the workflow ran: in a folder above the table."""
        if not row[column]:
            raise InputError("the row names no file")
        above = self.path.resolve().parents
        found = [next((at / name for at in above if (at / name).exists()), Path(name)) for name in row[column].split()]
        return [_shown(path) for path in found]

    @cached_property
    def _benchmarks(self) -> set[str]:
        return {row["benchmark"] for row in self.rows} - {"", AVERAGE}

    def _row_against(self, row: Written) -> Written:
        """The row that one is held against."""
        same = {key: row[key] for key in ("model", "benchmark", "column")} | {"label": row["against"]}
        found = [other for other in self.rows if other is not row and same.items() <= other.items()]
        if len(found) != 1:
            raise InputError(f"against {row['against']!r}, of which there are {len(found)} other rows")
        return found[0]


def read_table(path: Path) -> Table:
    """Read a table of the workflow.

    Raises:
        InputError: it is none whose rows say what they were counted from.
    """
    rows: list[Written] = list(csv.DictReader(StringIO(read_text(path))))
    kinds = [kind for kind in KINDS if rows and set(kind) <= set(rows[0])]
    if not kinds:
        raise InputError(
            f"{path}: no rows that say what they were counted from; give table1, table3 to table14, table2_scores or "
            "table2_differences, as CSV, from results/SCALE/tables"
        )
    return Table(path, kinds[0], rows)


def _k(row: Written) -> int | None:
    return int(row["k"]) if row["k"] else None


def _check_run(row: Written, file: Path, found: Sequence[str]) -> None:
    if list(found) != [row[key] for key in RUN]:
        raise InputError(f"{file}: of the run {'/'.join(found)}, not the row's")


def _shown(path: Path) -> Path:
    """The path from here, if it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
