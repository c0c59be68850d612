import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from datpo.core import files
from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.core.problem import Problem, load_problems, save_problems
from datpo.core.seeds import seed
from datpo.evaluate import sample
from datpo.evaluate.sample import sample_file
from datpo.evaluate.samples import matching_problems, read_samples
from tests.conftest import PROMPT


def settings(**changes):
    return {
        "identity": {"scale": "test", "model": "small", "method": "base", "run": "base", "seed": 0},
        "benchmark": "easy",
        "domain": "moves",
        "prompt": PROMPT,
        "n": 4,
        "temperature": 1.0,
        "max_new_tokens": 40,
        "engine": "hf",
        "generation_batch": 16,
        "seed": 0,
        "precision": "float32",
        **changes,
    }


def run(folder, problems, checkpoint, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings(**changes)))
    sample_file(folder / "config.yaml", problems, checkpoint, folder / "work", folder / "samples.jsonl")
    header, *rows = read_jsonl(folder / "samples.jsonl")
    return header, rows


def test_rows_and_header(tmp_path, easy_problems, base_checkpoint):
    header, rows = run(tmp_path, easy_problems, base_checkpoint)
    ids = [problem.id for problem in load_problems(easy_problems)]
    assert [(row["problem"], row["sample"]) for row in rows] == [(i, s) for i in ids for s in range(4)]
    assert len({row["seed"] for row in rows}) == len(rows)
    assert header["kind"] == "samples"
    assert (header["n"], header["problems"]) == (4, len(ids))
    assert len(header["checkpoint"]) == 64
    assert {"torch", "transformers"} <= set(header["versions"])
    assert all(row["finish"] in ("stop", "length") for row in rows)
    assert any("\\boxed{" in row["text"] for row in rows)


def test_samples_do_not_depend_on_order_or_batch(tmp_path, easy_problems, base_checkpoint):
    _, rows = run(tmp_path / "one", easy_problems, base_checkpoint)
    save_problems(tmp_path / "turned.jsonl", load_problems(easy_problems)[::-1])
    _, turned = run(tmp_path / "two", tmp_path / "turned.jsonl", base_checkpoint, generation_batch=64)
    key = lambda row: (row["problem"], row["sample"])  # noqa: E731
    assert sorted(rows, key=key) == sorted(turned, key=key)


def test_an_interrupted_job_goes_on_where_it_stopped(tmp_path, easy_problems, base_checkpoint, monkeypatch):
    _, whole = run(tmp_path / "whole", easy_problems, base_checkpoint)
    asked = []
    real = sample.sample_problems

    def dies(engine, policy, problems, given):
        asked.extend(problem.id for problem in problems)
        if len(asked) > 8:
            raise KeyboardInterrupt
        return real(engine, policy, problems, given)

    monkeypatch.setattr(sample, "sample_problems", dies)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", easy_problems, base_checkpoint)
    assert not (tmp_path / "cut" / "samples.jsonl").exists()
    (partial,) = (tmp_path / "cut" / "work").iterdir()
    with partial.open("a") as handle:  # a problem that was being written when the job died
        handle.write(json.dumps({"problem": asked[8], "sample": 0}) + "\n" + '{"problem": "')
    done = set(asked[:8])
    asked.clear()
    monkeypatch.setattr(
        sample, "sample_problems", lambda e, p, q, s: (asked.extend(x.id for x in q), real(e, p, q, s))[1]
    )
    _, rows = run(tmp_path / "cut", easy_problems, base_checkpoint)
    assert rows == whole
    assert not done & set(asked)
    assert list((tmp_path / "cut" / "work").iterdir()) == []


