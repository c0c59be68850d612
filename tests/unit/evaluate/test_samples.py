import json
import math

import pytest

from datpo.core.errors import InputError
from datpo.evaluate.samples import finished_samples, matching_problems, read_samples, read_scores

from .files import write_lines, write_problems, write_samples, write_scores


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
        (lambda rows: [*rows, {**rows[1], "sample": True}], "line 6: 'sample' must be"),
        (lambda rows: [*rows[:-1], {**rows[-1], "finish": "eos", "text": "c"}], "'q', sample 1: 'finish' must be"),
        (lambda rows: [*rows[:-1], {**rows[-1], "text": 5}], "line 5: 'text' must be text or null, not 5"),
        (lambda rows: [*rows[:-1], {"problem": "q"}], "line 5: key 'sample' is missing"),
        (lambda rows: rows[1:], "header with kind 'samples'"),
        (lambda rows: [], "header with kind 'samples'"),
        (lambda rows: [{**rows[0], "kind": "scores"}, *rows[1:]], "header with kind 'samples'"),
        (lambda rows: [{**rows[0], "version": 2}, *rows[1:]], "'version' must be 1, not 2"),
        (lambda rows: [{**rows[0], "n": 0}, *rows[1:]], "'n' must be"),
        (lambda rows: [{k: v for k, v in rows[0].items() if k != "domain"}, *rows[1:]], "key 'domain' is missing"),
    ],
)
def test_what_is_wrong_is_named(path, change, message):
    write_lines(path, change(lines(path)))
    with pytest.raises(InputError, match=r"s\.jsonl") as error:
        read_samples(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("temperature", value) for value in (math.nan, None, "1.0", -1, True, [], 10**400)),
        *(("domain", value) for value in (None, 1, [], {}, "")),
        *(("version", value) for value in (True, 1.0, "1")),
        *(("n", value) for value in ("2", 2.0, True, None)),
        *(("prompt", value) for value in ("plain", {}, {"template": "plain", "format": "", "stop": [1]})),
        *(("sampling_seed", value) for value in (None, -1, 2**70)),
        *(("versions", value) for value in (None, {"torch": 2})),
        ("questions", None),
    ],
)
def test_headers_hold_values_of_their_kind(tmp_path, key, value):
    path = write_samples(tmp_path / "s.jsonl", {"p": ["a", "b"]})
    header, *rows = lines(path)
    write_lines(path, [{**header, key: value}, *rows])
    with pytest.raises(InputError, match=rf"s\.jsonl: the first line.*{key}"):
        read_samples(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("problem", value) for value in ([1], {}, None, 1, "", "\ud800")),
        *(("tokens", value) for value in (-1, "x", math.nan, True)),
        *(("sample", value) for value in ("0", 0.0, -1, None)),
        *(("seed", value) for value in ("1", None, -1)),
        *(("text", value) for value in ([], 1)),
        ("finish", []),
    ],
)
def test_rows_hold_values_of_their_kind(path, key, value):
    header, first, *rows = lines(path)
    write_lines(path, [header, {**first, key: value}, *rows])
    with pytest.raises(InputError, match=rf"s\.jsonl: line 2: '{key}' must be"):
        read_samples(path)


def test_a_sample_has_the_seed_that_its_place_gives_it(path):
    header, *rows = lines(path)
    for seed in (rows[0]["seed"], 5):  # repeated; wrong
        write_lines(path, [header, rows[0], {**rows[1], "seed": seed}, *rows[2:]])
        with pytest.raises(InputError, match=r"s\.jsonl: problem 'p', sample 1: seed \d+ is not the one"):
            read_samples(path)
    del rows[3]["seed"]
    with pytest.raises(InputError, match="line 5: key 'seed' is missing"):
        read_samples(write_lines(path, [header, *rows]))
    header, *rows = lines(write_samples(path, {"p": ["a", "b"]}))
    with pytest.raises(InputError, match="problem 'p', sample 0: seed"):
        read_samples(write_lines(path, [{**header, "benchmark": "other"}, *rows]))


