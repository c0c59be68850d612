"""Where two checkers differ, counted and listed."""

import csv

import pytest

from datpo.core.errors import InputError
from datpo.report.checkers import _unrun, compare_checkers
from tests.unit.evaluate.files import keys, write_problems, write_scores

FIRST = {"p": ["right", "wrong", "wrong"], "q": ["right", "right", "no_answer"]}
SECOND = {"p": ["wrong", "right", "wrong"], "q": ["right", "right", "right"]}


@pytest.fixture
def compared(tmp_path):
    def compared(second=SECOND, **header):
        answers = {"p": "1/2", "q": "=2"}
        problems = write_problems(tmp_path / "problems.jsonl", answers)
        shared = {"samples_sha256": "a", "keys_sha256": keys(answers)}
        own = write_scores(tmp_path / "own.jsonl", FIRST, **shared, checker="ours | 1")
        other = write_scores(tmp_path / "other.jsonl", second, **{**shared, "checker": "theirs\n# or", **header})
        compare_checkers([own], [other], [problems], tmp_path / "out")
        return (tmp_path / "out/checkers.md").read_text(), list(csv.DictReader((tmp_path / "out/checkers.csv").open()))

    return compared


def test_counts_and_items(compared):
    page, items = compared()
    cells = [cell.strip() for cell in page.splitlines()[-1].strip("|").split("|")]
    assert cells == ["m", "grpo", "0", "b", "6", "3", "4", "1", "2"]
    assert r"ours \| 1" in page and r"theirs \# or" in page  # on one line
    assert [(row["problem"], row["sample"], row["key"], row["first"], row["second"]) for row in items] == [
        ("p", "0", "1/2", "right", "wrong"),
        ("p", "1", "1/2", "wrong", "right"),
        ("q", "2", "'=2", "no_answer", "right"),  # no formula in a spreadsheet
    ]
    assert (items[0]["first_answer"], items[0]["second_answer"]) == ("0", "1")


def test_two_that_agree(compared):
    page, items = compared(FIRST)
    assert items == []
    assert [cell.strip() for cell in page.splitlines()[-1].split("|")][-3:-1] == ["0", "0"]


def test_scores_of_other_samples_cannot_be_compared(compared):
    with pytest.raises(InputError, match=r"other\.jsonl: scores of other samples"):
        compared(samples_sha256="b")
    with pytest.raises(InputError, match=r"other\.jsonl: scores of other samples"):
        compared({"p": ["wrong"], "q": ["wrong"]})
    with pytest.raises(InputError, match=r"other\.jsonl: the first line: 'checker' must be"):
        compared(checker=None)
    with pytest.raises(InputError, match=r"other\.jsonl: graded by other answer keys"):
        compared(keys_sha256="0")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_no_answer_runs_in_a_spreadsheet(text):
    assert _unrun(text) == f"'{text}"
    assert (_unrun("1-1"), _unrun("\ud800"), _unrun(None), _unrun(-1)) == ("1-1", r"\ud800", None, -1)
