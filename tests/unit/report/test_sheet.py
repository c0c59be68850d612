"""What a table marks, and that its page is whole."""

from xml.etree import ElementTree

import pytest

from datpo.report.runs import load_results
from datpo.report.scores import scores


def marks(folder, make, **correct):
    """The marks of avg@4 on `moves`, by method, from the right samples of each."""
    for method, of_problems in correct.items():
        folder.add_metrics(of_problems, method=method)
        folder.add_log(method=method)
    results = load_results(folder.metrics)
    found = scores(results, [("moves", "avg")])
    make(folder)
    return {run.method: score.mark for (run, _), score in found.items()}


def test_second_is_who_is_surely_above_all_but_the_best(folder, make):
    # Every problem agrees: DATPO above TreeRL above GRPO.
    found = marks(folder, make, grpo=[0, 0], treerl=[2, 2], datpo=[4, 4])
    assert found == {"datpo": "best", "treerl": "second", "grpo": ""}
    text = {ending: (folder.root / f"tables/table2.{ending}").read_text() for ending in ("md", "tex", "html")}
    assert "<ins>50.0</ins>" in text["md"]
    assert r"\underline{50.0}" in text["tex"]
    assert "<u>50.0</u>" in text["html"]
    assert "<b>100.0</b>" in text["html"]


@pytest.mark.parametrize(
    ("correct", "best"),
    [
        # TreeRL and GRPO differ by -1 and +3 of 4 on the two problems: [-25, 75] has 0 in it, so neither is second.
        ({"grpo": [1, 0], "treerl": [0, 3], "datpo": [4, 4]}, {"datpo"}),
        # Two runs: the second of two is the last.
        ({"grpo": [1, 1], "datpo": [4, 4]}, {"datpo"}),
        # DATPO and TreeRL cannot be told apart, so none is the best, and none the second best.
        ({"grpo": [0, 0], "treerl": [2, 4], "datpo": [4, 3]}, set()),
    ],
)
def test_nobody_is_second_without_need(folder, make, correct, best):
    found = marks(folder, make, **correct)
    assert {method for method, mark in found.items() if mark} == best
    assert {found[method] for method in best} <= {"best"}


def test_html_is_whole_and_what_stands_in_it_is_text(folder, make):
    hostile = "<script>alert('&')</script>"
    folder.add_metrics([1, 2], model=hostile.replace("/", "|"), method="base", benchmark="a<b")
    text = (make(folder) / "table2.html").read_text()
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    assert {element.tag for element in page.iter()}.isdisjoint({"script", "link", "img"})
    assert page.find(".//tbody/tr/td").text == hostile.replace("/", "|")
    assert "a<b" in [element.text for element in page.iter("th")]
    for table in page.iter("table"):
        widths = {sum(int(cell.get("colspan", 1)) for cell in row) for row in table.iter("tr")}
        assert len(widths) == 1
