"""Runs at equal budgets, worked out from the golden folder of `conftest`."""

import pytest

from datpo.core.errors import InputError
from datpo.report.budgets import HEADER, budget_table
from datpo.report.tables import table2


@pytest.fixture
def tables(folder, tmp_path):
    """Tables of GRPO and DATPO, on problems p0 and p1, where they had spent their steps and their tokens."""
    folder.add_metrics([0, 2], method="base")
    base = list(folder.metrics)
    for method in ("grpo", "datpo"):
        folder.add_log(method=method)
    made = []
    for unit, correct in (("steps", {"grpo": [1, 3], "datpo": [2, 4]}), ("tokens", {"grpo": [2, 4], "datpo": [2, 3]})):
        folder.metrics = list(base)
        for method, right in correct.items():
            folder.add_metrics(right, method=method, at=unit)
        out = tmp_path / f"at-{unit}"
        table2(folder.metrics, folder.logs, folder.published, out)
        made.append(out)
    return made


def cells(out):
    lines = [line for line in out.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_rows_are_those_of_the_tables_with_differences_to_grpo(tables, tmp_path):
    out = tmp_path / "budgets.md"
    budget_table([t / "table2.csv" for t in tables], [t / "table2_differences.csv" for t in tables], out)
    header, _, *rows = cells(out)
    assert tuple(header) == HEADER
    assert [row[:2] for row in rows] == [
        ["–", "Base"], ["steps", "GRPO"], ["steps", "DATPO"], ["tokens", "GRPO"], ["tokens", "DATPO"],
    ]  # fmt: skip
    by_name = {tuple(row[:2]): dict(zip(header, row, strict=True)) for row in rows}
    # 2 and 4 of 4 right: (50 + 100) / 2 = 75; against 1 and 3: +25 on every problem
    assert by_name["steps", "DATPO"]["avg@k"].startswith("75.0 [50.0, 100.0]")
    assert by_name["steps", "DATPO"]["avg@k − GRPO"] == "+25.0 [+25.0, +25.0]"
    # 2 and 3 against 2 and 4: 0 and −25, mean −12.5
    assert by_name["tokens", "DATPO"]["avg@k − GRPO"].startswith("−12.5")
    assert by_name["steps", "GRPO"]["avg@k − GRPO"] == "–"
    # the log says: steps are spent in the second step, tokens in the fourth, of 1,000 tokens and 6 s each
    for unit, steps in (("steps", 2), ("tokens", 4)):
        row = by_name[unit, "GRPO"]
        assert (row["steps"], row["updates"]) == (str(steps), str(2 * steps))
        assert (row["generated tokens"], row["trained tokens"]) == (f"{1000 * steps:,}", f"{1500 * steps:,}")
        assert (row["leaves per question"], row["wall time"]) == ("16.0", f"{6 * steps} s")
    assert by_name["–", "Base"]["updates"] == "–"


def test_a_table_of_another_folder_is_refused(tables, tmp_path):
    elsewhere = tmp_path / "table2.csv"
    elsewhere.write_text((tables[0] / "table2.csv").read_text())
    with pytest.raises(InputError, match="in a folder at-UNIT"):
        budget_table([elsewhere], [tables[0] / "table2_differences.csv"], tmp_path / "budgets.md")
