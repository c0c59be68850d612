r"""`python -m datpo grade FILE`: a line for every line, whatever stands in it."""

import json

import pytest

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.evaluate.grade import grade_file


def written(tmp_path, *rows):
    path = tmp_path / "responses.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def test_every_verdict_in_the_order_of_the_file(tmp_path, capsys):
    path = written(
        tmp_path,
        {"id": 1, "gold": "1/2", "response": r"so \boxed{0.5}", "tags": ["passed over"]},
        {"id": "b", "gold": "5", "response": r"\boxed{x^2+1}"},
        {"id": "c", "gold": "5", "response": "I give up."},
        {"id": "d", "gold": "see the figure", "response": r"\boxed{5}"},
        {"id": "e", "gold": None, "response": r"\boxed{5}"},
        {"id": "f", "gold": 5, "response": "The answer is 5."},
        {"id": "g", "gold": "5", "response": None},
        "",
        {"id": "i", "gold": "\ud800", "response": "\\boxed{\ud800}"},
        {"id": "h", "gold": "5", "response": "\\boxed{\u0000\ud800__import__('os').system('false')}"},
    )
    assert main(["grade", str(path)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == [1, "b", "c", "d", "e", "f", "g", "i", "h"]
    expected = ["right", "wrong", "no_answer", "bad_key", "bad_key", "right", "no_answer", "bad_key", "wrong"]
    assert [row["verdict"] for row in rows] == expected
    assert [row["extracted"] for row in rows[:3]] == ["0.5", "x^2+1", None]
    assert all(set(row) == {"id", "verdict", "extracted", "checker", "seconds"} for row in rows)
    assert all(0 <= row["seconds"] < 5 and "Math-Verify" in row["checker"] for row in rows)


def test_checkers_by_name(tmp_path):
    path = written(tmp_path, {"id": "a", "gold": "2", "response": r"\boxed{\sqrt2}"})
    assert [row["verdict"] for row in grade_file(path)] == ["wrong"]
    assert [row["verdict"] for row in grade_file(path, "datpo_release")] == ["right"]
    path = written(tmp_path, {"id": "a", "gold": "5", "response": "The answer is 5."})
    assert [row["verdict"] for row in grade_file(path, "own")] == ["no_answer"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2 is not JSON"),
        ({"id": "b", "gold": "5"}, "line 2: key 'response' is missing"),
        ({"id": "b", "gold": ["5"], "response": ""}, r"line 2: 'gold' must be text, not \['5'\]"),
        ({"id": 1.5, "gold": "5", "response": ""}, "line 2: 'id' must be"),
    ],
)
def test_a_line_that_is_no_item_is_named_before_anything_is_graded(tmp_path, row, message):
    path = written(tmp_path, {"id": "a", "gold": "5", "response": "5"}, row)
    with pytest.raises(InputError, match=message):
        grade_file(path)


def test_an_unknown_checker(tmp_path):
    with pytest.raises(InputError, match="unknown checker 'mine'"):
        grade_file(written(tmp_path), "mine")
