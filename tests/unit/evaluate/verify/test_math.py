r"""The domain `math` on the sets of cases with known right values, and its interface."""

import json
import re
import threading
from pathlib import Path
from random import Random

import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate.verify import DOMAINS, VERDICTS, Verdict, grade_all, shapes
from datpo.evaluate.verify.compare import judge
from datpo.evaluate.verify.keys import is_no_key, is_readable
from datpo.evaluate.verify.normalise import normalise

CASES = Path(__file__).resolve().parents[4] / ".." / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the cases with known right values are not here")


def read(name):
    with (CASES / name).open() as lines:
        return [json.loads(line) for line in lines]


def grade(gold, response):
    return DOMAINS["math"].grade(Problem("p", "?", gold), response)


def graded(rows):
    """(row, verdict) for rows with a gold and a response."""
    pairs = [(Problem(str(row["id"]), "?", row["gold"]), row["response"]) for row in rows]
    return list(zip(rows, grade_all("math", pairs), strict=True))


def mistakes(found):
    return [
        (row["id"], row["gold"][:80], verdict)
        for row, verdict in found
        if (verdict.verdict == "right") != row["correct"]
    ]


@needs_cases
def test_the_rules():
    rows = [row for row in read("grading_rules.jsonl") if not row["debatable"]]
    wrong = mistakes(graded(rows))
    assert len(wrong) <= 0.01 * len(rows), wrong


@needs_cases
def test_real_answers_in_boxes():
    rows = [row for row in read("grading_real.jsonl") if row["kind"] != "full_response_no_box"]
    found = graded(rows)
    wrong = mistakes(found)
    assert len(wrong) <= 0.015 * len(rows), wrong
    assert not [row["id"] for row, verdict in found if verdict.verdict == "right" and not row["correct"]]


@needs_cases
def test_real_answers_without_a_box_have_no_answer():
    rows = [row for row in read("grading_real.jsonl") if row["kind"] == "full_response_no_box"]
    assert {verdict.verdict for _, verdict in graded(rows)} == {"no_answer"}


@needs_cases
def test_reported_faults_of_other_checkers():
    statuses = {"gold_unparsed, counted and reported": "bad_key", "gold_missing": "bad_key"}
    for row in read("reported.jsonl"):
        if not row["area"].startswith("a-verify"):
            continue
        given, expected = row["input"], row["expected"]
        response = given.get("response", given.get("prefix", "") + given.get("suffix", ""))
        pair = (Problem(row["id"], "?", given["gold"]), response)
        for verdict in grade_all("math", [pair] * given.get("repeat", 1)):
            assert (verdict.reward == 1) == expected.get("correct", False), row
            if "status" in expected:
                assert verdict.verdict == statuses[expected["status"]], row
        if "suffix_alone_correct" in expected:
            assert grade(given["gold"], given["suffix"]).reward == expected["suffix_alone_correct"]


def keys(name):
    """The different keys of a problem file."""
    with (CASES.parent / "data" / f"{name}.jsonl").open() as lines:
        return sorted({str(json.loads(line)["answer"]) for line in lines})


@needs_cases
@pytest.mark.parametrize("name", ["math500", "aime2024", "aime2025", "amc23", "math_train", "mmlu_pro_sample"])
def test_every_key_of_the_benchmarks_can_be_read(name):
    unread = [key for key in keys(name) if is_no_key(key) or not is_readable(shapes.read(normalise(key)))]
    assert not unread


def mutant(key, random):
    """A key with one digit, sign or variable changed, so that it says something else."""
    at = random.randrange(len(key))
    if key[at].isdigit():
        other = str((int(key[at]) + random.randint(1, 8)) % 10)
    else:
        other = {"+": "-", "-": "+", "<": ">", ">": "<"}.get(key[at])
    return None if other is None else key[:at] + other + key[at + 1 :]


@needs_cases
@pytest.mark.slow
def test_a_key_with_one_sign_or_digit_changed_is_another():
    random = Random(0)
    pairs = [(key, mutant(key, random)) for key in keys("math_train") for _ in range(2)]
    pairs = [(key, other) for key, other in pairs if other and not re.search(r"\^\{?\d\}?$", key)]  # 45 units^2
    assert len(pairs) > 1000
    assert not [pair for pair in pairs if judge(*pair) == "right"]


def test_verdicts():
    assert grade("5", r"\boxed{5.0}") == Verdict("right", "5.0")
    assert grade("5", r"\boxed{6}") == Verdict("wrong", "6")
    assert grade("5", "five") == Verdict("no_answer", None)
    assert grade("", "five") == Verdict("bad_key", None)
    assert grade("see the figure", r"\boxed{5}") == Verdict("bad_key", "5")
    assert [Verdict(verdict, None).reward for verdict in VERDICTS] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_order_is_kept_and_equal_pairs_are_worked_out_once():
    problem = Problem("p", "?", "x+1")
    responses = [rf"\boxed{{{answer}}}" for answer in ("1+x", "x", "2", "1+x", "x+1")] * 20
    verdicts = [verdict.verdict for verdict in grade_all("math", [(problem, text) for text in responses])]
    assert verdicts == ["right", "wrong", "wrong", "right", "right"] * 20
    assert grade_all("math", []) == []


def test_answers_are_compared_with_each_other_not_with_the_key():
    math, problem = DOMAINS["math"], Problem("p", "?", "7")
    assert math.equivalent(problem, "0.5", r"\frac{1}{2}")
    assert math.equivalent(problem, "1, 2", r"\{2, 1\}")
    assert math.equivalent(problem, "", "")
    assert not math.equivalent(problem, "0.5", "7")
    assert not math.equivalent(problem, "see above", "7")


def test_any_thread_may_grade():
    found = {}
    pairs = [(Problem("p", "?", r"\frac{1}{3}"), rf"\boxed{{\frac{{{n}}}{{3 \cdot 1^x}}}}") for n in range(4)]

    def work(number):
        found[number] = [verdict.verdict for verdict in grade_all("math", pairs)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == {number: ["wrong", "right", "wrong", "wrong"] for number in range(8)}


def test_an_unknown_domain_is_named():
    with pytest.raises(InputError, match="chemistry"):
        grade_all("chemistry", [])


@pytest.mark.parametrize("checker", ["mine", ["own"], {}])
def test_an_unknown_checker_is_named(checker):
    with pytest.raises(InputError, match=r"unknown checker .*choose one of: own, own_unboxed, datpo_release"):
        grade_all("math", [], checker)
