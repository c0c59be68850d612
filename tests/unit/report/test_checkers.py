"""Where two checkers differ, counted and listed."""

import csv

import pytest

from datpo.core.errors import InputError
from datpo.report.checkers import compare_checkers
from tests.unit.evaluate.files import write_problems, write_scores

FIRST = {"p": ["right", "wrong", "wrong"], "q": ["right", "right", "no_answer"]}
SECOND = {"p": ["wrong", "right", "wrong"], "q": ["right", "right", "right"]}


@pytest.fixture
def compared(tmp_path):
    def compared(second=SECOND, **header):
        problems = write_problems(tmp_path / "problems.jsonl", {"p": "1/2", "q": "=2"})
        own = write_scores(tmp_path / "own.jsonl", FIRST, checker="ours | 1", samples_sha256="a")
        other = write_scores(tmp_path / "other.jsonl", second, **{"checker": "theirs", "samples_sha256": "a", **header})
        compare_checkers([own], [other], [problems], tmp_path / "out")
        return (tmp_path / "out/checkers.md").read_text(), list(csv.DictReader((tmp_path / "out/checkers.csv").open()))

    return compared


def test_counts_and_items(compared):
    page, items = compared()
    cells = [cell.strip() for cell in page.splitlines()[-1].strip("|").split("|")]
    assert cells == ["m", "grpo", "0", "b", "6", "3", "4", "1", "2"]
    assert r"ours \| 1" in page and "theirs" in page
    assert [(row["problem"], row["sample"], row["key"], row["first"], row["second"]) for row in items] == [
        ("p", "0", "1/2", "right", "wrong"),
        ("p", "1", "1/2", "wrong", "right"),
        ("q", "2", "=2", "no_answer", "right"),
    ]
    assert (items[0]["first_answer"], items[0]["second_answer"]) == ("0", "1")


def test_two_that_agree(compared):
    page, items = compared(FIRST)
    assert items == []
    assert [cell.strip() for cell in page.splitlines()[-1].split("|")][-3:-1] == ["0", "0"]


def test_scores_of_other_samples_cannot_be_compared(compared):
    with pytest.raises(InputError, match=r"other\.jsonl: scores of other samples"):
        compared(samples_sha256="b")
