import itertools
import json
import time
from unittest.mock import ANY

import numpy as np
import pytest

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import intervals
from datpo.evaluate.majority import maj_at_k
from datpo.evaluate.metrics import avg_at_k, metrics_file, pass_at_k, values_at_k

from .files import write_counted, write_problems, write_scores


@pytest.mark.parametrize(("n", "c"), [(n, c) for n in range(1, 8) for c in range(n + 1)])
def test_pass_at_k_is_the_mean_over_all_subsets(n, c):
    samples = [1] * c + [0] * (n - c)
    for k in range(1, n + 1):
        expected = np.mean([any(subset) for subset in itertools.combinations(samples, k)])
        assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-12)


def test_pass_at_k_of_many_problems_and_all_k():
    n, c = np.array([4, 8]), np.array([1, 0])
    values = pass_at_k(n, c, [1, 2, 4])
    assert values.shape == (2, 3)
    assert values == pytest.approx(np.array([[0.25, 0.5, 1.0], [0, 0, 0]]))
    assert pass_at_k(n, c, 2).shape == (2,)
    assert pass_at_k(4, 1, 2).shape == ()


def test_large_counts_stay_exact():
    # 1 - C(9990, 5000) / C(10000, 5000): about 1 - 2^-10, no overflow
    assert pass_at_k(10000, 10, 5000) == pytest.approx(1 - 0.5**10, abs=1e-5)