def test_what_an_interrupted_job_has_finished(path):
    header, *rows = lines(path)
    whole = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
    p, q = rows[:2], rows[2:]
    assert finished_samples(b"".join(whole), header) == {"p": p, "q": q}
    lacking = b'{"problem": "q", "sample": 0, "tokens": 1, "seed": 1, "finish": "stop"}\n'
    for torn in (
        b"\0" * 40,
        b"\0" * 40 + b"\n",
        b"\n",
        b"null\n",
        b"[" * 10**5 + b"\n",
        b"\xc3\n",
        whole[2][:-9],
        lacking,
    ):
        for later in (whole[2:], []):  # what stands behind a torn line counts for nothing
            assert finished_samples(b"".join([*whole[:2], torn, *later]), header) == {"p": p}, torn
    twice = {**q[0], "sample": 1}
    assert finished_samples(b"".join([*whole[:3], json.dumps(twice).encode() + b"\n", whole[3]]), header) == {"p": p}
    assert finished_samples(b"".join([whole[0], *whole]), header) == {"q": q}  # samples 0, 0, 1


def test_several_greedy_samples_are_one_sample(tmp_path):
    path = tmp_path / "s.jsonl"
    read_samples(write_samples(path, {"p": ["a"]}, temperature=0.0))
    with pytest.raises(InputError, match="temperature 0"):
        read_samples(write_samples(path, {"p": ["a"] * 16}, temperature=0.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, r: r.update({"class": [1]}), "line 2: 'class' must be a whole number from 0 or null"),
        (lambda h, r: r.update({"class": "0"}), "line 2: 'class' must be"),
        (lambda h, r: r.update({"class": -5}), "line 2: 'class' must be"),
        (lambda h, r: r.update({"class": None}), "'p', sample 0: verdict 'right' with class None"),
        (lambda h, r: r.update(verdict="no_answer"), "'p', sample 0: verdict 'no_answer' with class 0"),
        (lambda h, r: r.update(verdict=[]), "line 2: 'verdict' must be"),
        (lambda h, r: h.update(duplicates="7"), "'duplicates' must be"),
        (lambda h, r: h.update(duplicates=2), "counts 2 duplicates among 2 samples"),
        (lambda h, r: h.update(truncated=True), "'truncated' must be"),
        (lambda h, r: h.pop("checker"), "key 'checker' is missing"),
        (lambda h, r: h.pop("samples_sha256"), "key 'samples_sha256' is missing"),
        (lambda h, r: h.pop("keys_sha256"), "key 'keys_sha256' is missing"),
    ],
)
def test_scores_that_contradict_themselves(tmp_path, change, message):
    path = write_scores(tmp_path / "s.jsonl", {"p": ["right", "wrong"]})
    header, first, second = lines(path)
    change(header, first)
    write_lines(path, [header, first, second])
    with pytest.raises(InputError, match=r"s\.jsonl") as error:
        read_scores(path)
    assert message in str(error.value)


def test_scores_by_other_keys_than_the_problems_have_now(tmp_path):
    problems = write_problems(tmp_path / "p.jsonl", {"p": "0", "q": "0"})
    path = write_scores(tmp_path / "s.jsonl", {"p": ["right"], "q": ["wrong"]})
    matching_problems(path, *read_scores(path), problems)
    write_problems(problems, {"q": "1", "p": "0"})
    with pytest.raises(InputError, match=r"graded by other answer keys .* score the samples again"):
        matching_problems(path, *read_scores(path), problems)


def test_scores_know_their_verdicts(tmp_path):
    with pytest.raises(InputError, match=r"line 3: 'verdict' must be one of 'right'.*, not 'ok'"):
        read_scores(write_scores(tmp_path / "s.jsonl", {"p": ["right", "ok"]}))