def test_a_job_cut_off_at_any_byte_ends_in_the_same_samples(tmp_path, monkeypatch):
    policy = SimpleNamespace(
        model=SimpleNamespace(to=lambda device: None), tokenizer=None, context_window=9, end_tokens=()
    )
    policy.ending_at = lambda tokens: policy
    monkeypatch.setattr(sample, "load_policy", lambda model, precision: policy)
    monkeypatch.setattr(sample, "checkpoint_hash", lambda model: "0")
    monkeypatch.setattr(sample, "engine_versions", lambda name: {"torch": "1"})
    monkeypatch.setattr(sample, "prompts_of", lambda *given: [])
    fsync = SimpleNamespace(fsync=lambda descriptor: None, replace=files.os.replace)
    monkeypatch.setattr(files, "os", fsync)  # hundreds of jobs

    def drawn(engine, policy, problems, given):
        for problem in problems:
            if problem.id == "b" and not (tmp_path / "cut/samples.jsonl").exists():
                raise KeyboardInterrupt
        return [
            [
                {
                    "problem": p.id,
                    "sample": i,
                    "seed": seed(0, "easy", p.id, i),
                    "text": "½",
                    "tokens": 1,
                    "finish": "stop",
                }
                for i in range(2)
            ]
            for p in problems
        ]

    monkeypatch.setattr(sample, "sample_problems", drawn)
    save_problems(tmp_path / "problems.jsonl", [Problem(name, f"{name}?", "1") for name in ("a", "é", "b")])
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", tmp_path / "problems.jsonl", tmp_path, n=2, generation_batch=2)
    (partial,) = (tmp_path / "cut/work").iterdir()
    raw = partial.read_text().replace(r"\u00bd", "½").replace(r"\u00e9", "é").encode()  # as a second start writes it
    assert raw.count(b"\n") == 4
    (tmp_path / "cut/samples.jsonl").touch()
    ends = set()
    for cut in range(len(raw) + 1):
        partial.write_bytes(raw[:cut] + b"\0" * (cut % 3))
        run(tmp_path / "cut", tmp_path / "problems.jsonl", tmp_path, n=2, generation_batch=2)
        ends.add((tmp_path / "cut/samples.jsonl").read_bytes())
    assert len(ends) == 1
    read_samples(tmp_path / "cut/samples.jsonl")


def test_greedy_samples_are_one_sample(tmp_path, easy_problems, base_checkpoint):
    with pytest.raises(InputError, match="greedy samples are all the same"):
        run(tmp_path, easy_problems, base_checkpoint, temperature=0.0, n=16)


def test_new_tokens_give_way_to_the_context_window(tmp_path, easy_problems, base_checkpoint):
    _, rows = run(tmp_path, easy_problems, base_checkpoint, max_new_tokens=100_000, n=1)
    assert all(row["tokens"] < 400 for row in rows)


def test_partial_samples_are_never_taken_for_other_problems(tmp_path, easy_problems, base_checkpoint, monkeypatch):
    real = sample.sample_problems
    asked = []

    def dies(engine, policy, problems, given):
        asked.extend(problems)
        if len(asked) > 8:
            raise KeyboardInterrupt
        return real(engine, policy, problems, given)

    monkeypatch.setattr(sample, "sample_problems", dies)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", easy_problems, base_checkpoint)
    monkeypatch.setattr(sample, "sample_problems", real)
    old = load_problems(easy_problems)
    same_ids = [replace(p, problem=q.problem) for p, q in zip(old, old[::-1], strict=True)]
    save_problems(tmp_path / "other.jsonl", same_ids)
    header, rows = run(tmp_path / "cut", tmp_path / "other.jsonl", base_checkpoint)
    _, fresh = run(tmp_path / "fresh", tmp_path / "other.jsonl", base_checkpoint)
    assert rows == fresh
    with pytest.raises(InputError, match="with these ids but other texts"):
        matching_problems(tmp_path / "s.jsonl", header, rows, easy_problems)


def test_texts_are_cut_at_stop_strings_and_then_count_as_stopped(tmp_path, easy_problems, base_checkpoint):
    prompt = {**PROMPT, "stop": ["\n\nSo"]}
    _, cut = run(tmp_path / "cut", easy_problems, base_checkpoint, prompt=prompt, max_new_tokens=12)
    _, whole = run(tmp_path / "whole", easy_problems, base_checkpoint, max_new_tokens=12)
    assert any("\n\nSo" in row["text"] for row in whole)
    for ours, theirs in zip(cut, whole, strict=True):
        assert ours["text"] == theirs["text"].split("\n\nSo")[0]
        assert ours["finish"] == ("stop" if "\n\nSo" in theirs["text"] else theirs["finish"])
    assert {row["finish"] for row in whole} == {"stop", "length"}


def test_temperature_reaches_the_sampler(tmp_path, easy_problems, base_checkpoint):
    texts = []
    for temperature in (0.001, 1.5):
        _, rows = run(tmp_path / str(temperature), easy_problems, base_checkpoint, temperature=temperature)
        texts.append(len({(row["problem"], row["text"]) for row in rows}))
    assert texts[0] < 1.5 * 24 < texts[1]  # nearly one answer a problem when cold, nearly four when hot


def test_a_checkpoint_without_weights_is_named(tmp_path, easy_problems):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no checkpoint here"):
        run(tmp_path / "run", easy_problems, tmp_path / "empty")
