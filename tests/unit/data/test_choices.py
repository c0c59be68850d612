"""Multiple-choice questions: three ways of writing them, one schema, and a subset with the categories' shares."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from datasets.exceptions import DatasetNotFoundError
from hypothesis import given
from hypothesis import strategies as st

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.data.choice_rows import read_questions
from datpo.data.choices import Question, check_questions, fetch_questions, load_questions, shares, stratified

OURS = {"id": "a", "question": "What is 1 + 1?", "options": ["1", "2", "3"], "answer": "B", "category": "sums"}
MMLU_PRO = {
    "question_id": 7,
    "question": " What is 1 + 1? ",
    "options": ["1", "2 ", "3"],
    "answer": "B",
    "answer_index": 1,
    "cot_content": "",
    "category": "sums",
    "src": "own",
}
GPQA = {
    "Record ID": "rec1",
    "Question": "What is 1 + 1?\n",
    "Correct Answer": "2",
    "Incorrect Answer 1": "1 ",
    "Incorrect Answer 2": "3",
    "Incorrect Answer 3": "4",
    "High-level domain": "Sums",
    "Subdomain": "Small sums",
    "Feedback_EV_1": "too easy",
}


def fetched(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    """What becomes of the rows of a local file; `drop` and `path` belong to its source."""
    path = settings.pop("path", folder / "rows.jsonl")
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"path": str(path), **({"drop": settings.pop("drop")} if "drop" in settings else {})}
    whole = {"problems": source, "count": None, "stratified": None, "seed": 0, **settings}
    (folder / "config.yaml").write_text(yaml.safe_dump(whole))
    fetch_questions(folder / "config.yaml", folder / "questions.jsonl")
    return read_jsonl(folder / "questions.jsonl")


def test_our_own_rows_stay_as_they_are(tmp_path: Path) -> None:
    assert fetched(tmp_path, [OURS]) == [OURS]
    assert load_questions(tmp_path / "questions.jsonl") == [Question(**{**OURS, "options": ("1", "2", "3")})]


def test_options_appended_to_a_problem_s_text_are_taken_off(tmp_path: Path) -> None:
    row = {"id": "a", "problem": "What is 1 + 1?\n\n(A) 1\n(B) 2\n(C) 3", "answer": "B", "options": ["1", "2", "3"]}
    (made,) = fetched(tmp_path, [{**row, "subject": "sums", "level": None, "source": "own"}])
    assert made == OURS


def test_mmlu_pro_s_rows_keep_the_order_of_their_options(tmp_path: Path) -> None:
    assert fetched(tmp_path, [MMLU_PRO]) == [{**OURS, "id": "7"}]


def test_gpqa_s_options_come_in_an_order_that_depends_on_seed_and_record_alone(tmp_path: Path) -> None:
    rows = [{**GPQA, "Record ID": f"rec{i}"} for i in range(200)]
    made = fetched(tmp_path, rows)
    assert made[0]["question"] == "What is 1 + 1?"
    assert made[0]["category"] == "Sums"
    for row in made:
        assert sorted(row["options"]) == ["1", "2", "3", "4"]
        assert row["options"]["ABCD".index(row["answer"])] == "2"
    key = {row["id"]: row for row in made}
    assert {row["id"]: row for row in fetched(tmp_path, rows[::-1])} == key
    assert fetched(tmp_path, rows[5:6]) == [key["rec5"]]
    assert fetched(tmp_path, rows, seed=1) != made
    # each letter is the right one about as often as the others: 50 of 200, four standard deviations are 24
    assert all(26 <= number <= 74 for number in Counter(row["answer"] for row in made).values())


def test_gpqa_comes_as_csv_too(tmp_path: Path) -> None:
    with (tmp_path / "gpqa.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, GPQA)
        writer.writeheader()
        writer.writerow({**GPQA, "Question": 'What is "1 + 1",\nin words?'})
    (made,) = fetched(tmp_path, [], path=tmp_path / "gpqa.csv")
    assert made["question"] == 'What is "1 + 1",\nin words?'
    assert made["options"]["ABCD".index(made["answer"])] == "2"


def test_mmlu_pro_comes_as_parquet_too(tmp_path: Path) -> None:
    datasets.Dataset.from_list([MMLU_PRO]).to_parquet(tmp_path / "rows.parquet")
    assert fetched(tmp_path, [], path=tmp_path / "rows.parquet") == [{**OURS, "id": "7"}]


def test_options_are_taken_off_whatever_spaces_stand_around_them(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "problem": "What is 1 + 1?\n(A) 1 \n(B)  2\n\n(C) 3 \n",
        "answer": "B",
        "options": ["1", "2 ", " 3"],
    }
    (made,) = fetched(tmp_path, [{**row, "category": "sums"}])
    assert made == OURS


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rec2,What, then?,2,1,3,4,Sums,x,y", "the row 'rec2' that ends in line 3 has 10 cells for 9 columns"),
        ("rec2,What?,2,1,3,4", "the row 'rec2' that ends in line 3 has 6 cells for 9 columns"),
        (f"rec2,{'9' * 200_000},2,1,3,4,Sums,x,y", r"line 3: no CSV .*field larger"),
        ("rec2,Qu\xe9?,2,1,3,4,Sums,x,y", "not UTF-8 text"),
    ],
)
def test_a_row_whose_cells_may_have_moved_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "gpqa.csv"
    path.write_bytes(
        f"{','.join(GPQA)}\nrec1,What?,2,1,3,4,Sums,x,y\n\n{line}\n".replace("\n\n", "\n").encode("latin-1")
    )
    with pytest.raises(InputError, match=said):
        fetched(tmp_path, [], path=path)


def test_rubbish_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"rubbish")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        fetched(tmp_path, [], path=tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    ("rows", "settings", "said"),
    [
        ([{**OURS, "id": True}], {}, "row 1: 'id' must be text or a number, not True"),
        ([{**OURS, "id": [1]}], {}, "row 1: 'id' must be text or a number"),
        ([{**OURS, "question": ["a"]}], {}, "row 1: 'question' must be text or a number"),
        ([{**OURS, "category": {"a": 1}}], {}, "row 1: 'category' must be text or a number"),
        ([{**OURS, "question": "\ud800?"}], {}, "row 1: 'question' holds half a surrogate pair"),
        ([{**OURS, "options": ["1", "\ud800"]}], {}, "row 1: 'options' holds half a surrogate pair"),
        ([{**GPQA, "Correct Answer": [2]}], {}, "row 1: 'Correct Answer' must be text or a number"),
        ([{**OURS, "catgory": "x"}], {}, "unknown columns catgory"),
        ([{**MMLU_PRO, "hint": "x"}], {}, "unknown columns hint"),
        ([{"prompt": "p", "key": "A"}], {}, "no questions are written in the columns prompt, key"),
        ([], {}, "no questions are written in the columns "),
        ([OURS], {"count": 198}, "1 rows where `count` says 198"),
        ([OURS, OURS], {}, "questions that occur twice: a"),
        ([{**OURS, "answer": "D"}], {}, "an answer that is the letter of no option: a"),
        ([{**OURS, "answer": "b"}], {}, "an answer that is the letter of no option: a"),
        ([{**OURS, "answer": "AB"}], {}, "an answer that is the letter of no option: a"),
        ([{**OURS, "options": ["1", "2", "2 "]}], {}, "two equal options: a"),
        ([{**OURS, "options": ["1"], "answer": "A"}], {}, "not 2 to 26 options: a"),
        ([{**OURS, "options": ["1", " "]}], {}, "an empty question or option: a"),
        ([{**OURS, "question": " "}], {}, "an empty question or option: a"),
        ([{**OURS, "options": "1, 2"}], {}, "row 1: `options` must be a list of texts"),
        ([{**OURS, "options": [1, 2]}], {}, "row 1: `options` must be a list of texts"),
        ([OURS, {**OURS, "id": "b", "answer": None}], {}, "row 2: column 'answer' is empty"),
        ([{**MMLU_PRO, "answer_index": 2}], {}, "question 7: `answer` 'B' is not `answer_index` 2"),
        ([{**MMLU_PRO, "answer_index": None}], {}, "row 1: column 'answer_index' is empty"),
        ([OURS], {"drop": ["z"]}, "ids under `drop` that are not there: z"),
        ([OURS], {"drop": ["a"]}, "no questions"),
        ([OURS, {**OURS, "id": "b"}], {"stratified": 2}, "`stratified: 2` of 2 questions is no subset"),
        ([OURS, {**OURS, "id": "b", "category": ""}], {"stratified": 1}, "without one: b"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, rows: list[dict[str, Any]], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        fetched(tmp_path, rows, **settings)
    assert said in str(refused.value)
    assert not (tmp_path / "questions.jsonl").exists()


def test_a_row_that_is_dropped_may_be_wrong_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [MMLU_PRO, {**MMLU_PRO, "question_id": 8, "answer_index": 2}]
    assert [row["id"] for row in fetched(tmp_path, rows, drop=["8"], count=2)] == ["7"]
    assert "rows.jsonl: 1 questions of 2 rows; dropped 1: 8" in capsys.readouterr().err


def test_files_of_other_kinds_and_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for name, said in (("rows.xlsx", "end in .jsonl, .csv or .parquet"), ("no.csv", "no.csv: no such file")):
        if name == "rows.xlsx":
            (tmp_path / name).write_text("")
        with pytest.raises(InputError, match=said):
            fetched(tmp_path, [], path=tmp_path / name)


def from_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[dict[str, Any]]:
    """What comes of a hub that gives `answer`, an error or rows; it is asked for a pinned subset."""

    def load_dataset(*names: str | None, **options: str) -> datasets.Dataset:
        assert (names, options) == (("a/b", "diamond"), {"revision": "c0ffee", "split": "test"})
        if isinstance(answer, Exception):
            raise answer
        return datasets.Dataset.from_list(answer)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    source = {"hub": "a/b", "subset": "diamond", "revision": "c0ffee", "split": "test"}
    settings = {"problems": source, "count": 1, "stratified": None, "seed": 0}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    fetch_questions(tmp_path / "config.yaml", tmp_path / "questions.jsonl")
    return read_jsonl(tmp_path / "questions.jsonl")


def test_a_data_set_of_the_hub_is_read_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_hub(tmp_path, monkeypatch, [MMLU_PRO]) == [{**OURS, "id": "7"}]


def test_a_gated_data_set_says_how_to_get_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = OSError("401: Cannot access gated repo for url https://huggingface.co/...")
    wrapped = OSError("could not be read")
    wrapped.__cause__ = inner
    for error in (DatasetNotFoundError("Dataset 'a/b' is a gated dataset on the Hub."), wrapped):
        with pytest.raises(InputError) as refused:
            from_hub(tmp_path, monkeypatch, error)
        for part in ("https://huggingface.co/datasets/a/b", "`hf auth login`", "HF_TOKEN", "`path`", "terms"):
            assert part in str(refused.value)
    assert not (tmp_path / "questions.jsonl").exists()


def test_a_hub_that_cannot_be_reached_is_told_from_a_gated_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a/b at c0ffee cannot be loaded") as refused:
        from_hub(tmp_path, monkeypatch, ConnectionError("no network"))
    assert "gated" not in str(refused.value)
    assert "no network" in str(refused.value)


def test_shares_are_whole_parts_and_then_the_largest_remainders() -> None:
    # 10 of 45 + 33 + 22 = 100: 4.5, 3.3 and 2.2 give 4, 3, 2; the tenth goes to the remainder .5
    assert shares({"a": 45, "b": 33, "c": 22}, 10) == {"a": 5, "b": 3, "c": 2}
    # equal remainders: by name, whatever the order they come in
    assert shares({"b": 5, "a": 5}, 3) == {"b": 1, "a": 2}
    # MMLU-Pro's 12,032 test questions, 500 of them
    mmlu_pro = {
        "math": 1351, "physics": 1299, "chemistry": 1132, "law": 1101, "engineering": 969, "other": 924,
        "economics": 844, "health": 818, "psychology": 798, "business": 789, "biology": 717, "philosophy": 499,
        "computer science": 410, "history": 381,
    }  # fmt: skip
    assert list(shares(mmlu_pro, 500).values()) == [56, 54, 47, 46, 40, 38, 35, 34, 33, 33, 30, 21, 17, 16]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 500), min_size=1), st.data())
def test_shares_add_up_and_lie_within_one_of_proportion(sizes: dict[str, int], data: st.DataObject) -> None:
    total = sum(sizes.values())
    size = data.draw(st.integers(1, total))
    given_to = shares(sizes, size)
    assert sum(given_to.values()) == size
    assert all(abs(given_to[name] - size * number / total) < 1 for name, number in sizes.items())
    assert all(given_to[name] <= number for name, number in sizes.items())


def questions(category: str, count: int) -> list[Question]:
    return [Question(f"{category}{i}", "?", ("1", "2"), "A", category) for i in range(count)]


def test_a_subset_does_not_depend_on_the_order_of_rows_and_keeps_it() -> None:
    whole = questions("x", 30) + questions("y", 10)
    chosen = stratified(whole, 12, 0, "file")
    assert Counter(question.category for question in chosen) == {"x": 9, "y": 3}
    assert chosen == [question for question in whole if question in chosen]
    assert stratified(whole[::-1], 12, 0, "file") == chosen[::-1]
    assert stratified(whole, 12, 1, "file") != chosen
    # a category's draw is its own: another one beside it leaves it alone
    other = stratified(questions("x", 30) + questions("z", 10), 12, 0, "file")
    assert [q for q in other if q.category == "x"] == [q for q in chosen if q.category == "x"]


def test_a_whole_set_passes() -> None:
    check_questions("file", questions("x", 3))


def test_an_own_row_needs_no_category() -> None:
    (row,) = read_questions("file", [{key: OURS[key] for key in ("id", "question", "options", "answer")}], (), 0)
    assert row["category"] == ""
