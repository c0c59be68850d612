"""Figure 10: what is counted, and what is refused."""

import pytest

from datpo.core.errors import InputError
from datpo.report.choice_figure import categories, figure10
from tests.unit.evaluate.files import write_lines
from tests.unit.report.drawing import assert_drawn, panels


def write_questions(path, named):
    return write_lines(path, [{"id": f"q{i}", "category": category} for i, category in enumerate(named)])


def test_figure10_counts_questions_by_category_the_most_frequent_first(tmp_path, drawn):
    files = [
        write_questions(tmp_path / "mmlu.jsonl", ["law", "art", "law", "", "math"]),
        write_questions(tmp_path / "gpqa.jsonl", ["Physics", "Physics"]),
    ]
    figure10(files, tmp_path / "figure10.png")
    mmlu, gpqa = panels(drawn[0])
    assert [label.get_text() for label in mmlu.get_yticklabels()] == ["law", "(no category)", "art", "math"]
    assert [bar.get_width() for bar in mmlu.patches] == [2, 1, 1, 1]
    assert [bar.get_width() for bar in gpqa.patches] == [2]
    assert mmlu.get_ylim() == gpqa.get_ylim() == (3.5, -0.5)  # the first on top, bars of the same height
    text = assert_drawn(tmp_path / "figure10.png")
    assert "mmlu: 5 questions" in text and "gpqa: 2 questions" in text


def test_a_category_is_shown_as_it_is_written(tmp_path):
    name = r"$\frac{1}{$ & <b>_^ 5 $"
    figure10([write_questions(tmp_path / "odd.jsonl", [name])], tmp_path / "figure10.png")
    assert name in assert_drawn(tmp_path / "figure10.png")


def test_figure10_names_a_file_that_is_not_one_of_questions(tmp_path):
    with pytest.raises(InputError, match="no files of multiple-choice questions"):
        figure10([], tmp_path / "figure10.png")
    with pytest.raises(InputError, match=r"empty.jsonl: no questions"):
        categories(write_lines(tmp_path / "empty.jsonl", []))
    with pytest.raises(InputError, match=r"bad.jsonl: line 1: key 'category' is missing"):
        categories(write_lines(tmp_path / "bad.jsonl", [{"id": "a"}]))
