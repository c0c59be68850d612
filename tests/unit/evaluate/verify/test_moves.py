r"""The domain `moves`: graded by making the moves."""

import pytest

from datpo.core.problem import Problem
from datpo.evaluate.verify import DOMAINS, grade_all

# 10: +4 14, -6 8, *3 24, -7 17, -5 12. And 10: -7 3, *3 9, +6 15, +4 19 ... overshoots: not every order ends at 12.
PROBLEM = Problem("m1", "Start at 10. Reach 12 with 5 of: *3 +6 -5 -7 +4 -6.", "+4 -6 *3 -7 -5")
CASES = [
    (r"So \boxed{ +4 -6 *3 -7 -5}.", "right", "+4 -6 *3 -7 -5"),
    (r"\boxed{-6 +4 *3 -7 -5}", "right", "-6 +4 *3 -7 -5"),  # 4, 8, 24, 17, 12: another way there
    (r"\boxed{+4   -6 *3  -7 -5}", "right", "+4 -6 *3 -7 -5"),
    (r"\boxed{+4 -6 *3 -5 -5}", "wrong", "+4 -6 *3 -5 -5"),  # a move twice
    (r"\boxed{+4 -6 *3 -7}", "wrong", "+4 -6 *3 -7"),  # too few
    (r"\boxed{+4 -6 *3 -7 -5 +6}", "wrong", "+4 -6 *3 -7 -5 +6"),  # too many
    (r"\boxed{+4 -6 *3 -7 -4}", "wrong", "+4 -6 *3 -7 -4"),  # a move not offered
    (r"\boxed{-5 -6 +4 *3 -7}", "wrong", "-5 -6 +4 *3 -7"),  # 5, -1: below 0
    (r"\boxed{+4 *3 -6 -7 -5}", "wrong", "+4 *3 -6 -7 -5"),  # 14, 42: above 39
    (r"\boxed{12}", "wrong", "12"),
    (r"\boxed{+4, -6, *3, -7, -5}", "wrong", "+4, -6, *3, -7, -5"),
    (r"\boxed{__import__('os')}", "wrong", "__import__('os')"),
    (r"+4 -6 *3 -7 -5", "no_answer", None),
    (r"\boxed{+4 -6", "no_answer", None),
    ("", "no_answer", None),
]


@pytest.mark.parametrize(("response", "verdict", "answer"), CASES)
def test_grade(response, verdict, answer):
    found = DOMAINS["moves"].grade(PROBLEM, response)
    assert (found.verdict, found.answer) == (verdict, answer)
    assert found.reward == float(verdict == "right")


@pytest.mark.parametrize("text", ["", "Reach 12.", "Start at 1. Reach 2 with 2 of: +4 +4."])
def test_a_problem_that_is_no_puzzle(text):
    verdicts = grade_all("moves", [(Problem("m2", text, "+4"), r"\boxed{+4}"), (PROBLEM, CASES[0][0])])
    assert [verdict.verdict for verdict in verdicts] == ["bad_key", "right"]


def test_answers_are_one_iff_they_are_the_same_moves_in_the_same_order():
    domain = DOMAINS["moves"]
    assert domain.equivalent(PROBLEM, "+4 -6", " +4  -6 ")
    assert not domain.equivalent(PROBLEM, "+4 -6", "-6 +4")