@pytest.mark.parametrize(("n", "c", "k"), [(2, 0, 5), (3, 1, 4), (4, 1, 0), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
def test_pass_at_k_refuses_what_cannot_be_estimated(n, c, k):
    with pytest.raises(InputError):
        pass_at_k(n, c, k)


def test_the_error_names_problem_and_k():
    with pytest.raises(InputError, match=r"pass@8.*'second'.*3 samples"):
        pass_at_k([8, 3], [1, 1], [1, 8], ["first", "second"])


def test_avg_weighs_problems_alike_and_needs_a_sample_of_each():
    assert avg_at_k([[1] * 8, [0, 0]]).tolist() == [1, 0]
    with pytest.raises(InputError, match="'lost'"):
        avg_at_k([[1], []], ["fine", "lost"])


def test_all_k_of_a_large_benchmark_within_two_seconds():
    rng = np.random.default_rng(0)
    correct = rng.random((500, 256)) < rng.random((500, 1))
    began = time.perf_counter()
    values = pass_at_k(np.full(500, 256), correct.sum(axis=1), np.arange(1, 257))
    found = intervals(values, draws=2000)
    assert time.perf_counter() - began < 2
    assert len(found) == 256
    assert all(a.value <= b.value + 1e-12 for a, b in itertools.pairwise(found))


@pytest.fixture
def files(tmp_path):
    problems = write_problems(tmp_path / "problems.jsonl", {"p": "0", "q": "0"})
    scores = write_scores(
        tmp_path / "scores.jsonl",
        {"p": ["right", "right", "wrong", "no_answer"], "q": ["wrong", "wrong", "timeout", "right"]},
        duplicates=2,
    )
    config = write_counted(tmp_path / "config.yaml", k=[1, 2, 4], bootstrap=500)
    return {
        "config": config,
        "scores": scores,
        "problems": problems,
        "out": tmp_path / "out" / "metrics.json",
    }


def test_the_metrics_document(files):
    metrics_file(**files)
    found = json.loads(files["out"].read_text())
    assert found["header"]["kind"] == "scores"
    assert found["settings"] == {"k": [1, 2, 4], "bootstrap": 500, "seed": 0, "missing": "exclude", "runs": 1}
    assert (found["n"], found["problems"]) == (4, 2)
    assert found["avg"]["value"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert found["pass"]["1"] == pytest.approx(found["avg"])
    # p: 1 - C(2,2)/C(4,2) = 5/6; q: 1 - C(3,2)/C(4,2) = 1/2
    assert found["pass"]["2"]["value"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert found["pass"]["4"]["value"] == 1.0
    assert found["maj"]["4"]["value"] == 0.5  # p: right 2 to 1; q: wrong 2 to 1
    assert found["maj"]["1"]["value"] == pytest.approx(found["avg"]["value"])
    assert found["avg"]["low"] <= found["avg"]["value"] <= found["avg"]["high"]
    assert found["rates"] == {
        "truncated": 0, "no_answer": 1 / 8, "timeout": 1 / 8, "bad_key": 0, "missing": 0, "duplicate": 2 / 8,
    }  # fmt: skip
    assert found["per_problem"] == [
        {
            "problem": "p",
            "level": 1,
            "n": 4,
            "correct": 2,
            "maj": {"1": 0.5, "2": pytest.approx(2 / 3, abs=0.1), "4": 1.0},
        },
        {
            "problem": "q",
            "level": 1,
            "n": 4,
            "correct": 1,
            "maj": {"1": 0.25, "2": pytest.approx(1 / 3, abs=0.1), "4": 0.0},
        },
    ]
    assert values_at_k(found, 2) == pytest.approx({"p": 5 / 6, "q": 1 / 2})


def test_evaluation_runs_are_the_same_means_over_their_own_samples(files):
    write_counted(files["config"], k=[1, 2, 4], runs=2)
    metrics_file(**files)
    runs = json.loads(files["out"].read_text())["runs"]
    # first runs: p right, right and q wrong, wrong; second runs: p wrong, none and q timeout, right
    assert runs == {
        "count": 2, "n": 2, "avg": [0.5, 0.25], "pass": {"1": [0.5, 0.25], "2": [0.5, 0.5]},
        "maj": {"1": [0.5, 0.25], "2": [0.5, 0.5]},
    }  # fmt: skip
    write_counted(files["config"], k=[4], runs=2)  # no run has four samples
    metrics_file(**files)
    runs = json.loads(files["out"].read_text())["runs"]
    assert (runs["avg"], runs["pass"], runs["maj"]) == ([0.5, 0.25], {}, {})
    write_counted(files["config"], runs=3)
    with pytest.raises(InputError, match=r"4 samples .* 3 evaluation runs"):
        metrics_file(**files)


def test_a_run_without_samples_of_a_problem_says_nothing(files):
    write_scores(files["scores"], {"p": ["missing", "right"], "q": ["right", "wrong"]})
    write_counted(files["config"], runs=2)
    metrics_file(**files)
    assert json.loads(files["out"].read_text())["runs"]["avg"] == []


def test_lost_samples_are_reported_and_lower_n(files, tmp_path):
    write_scores(files["scores"], {"p": ["right", "missing", "wrong", "right"], "q": ["wrong"] * 4})
    with pytest.raises(InputError, match=r"pass@4.*'p'.*3 samples"):
        metrics_file(**files)
    write_counted(files["config"], k=[1, 2])
    metrics_file(**files)
    found = json.loads(files["out"].read_text())
    assert found["rates"]["missing"] == 1 / 8
    assert found["avg"]["value"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["per_problem"][0] == {"problem": "p", "level": 1, "n": 3, "correct": 2, "maj": {"1": ANY, "2": ANY}}
    write_counted(files["config"], k=[4], missing="wrong")
    metrics_file(**files)
    found = json.loads(files["out"].read_text())
    assert found["avg"]["value"] == pytest.approx((2 / 4 + 0) / 2)
    assert found["rates"]["missing"] == 1 / 8


def test_k_above_n(files):
    write_counted(files["config"], k=[1, 8])
    with pytest.raises(InputError, match="pass@8"):
        metrics_file(**files)
    assert not files["out"].exists()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"K": [1]}, "unknown key 'K'"),
        ({"k": 8}, "'k'"),
        ({"k": []}, "`k`"),
        ({"k": [1, 1]}, "`k`"),
        ({"k": [True]}, "'k'"),
        ({"bootstrap": 0}, "'bootstrap'"),
        ({"bootstrap": 1000000000000}, "'bootstrap'"),
        ({"seed": 1180591620717411303424}, "'seed'"),
        ({"runs": True}, "'runs'"),
        ({"missing": True}, "'missing'"),
    ],
)
def test_bad_settings(files, settings, word):
    write_counted(files["config"], **settings)
    with pytest.raises(InputError, match=rf"config\.yaml: .*{word}"):
        metrics_file(**files)


@pytest.mark.parametrize(
    ("text", "message"),
    [("[1]", "must hold"), ("{k: [1], k: [2]}", "stands twice"), ("{k: [", "not YAML"), ("{k: [1]}", "'bootstrap'")],
)
def test_settings_that_are_not_all_there(files, text, message):
    files["config"].write_text(text)
    with pytest.raises(InputError, match=rf"config\.yaml: .*{message}"):
        metrics_file(**files)


def test_bad_keys_and_other_problems_are_refused(files):
    write_scores(files["scores"], {"p": ["right"] * 4, "q": ["bad_key"] * 4})
    with pytest.raises(InputError, match="'q'"):
        metrics_file(**files)
    write_scores(files["scores"], {"p": ["right"] * 4, "r": ["right"] * 4})
    with pytest.raises(InputError, match="'r'"):
        metrics_file(**files)


def test_metrics_do_not_depend_on_the_order_of_the_problems(files):
    right = {name: ["right"] * c + ["wrong"] * (4 - c) for name, c in (("p", 0), ("q", 1), ("r", 4))}
    found = []
    for names in ("pqr", "rpq"):
        write_problems(files["problems"], dict.fromkeys(names, "0"))
        write_scores(files["scores"], {name: right[name] for name in names})
        metrics_file(**files)
        document = json.loads(files["out"].read_text())
        found.append({key: document[key] for key in ("avg", "pass", "maj")})
    assert found[0] == found[1]


def test_keys_that_changed_since_scoring_are_refused(files):
    write_problems(files["problems"], {"p": "0", "q": "1"})
    with pytest.raises(InputError, match=r"scores\.jsonl: graded by other answer keys .* score the samples again"):
        metrics_file(**files)
    assert not files["out"].exists()


def test_one_problem_has_a_value_but_no_interval(files):
    write_problems(files["problems"], {"p": "0"})
    write_scores(files["scores"], {"p": ["right", "wrong", "wrong", "wrong"]})
    metrics_file(**files)
    assert json.loads(files["out"].read_text())["avg"] == {"value": 0.25, "low": None, "high": None}


def test_maj_of_a_large_benchmark_is_affordable():
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 100, (500, 256))
    began = time.perf_counter()
    maj_at_k((classes == 0).tolist(), classes.tolist(), [1, 8, 64, 256])
    assert time.perf_counter() - began < 20
