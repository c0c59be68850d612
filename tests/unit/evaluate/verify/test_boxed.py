r"""Where the answer of a response stands."""

import time

import pytest

from datpo.evaluate.verify import released
from datpo.evaluate.verify.boxed import find_answer
from datpo.evaluate.verify.unboxed import find_unboxed

CASES = [
    # (response, answer, why)
    (r"So \boxed{5}.", "5", "the plain case"),
    (r"\boxed{14}, no: \boxed{17}.", "17", "the last box counts"),
    (r"\fbox{5}", "5", "the other command"),
    (r"\boxed {5}", "5", "a space before the brace"),
    (r"\boxed{ +4 -6 }", "+4 -6", "spaces inside"),
    (r"\boxed{\frac{\sqrt{3}}{2}}", r"\frac{\sqrt{3}}{2}", "nested braces"),
    (r"\boxed{\{1,2\}}", r"\{1,2\}", "escaped braces are no braces"),
    (r"\boxed{\left\{ x \mid x > 2 \right.}", r"\left\{ x \mid x > 2 \right.", "an escaped brace without partner"),
    (r"so $\boxed 12$.", "12", "a number without braces"),
    (r"so \boxed 1", None, "cut off, without braces"),
    (r"\boxed{4} no, \boxed 12", None, "cut off without braces, whatever came before"),
    (r"\boxed{4} no, \boxed", None, "a box cut off before its content"),
    (r"\boxed{4} no, \boxed 1,", "1", "a mark ends a number"),
    (r"\boxed{4} no, \boxed 1.5", None, "a decimal cut off without braces"),
    (r"\boxed{4} no, \boxed -", None, "a sign cut off without braces"),
    ("\\boxed{4} no, \\boxed 12\n", "12", "a line's end ends a number without braces"),
    (r"\boxed{B} no, \boxed A", "A", "a letter without braces at the end"),
    (r"\boxed{4}, as asked in a \boxed.", "4", "the command's name at the end of a sentence"),
    (r"so $\boxed B$.", "B", "a letter without braces"),
    (r"in a \boxed environment", None, "a word without braces"),
    (r"the total is \boxed{12", None, "cut off: it could have become 120"),
    (r"\boxed{\frac{1}{2}", None, "cut off, though inner braces balance"),
    (r"\boxed{5}. Check: \boxed{1", None, "cut off in the last box, whatever came before"),
    (r"a slip \boxed{3 here. So \boxed{5}.", "5", "an earlier box that never closes does no harm"),
    (r"Put it in \boxed{}. So 7: \boxed{7}", "7", "an empty box before"),
    (r"\boxed{7} (within \boxed{} as asked)", "7", "an empty box after"),
    (r"Put it in \boxed{}.", None, "an empty box alone"),
    (r"\boxed{ }", None, "blank"),
    (r"\boxed{?}", None, "a question mark"),
    (r"\boxed{\ldots}", None, "dots"),
    (r"\boxed{...}", None, "dots"),
    ("no box at all: 5", None, "no fallback"),
    ("", None, "empty"),
    (r"$\boxed{3}$, $\boxed{5}$", "3, 5", "boxes joined by a comma"),
    (r"$\boxed{3}$ and $\boxed{5}$", "3, 5", "boxes joined by a word"),
    (r"$\boxed{1}$, $\boxed{2}$, and $\boxed{3}$.", "1, 2, 3", "three boxes"),
    (r"$\boxed{3} \text{ or } \boxed{5}$", "3, 5", "boxes joined by a word in mathematics"),
    (r"$\boxed{1}$ $\boxed{2}$ $\boxed{3}$", "3", "spaces do not make a list: guesses in a row are guesses"),
    (r"\boxed{8}. To recap, since the sum is 8, we box \boxed{8}.", "8", "the same again"),
    (r"\boxed{8}, \boxed{8}", "8", "the same again, joined"),
    (r"\boxed{3}, so after adding two, \boxed{5}", "5", "a comma in a sentence is no list"),
    (r"\boxed{x = \boxed{5}}", r"x = \boxed{5}", "a box in a box belongs to it"),
    (r"} \boxed{5} }", "5", "stray braces"),
    (r"\\boxed{5}", "5", "an escaped text"),
    (r"1/2 \\ \boxed{5}", "5", "the end of a line before"),
]


@pytest.mark.parametrize(("response", "answer", "why"), CASES, ids=[case[2] for case in CASES])
def test_find_answer(response, answer, why):
    assert find_answer(response) == answer


@pytest.mark.parametrize("piece", [r"\boxed{", r"\boxed{1}", r"\boxed{}", "{", "}", r"\boxed{1}, ", "\\", r"\boxed "])
def test_long_responses_take_linear_time(piece):
    began = time.perf_counter()
    find_answer(piece * 20_000)
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize("find", [find_answer, find_unboxed, released.find_answer])
@pytest.mark.parametrize("piece", ["{", r"\boxed{1},", r"\boxed{", "9", "answer ", "* ", r"\boxed 1"])
def test_a_response_of_megabytes_is_searched_at_its_end_alone(find, piece):
    response = piece * (5_000_000 // len(piece))
    began = time.perf_counter()
    find(response)
    find(response + "}" * 400_000)
    assert time.perf_counter() - began < 2
    assert find(rf"\boxed{{5}}{'no ' * 70_000}") is None
    assert find(rf"{'no ' * 70_000}\boxed{{5}}") in ("5", None if find is find_unboxed else "5")
