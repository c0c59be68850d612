import json

import pytest

from datpo.core.errors import InputError
from datpo.evaluate.samples import read_samples, read_scores

from .files import write_lines, write_samples, write_scores


@pytest.fixture
def path(tmp_path):
    return write_samples(tmp_path / "s.jsonl", {"p": ["a", "b"], "q": ["c", None]})


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_come_problem_by_problem_whatever_the_order_in_the_file(path):
    header, *rows = lines(path)
    read_header, read = read_samples(write_lines(path, [header, rows[2], rows[1], rows[3], rows[0]]))
    assert read_header == header
    assert [(row["problem"], row["sample"]) for row in read] == [("q", 0), ("q", 1), ("p", 0), ("p", 1)]


def test_a_file_cut_within_a_line(path):
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match=r"s\.jsonl: line 5.*truncated"):
        read_samples(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], "'q' has 1 of 2 samples, sample 1 is missing"),
        (lambda rows: rows[:-2], "1 problems, but the header promises 2, the last is 'p'"),
        (lambda rows: rows[:1], "0 problems, but the header promises 2"),
        (lambda rows: [*rows, rows[2]], "'p': sample 1 occurs twice"),
        (lambda rows: [*rows, {**rows[1], "sample": 2}], "'p': sample 2 is not in 0..1"),
        (lambda rows: [*rows, {**rows[1], "sample": True}], "'p': sample True"),
        (lambda rows: [*rows[:-1], {**rows[-1], "finish": "eos", "text": "c"}], "'q', sample 1: `finish`"),
        (lambda rows: [*rows[:-1], {**rows[-1], "text": 5}], "'q', sample 1: `text`"),
        (lambda rows: [*rows[:-1], {"problem": "q"}], "line 5 has no sample, text, tokens, finish"),
        (lambda rows: rows[1:], "header with kind 'samples'"),
        (lambda rows: [], "header with kind 'samples'"),
        (lambda rows: [{**rows[0], "kind": "scores"}, *rows[1:]], "header with kind 'samples'"),
        (lambda rows: [{**rows[0], "version": 2}, *rows[1:]], "version 2"),
        (lambda rows: [{**rows[0], "n": 0}, *rows[1:]], "'n' must be"),
        (lambda rows: [{k: v for k, v in rows[0].items() if k != "domain"}, *rows[1:]], "no 'domain'"),
    ],
)
def test_what_is_wrong_is_named(path, change, message):
    write_lines(path, change(lines(path)))
    with pytest.raises(InputError, match=r"s\.jsonl") as error:
        read_samples(path)
    assert message in str(error.value)


def test_several_greedy_samples_are_one_sample(tmp_path):
    path = tmp_path / "s.jsonl"
    read_samples(write_samples(path, {"p": ["a"]}, temperature=0.0))
    with pytest.raises(InputError, match="temperature 0"):
        read_samples(write_samples(path, {"p": ["a"] * 16}, temperature=0.0))


def test_scores_know_their_verdicts(tmp_path):
    with pytest.raises(InputError, match="'p', sample 1: unknown verdict 'ok'"):
        read_scores(write_scores(tmp_path / "s.jsonl", {"p": ["right", "ok"]}))
