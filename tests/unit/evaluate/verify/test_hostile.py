r"""Texts that repeat what the patterns look for: whatever runs outside the workers must take linear time on them."""

import time
from random import Random

import pytest

from datpo.evaluate.verify.boxed import find_answer
from datpo.evaluate.verify.compare import judge, quick
from datpo.evaluate.verify.normalise import LONGEST, normalise

PIECES = [
    "{", "}", "(", ")", "[", r"\{", " ", ",", ";", "&", r"\\", "\\", "^", "_", "$", "*", "`", '"', ".", "-", "+", "=",
    "<", "|", "%", "°", ":", "1", "12 ", "123,", "1,", "x ", "1e", "1.5e", r"\text{", r"\text{a", r"\text{ and }",
    "or ", r"\boxed{", r"\boxed ", r"\frac{", r"\sqrt", r"\left", r"\left.", r"\left\{\begin{array}",
    r"\end{array}\right", r"\begin{cases}", r"\begin{aligned}", r"\phantom", r"\color{", r"\pmod", "(mod", r"\mathbb",
    r"\in\mathbb", r"\text{for all", r"\text{for all}", r"\ne", r"\pm", r"\overline", r".\bar", r"^\circ", "degrees",
    "1 thousand", "to", "½", "²", "₁", "π", "−", "１", "\u200b", "\x00", "\ud800", "\n", r"1\text{ cm}", "1 per ",
    "12:", "1_2", "A. ", "f(", "x=", r"\sin^", "1/", r"\choose", "{a\\choose", "1{,}", r"1\,", r"\,", r"\!", "a**",
    r"\frac{\text{m}}", r"\hspace{", "word ", r"\text{ is}",
]  # fmt: skip
RANDOM = Random(0)
UNITS = [*PIECES, *("".join(RANDOM.sample(PIECES, 3)) for _ in range(40))]


def filled(unit: str, length: int) -> str:
    """A text of a length that repeats a unit."""
    return (unit * (length // len(unit) + 1))[:length]


def seconds(function, *arguments):
    """CPU time of one call."""
    began = time.process_time()
    function(*arguments)
    return time.process_time() - began


def test_what_is_decided_outside_the_workers_is_decided_quickly():
    for unit in UNITS:
        for hostile in (filled(unit, LONGEST), "1" + filled(unit, LONGEST - 1), filled(unit, LONGEST - 1) + "1"):
            normalise.cache_clear()
            assert seconds(quick, "5", hostile) + seconds(quick, hostile, "5") < 2, unit


def test_an_answer_is_found_quickly():
    for unit in UNITS:
        assert seconds(find_answer, filled(unit, 50_000)) < 2, unit


@pytest.mark.parametrize(
    "text", ["|1" * 30, "1" + "|x" * 40, "|" * 60, "|(1" * 9, r"\lvert 1\rvert" * 20, "9^" * 200 + "9", r"P_\ " * 40]
)
def test_bars_and_towers_are_no_riddle(text):
    assert judge("5", text) == "wrong"
    assert judge(text, "5") in ("wrong", "bad_key")
    assert seconds(judge, "5", "1+" + text) < 2


def test_a_cut_list_is_not_its_beginning():
    many = [str(number) for number in range(500)]
    assert judge(",".join(many), ", ".join(many)) == "right"
    assert judge(",".join(many), ", ".join([*many[:-1], "7"])) != "right"
    rows = r"\\".join(many)
    assert judge(rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}", rf"\begin{{pmatrix}}{rows}0\end{{pmatrix}}") == "wrong"
