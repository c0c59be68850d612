"""Small inputs distilled from public bug reports of comparable tools (pass@k, avg@k, maj@k, truncation)."""

import json
from pathlib import Path

import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.data.checks import check_apart
from datpo.evaluate import verify
from datpo.evaluate.majority import NO_VOTE, maj_at_k
from datpo.evaluate.metrics import avg_at_k, metrics_file, pass_at_k
from datpo.evaluate.samples import read_samples
from datpo.evaluate.score import answer_classes, score_file

from .files import write_counted, write_problems, write_samples, write_scores

CASES = Path(__file__).resolve().parents[3] / ".." / "shared" / "cases" / "reported.jsonl"


def cases(area, key=None):
    """The cases of an area, or those of them whose input has `key`."""
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the case file is not here"))]
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return [
        pytest.param(row, id=row["id"]) for row in rows if row["area"] == area and (key is None or key in row["input"])
    ]


@pytest.mark.parametrize("case", cases("b-passk"))
def test_pass_at_k(case):
    given, expected = case["input"], case["expected"]
    samples = given.get("per_problem_samples")
    n, c = (given["n"], given["c"]) if samples is None else ([len(s) for s in samples], [sum(s) for s in samples])
    if "value" in expected:
        assert pass_at_k(n, c, given["k"]) == pytest.approx(expected["value"], abs=expected["tol"])
    else:
        assert expected["error_or_missing"]
        with pytest.raises(InputError):
            pass_at_k(n, c, given["k"])


@pytest.mark.parametrize("case", cases("b-avgk"))
def test_avg_at_k(case, tmp_path):
    expected, groups = case["expected"], [problem["samples"] for problem in case["input"]["problems"]]
    if "missing_reported" not in expected:
        assert avg_at_k(groups).mean() == pytest.approx(expected["value"], abs=expected["tol"])
        return
    verdicts = {0: "wrong", 1: "right", None: "missing"}
    (group,) = [[verdicts[sample] for sample in group] for group in groups]
    problems, scores = (
        write_problems(tmp_path / "p.jsonl", {"p": "0"}),
        write_scores(tmp_path / "s.jsonl", {"p": group}),
    )
    metrics_file(write_counted(tmp_path / "c.yaml"), scores, problems, tmp_path / "m.json")
    found = json.loads((tmp_path / "m.json").read_text())
    assert found["avg"]["value"] == pytest.approx(expected["value"], abs=1e-6)
    assert found["per_problem"][0]["n"] == expected["n_used"]
    assert found["rates"]["missing"] * len(group) == expected["missing_reported"]


def majority(answers, gold, k):
    problem, domain = Problem("p", "?", gold), verify.DOMAINS["math"]
    graded = verify.grade_all("math", [(problem, f"$\\boxed{{{answer}}}$") for answer in answers if answer is not None])
    verdicts = iter(graded)
    correct = [answer is not None and next(verdicts).reward == 1 for answer in answers]
    classes = [NO_VOTE if number is None else number for number in answer_classes(domain, problem, answers)]
    return float(maj_at_k([correct], [classes], [k])[0, 0])


@pytest.mark.parametrize("case", cases("b-majk"))
def test_maj_at_k(case):
    given, expected = case["input"], case["expected"]
    value = majority(given["answers"], given["gold"], given["k"])
    assert value == pytest.approx(expected.get("value", expected.get("suggested")), abs=1e-9)
    if "also_with_order" in given:
        assert majority(given["also_with_order"], given["gold"], given["k"]) == value


@pytest.mark.parametrize("case", cases("b-trunc", "sample"))
def test_truncation(case, tmp_path):
    given, expected = case["input"], case["expected"]
    samples = write_samples(
        tmp_path / "s.jsonl",
        {"p": [given["sample"]["text"]]},
        given["sample"]["finish_reason"],
        domain="math",
    )
    problems = write_problems(tmp_path / "p.jsonl", {"p": given["gold"]})
    (tmp_path / "score.yaml").write_text("truncated: wrong\nchecker: own")
    score_file(tmp_path / "score.yaml", samples, problems, tmp_path / "scores.jsonl")
    metrics_file(write_counted(tmp_path / "c.yaml"), tmp_path / "scores.jsonl", problems, tmp_path / "m.json")
    found = json.loads((tmp_path / "m.json").read_text())
    assert found["rates"]["truncated"] == float(expected["truncated_counted"])
    assert found["avg"]["value"] == float(expected["correct"])


@pytest.mark.parametrize("case", cases("b-seed", "temperature"))
def test_greedy(case, tmp_path):
    given = case["input"]
    path = write_samples(tmp_path / "s.jsonl", {"p": ["1"] * given["n"]}, temperature=given["temperature"])
    with pytest.raises(InputError, match="temperature"):
        read_samples(path)


@pytest.mark.parametrize("case", cases("b-data", "test_ids"))
def test_overlap(case):
    test, train = (
        [Problem(id_, f"{side} {id_}", "1") for id_ in case["input"][f"{side}_ids"]] for side in ("test", "train")
    )
    with pytest.raises(InputError, match=f": {case['expected']['error'].split()[-1]}; "):
        check_apart(test, "benchmark", train)
