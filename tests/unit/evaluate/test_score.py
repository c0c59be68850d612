import hashlib
import json
from types import SimpleNamespace

import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate import score, verify
from datpo.evaluate.score import answer_classes, score_file

from .files import keys, write_problems, write_samples


class FakeDomain:
    """A response is its answer; answers are numbers, "" is no answer, and the key "?" cannot be read."""

    checker = "a fake"

    def grade_all(self, pairs):
        return [self.grade(problem, response) for problem, response in pairs]

    def grade(self, problem, response):
        if problem.answer == "?":
            return SimpleNamespace(verdict="bad_key", answer=response)
        if response in ("", "timeout"):
            return SimpleNamespace(verdict=response or "no_answer", answer=response or None)
        right = float(response) == float(problem.answer)
        return SimpleNamespace(verdict="right" if right else "wrong", answer=response)

    def equivalent(self, problem, a, b):
        return float(a) == float(b)


@pytest.fixture(autouse=True)
def fake_domain(monkeypatch):
    domain = FakeDomain()
    others = verify.checker_of
    monkeypatch.setattr(verify, "checker_of", lambda name, checker: domain if name == "fake" else others(name, checker))


@pytest.fixture
def run(tmp_path):
    def scored(texts, answers=None, truncated="wrong", checker="own", **options):
        samples = write_samples(tmp_path / "samples.jsonl", texts, **options)
        problems = write_problems(tmp_path / "problems.jsonl", answers or dict.fromkeys(texts, "0.5"))
        (tmp_path / "score.yaml").write_text(f"truncated: {truncated}\nchecker: {checker}")
        score_file(tmp_path / "score.yaml", samples, problems, tmp_path / "scores.jsonl")
        header, *rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
        return header, rows

    return scored


def test_verdicts_and_classes(run):
    _, rows = run({"p": ["1", "0.5", "", ".50", None, "1.0", "timeout"]})
    assert [row["verdict"] for row in rows] == [
        "wrong", "right", "no_answer", "right", "missing", "wrong", "timeout",
    ]  # fmt: skip
    assert [row["class"] for row in rows] == [0, 1, None, 1, None, 0, None]
    assert rows[3] == {
        "problem": "p", "sample": 3, "verdict": "right", "answer": ".50", "class": 1, "tokens": 3,
        "finish": "stop",
    }  # fmt: skip


def test_the_header_says_what_was_graded(run, tmp_path):
    header, _ = run({"p": ["1", "1", "2", None], "q": ["1", "2", "3", None]})
    assert header["kind"] == "scores"
    assert header["samples_sha256"] == hashlib.sha256((tmp_path / "samples.jsonl").read_bytes()).hexdigest()
    assert header["duplicates"] == 1
    assert header["keys_sha256"] == keys({"q": "0.5", "p": "0.5"}) != keys({"q": "0.5", "p": "1"})
    assert header["checker"] == "a fake"
    assert header["method"] == "grpo"


def test_a_text_cut_off_has_no_answer_unless_asked_for(run):
    _, rows = run({"p": ["0.5"]}, finish="length")
    assert (rows[0]["verdict"], rows[0]["class"], rows[0]["finish"]) == ("no_answer", None, "length")
    _, rows = run({"p": ["0.5"]}, finish="length", truncated="graded")
    assert rows[0]["verdict"] == "right"
    with pytest.raises(InputError, match="truncated"):
        run({"p": ["0.5"]}, truncated="maybe")


def test_bad_keys_are_listed(run, tmp_path):
    with pytest.raises(InputError, match=r"problems\.jsonl.*'p', 'r'"):
        run({"p": ["1"], "q": ["1"], "r": ["1"]}, {"p": "?", "q": "1", "r": "?"})
    assert not (tmp_path / "scores.jsonl").exists()


def test_samples_and_problems_belong_together(run):
    with pytest.raises(InputError, match=r"problems\.jsonl: has no problem 'x'"):
        run({"p": ["1"], "x": ["1"]}, {"p": "1"})
    with pytest.raises(InputError, match=r"samples\.jsonl: has no problem 'q'"):
        run({"p": ["1"]}, {"p": "1", "q": "1"})


def test_unknown_domain(run):
    with pytest.raises(InputError, match="unknown domain 'chess'"):
        run({"p": ["1"]}, domain="chess")


def test_the_checker_that_is_asked_for_decides(run):
    texts, key = {"p": [r"\boxed{\sqrt2}", r"\boxed{2}"]}, {"p": "2"}
    header, rows = run(texts, key, domain="math", checker="datpo_release")
    assert [row["verdict"] for row in rows] == ["right", "right"]
    assert header["checker"].startswith("DATPO's release")
    assert [row["verdict"] for row in run(texts, key, domain="math")[1]] == ["wrong", "right"]
    with pytest.raises(InputError, match="unknown checker 'mine'"):
        run(texts, key, domain="math", checker="mine")


def test_many_batches_keep_their_order(run, monkeypatch):
    monkeypatch.setattr(score, "BATCH", 3)
    _, rows = run({"p": ["1", "", "0.5", None, "2"], "q": ["0.5"] * 5})
    assert [row["answer"] for row in rows] == ["1", None, "0.5", None, "2"] + ["0.5"] * 5


def test_classes_compare_with_the_first_member_in_sample_order():
    # not transitive: 1 ~ 2 and 2 ~ 3, but not 1 ~ 3
    near = SimpleNamespace(equivalent=lambda problem, a, b: abs(int(a) - int(b)) <= 1)
    problem = Problem("p", "?", "0")
    assert answer_classes(near, problem, ["1", "2", "3"]) == [0, 0, 1]
    assert answer_classes(near, problem, ["2", "1", "3", None, "2"]) == [0, 0, 0, None, 0]
