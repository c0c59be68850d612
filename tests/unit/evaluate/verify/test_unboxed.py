r"""Where an answer that stands in no box is looked for, and that only `grade` looks."""

import pytest

from datpo.core.problem import Problem
from datpo.evaluate.verify import grade_all
from datpo.evaluate.verify.unboxed import find_unboxed

from .test_math import mistakes, needs_cases, read


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("9 * 2 = $18 a day.\nA: 18", "18"),
        ("so it is 18\n#### 1,018", "1,018"),
        ("The answer is (C).", "(C)"),
        ("The answer is $x = 5$. I hope it is correct.", "$x = 5$"),
        ("Final Answer: The final answer is $5$. I hope it is correct.", "$5$"),
        ("**Answer:** 3.5 hours", "3.5 hours"),
        ("The answer is 4. No: the answer is 6.", "6"),
        ("It costs 3 + 4 = 7 dollars", "7"),
        ("about -1,234.5 then", "-1,234.5"),
        ("I cannot solve this.", None),
        ("", None),
        # a box, even without an end, leaves nothing to guess
        (r"The answer is \boxed{", None),
        (r"Put it in \boxed{}. The answer is 5.", None),
        # cut off amid a formula
        (r"\frac{\frac{5", None),
    ],
)
def test_where_an_answer_without_a_box_stands(response, answer):
    assert find_unboxed(response) == answer


@needs_cases
def test_real_responses_without_a_box():
    rows = [row for row in read("grading_real.jsonl") if row["kind"] == "full_response_no_box"]
    pairs = [(Problem(str(row["id"]), "?", row["gold"]), row["response"]) for row in rows]
    assert len(pairs) > 200
    assert mistakes(zip(rows, grade_all("math", pairs, "own_unboxed"), strict=True)) == []


def test_nothing_is_guessed_in_training():
    pair = (Problem("p", "?", "5"), "The answer is 5.")
    assert grade_all("math", [pair])[0].verdict == "no_answer"
    assert grade_all("math", [pair], "own_unboxed")[0].verdict == "right"
