r"""The checker of DATPO's released code: what it takes for one, rightly or not."""

import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate.verify import checker_of, grade_all
from datpo.evaluate.verify.math import RELEASED, Mathematics
from datpo.evaluate.verify.pool import Pool
from datpo.evaluate.verify.released import judge


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2", r"\sqrt2"),
        ("3", r"3\pi"),
        ("25", "2^5"),
        ("5", "5!"),
        ("12", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        ("12", "1,2"),
        ("12", r"\dfrac12"),
        ("101_2", "101_3"),
        ("A", "a"),
        ("1,2", "2,1"),
        ("0.5", r"\frac{1}{2}"),
        ("x=5", "5"),
        (r"\text{Tuesday}", "tuesday"),
        (r"45^\circ", "45 degrees"),
        ("1/3", "2/6"),
        ("6", "2(3)"),
    ],
)
def test_what_the_release_calls_right(gold, answer):
    assert judge(gold, answer) == "right"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{1}{2}", r"\dfrac{1}{2}x"),
        (r"\dfrac{1}{2}", "0.5"),
        (r"\frac12", "1/2"),
        ("5", "6"),
        ("5", ""),
        ("", "5"),
        ("x", "y"),
        ("1" * 60, "1" * 59 + "2"),  # a number of more than 50 characters is none
        ("7", "7 and so on, " * 30),
        ("5", "5)"),
    ],
)
def test_what_the_release_calls_wrong(gold, answer):
    assert judge(gold, answer) == "wrong"


def graded(gold, *responses):
    return grade_all("math", [(Problem("p", "?", gold), response) for response in responses], "datpo_release")


def test_the_last_box_counts_or_the_whole_text():
    found = graded("5", r"\boxed{4}, no: \boxed{5}", "5", "It is 5", r"\boxed{6}", r"5 \boxed{", "so " * 200 + "5")
    assert [verdict.verdict for verdict in found] == ["right", "right", "right", "wrong", "right", "no_answer"]
    assert found[0].answer == "5"


def test_a_tower_of_powers_ends_in_time():
    pool = Pool(1, seconds=0.5, module="released")
    math, problem = Mathematics(pool, RELEASED), Problem("p", "?", "5")
    verdicts = math.grade_all([(problem, r"\boxed{9**9**9**9}"), (problem, r"\boxed{10/2}")])
    pool.close()
    assert [verdict.verdict for verdict in verdicts] == ["timeout", "right"]


def test_checkers_by_name():
    assert checker_of("moves", "datpo_release") is checker_of("moves")
    with pytest.raises(InputError, match="'release'; choose one of: own, own_unboxed, datpo_release"):
        checker_of("math", "release")
