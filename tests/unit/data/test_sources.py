"""What is read from a file, from the web and from the hub, and what is refused at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.data.files import file_hash
from datpo.data.sources import load_source

ROWS = [
    {"unique_id": "t/1", "question": " 1+1? ", "key": 2, "level": "Level 3", "type": "Algebra"},
    {"unique_id": "t/2", "question": "1+2?", "key": 3.5, "level": "Level ?", "type": None},
    {"unique_id": None, "question": "", "key": None, "level": 4, "type": ""},
]


def write(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(params=["path", "url", "hub"])
def entry(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """One and the same source in each of the three kinds."""
    path = write(tmp_path / "rows.jsonl", *ROWS)
    return {
        "path": {"path": path},
        "url": {"url": Path(path).as_uri(), "sha256": file_hash(path)},
        "hub": {"hub": "json", "data_files": path},
    }[request.param] | {"fields": {"answer": "key"}, "count": 3}


def test_every_row_becomes_a_problem_whatever_it_is_worth(entry: dict[str, Any]) -> None:
    one, two, three = load_source(entry, "train")
    assert (one.id, one.problem, one.level, one.subject) == ("t/1", "1+1?", 3, "Algebra")
    assert float(one.answer) == 2 and two.answer == "3.5"
    assert (two.level, two.subject) == (None, None)
    assert (three.id, three.problem, three.answer, three.level) == ("train/2", "", "", 4)


@pytest.mark.parametrize(
    ("written", "level"),
    [
        ("Level 5", 5),
        (5.0, 5),
        ("5.", 5),
        (12, 12),
        ("L3", 3),
        (-2, None),
        (2.7, None),
        ("2.07", None),
        ("9" * 5000, None),
    ],
)
def test_a_level_is_a_whole_number_or_none(tmp_path: Path, written: Any, level: int | None) -> None:
    path = write(tmp_path / "rows.jsonl", {"id": "a", "problem": "p", "answer": "1", "level": written})
    assert load_source({"path": path}, "x")[0].level == level


@pytest.mark.parametrize("field", ["id", "problem", "answer"])
def test_half_a_surrogate_pair_is_refused_by_name(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "rows.jsonl", {"id": "a", "problem": "p", "answer": "1", field: "x\ud800"})
    with pytest.raises(InputError, match=rf"line 1: '{field}' holds half a surrogate pair.*ud800"):
        load_source({"path": path}, "x")


def test_the_source_of_each_problem_is_told(tmp_path: Path) -> None:
    rows = [{"id": "a", "problem": "p", "answer": "1", "source": "book"}, {"id": "b", "problem": "q", "answer": "1"}]
    path = write(tmp_path / "rows.jsonl", *rows)
    assert [problem.source for problem in load_source({"path": path}, "x")] == ["book", path]
    (of_hub, _) = load_source({"hub": "json", "data_files": path, "split": "train"}, "x")
    assert of_hub.source == "json@unpinned:train"


def test_another_number_of_rows_and_missing_columns_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="'train': the source has 3 rows where `count` says 4"):
        load_source({**entry, "count": 4}, "train")
    with pytest.raises(InputError, match=r"'train': no column for 'answer' among \['unique_id', .*'key'"):
        load_source({**entry, "fields": {}}, "train")
    with pytest.raises(InputError, match="no column for 'subject' among"):
        load_source({**entry, "fields": {"answer": "key", "subject": "topic"}}, "train")


def test_a_hub_that_has_no_such_data_is_named(tmp_path: Path) -> None:
    entry = {"hub": "json", "data_files": write(tmp_path / "rows.jsonl", *ROWS), "split": "nowhere"}
    with pytest.raises(InputError, match=r"cannot load 'json'.*check its name, `revision` and `split`"):
        load_source(entry, "train")


def test_a_data_set_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "problem"')
    with pytest.raises(InputError, match=r"cannot load 'json'.*give the `path`"):
        load_source({"hub": "json", "data_files": str(tmp_path / "rows.jsonl")}, "train")


def test_other_bytes_than_were_asked_for_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *ROWS)
    for place in ({"path": path}, {"url": Path(path).as_uri()}):
        with pytest.raises(
            InputError, match=f"'train': .*rows.jsonl has the SHA-256 {file_hash(path)}, not the `sha256` abc"
        ):
            load_source({**place, "sha256": "abc"}, "train")


def test_a_file_that_cannot_be_had_is_named_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file"):
        load_source({"path": tmp_path / "nowhere.jsonl"}, "train")
    url = (tmp_path / "nowhere.jsonl").as_uri()
    with pytest.raises(InputError, match=f"{url} cannot be downloaded .*download it elsewhere and give its `path`"):
        load_source({"url": url, "sha256": "abc"}, "train")
    with pytest.raises(InputError, match="no problems in this file"):
        load_source({"path": write(tmp_path / "empty.jsonl")}, "train")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"id": "a", "problem": "p", "answer": ["1", "2"]},
            "line 2: 'answer' must be text or a number, not ['1', '2']",
        ),
        ({"id": "a", "problem": "p", "answer": True}, "line 2: 'answer' must be text or a number, not True"),
        ({"id": "a", "problem": "p", "answer": float("nan")}, "line 2: 'answer' must be text or a finite number"),
        ({"id": {}, "problem": "p", "answer": "1"}, "line 2: 'id' must be text or a number, not {}"),
        ({"id": "a", "problem": "p"}, "line 2: 'answer' must be text or a number, not None"),
        ([], "line 2 is not a JSON object"),
    ],
)
def test_a_row_of_another_shape_is_named(tmp_path: Path, row: Any, said: str) -> None:
    path = write(tmp_path / "rows.jsonl", {"id": "b", "problem": "q", "answer": "1"}, row)
    with pytest.raises(InputError) as refused:
        load_source({"path": path}, "train")
    assert said in str(refused.value)


def test_problems_without_ids_are_called_after_their_place(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *({"problem": str(n), "answer": "1"} for n in range(2)))
    named = load_source({"path": path}, "benchmarks/x")
    assert named == [
        Problem("benchmarks/x/0", "0", "1", source=path),
        Problem("benchmarks/x/1", "1", "1", source=path),
    ]


def test_a_key_may_stand_behind_a_worked_solution(tmp_path: Path) -> None:
    solved = {"id": "a", "question": "1+1?", "answer": "1+1=<<1+1=2>>2 #### no\n#### 2 "}
    path = write(tmp_path / "rows.jsonl", solved, {**solved, "id": "b", "answer": None})
    assert [each.answer for each in load_source({"path": path, "answer_after": "####"}, "x")] == ["2", ""]
    hub = {"hub": "json", "data_files": write(tmp_path / "hub.jsonl", solved), "answer_after": "####"}
    assert load_source(hub, "x")[0].answer == "2"
    path = write(tmp_path / "rows.jsonl", solved, {**solved, "answer": "2"})
    with pytest.raises(InputError, match=r"line 2: 'answer' holds no '####', after which `answer_after` has the key"):
        load_source({"path": path, "answer_after": "####"}, "x")
