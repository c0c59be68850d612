"""Small sample and score files for the tests."""

import json

from datpo.core.problem import Problem, questions_hash
from datpo.evaluate.samples import keys_hash, sample_seed

HEADER = {
    "kind": "samples", "version": 1, "scale": "tiny", "model": "m", "method": "grpo", "run": "grpo",
    "seed": 0,
    "benchmark": "b", "domain": "fake", "temperature": 1.0, "max_new_tokens": 64,
    "prompt": {"template": "plain", "format": "{problem}", "stop": []}, "sampling_seed": 0,
    "engine": "hf", "precision": "float32", "checkpoint": "sha256:0", "versions": {},
}  # fmt: skip


COUNTED = {"k": [1], "bootstrap": 2000, "seed": 0, "missing": "exclude", "runs": 1}


def write_counted(path, **settings):
    """The settings of the metrics, with these in place of the usual ones."""
    path.write_text(json.dumps({**COUNTED, **settings}), encoding="utf-8")
    return path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_problems(path, answers):
    rows = [{"id": id_, "problem": f"What is {id_}?", "answer": a, "level": 1} for id_, a in answers.items()]
    return write_lines(path, rows)


def questions(ids):
    return questions_hash([Problem(id_, f"What is {id_}?", "") for id_ in ids])


def keys(answers):
    return keys_hash([Problem(id_, "", answer) for id_, answer in answers.items()])


def write_samples(path, texts, finish="stop", **header):
    """`texts`: problem -> texts of its samples (None for a lost one)."""
    n = len(next(iter(texts.values())))
    header = {**HEADER, "n": n, "problems": len(texts), "questions": questions(texts), **header}
    rows = [
        {"problem": id_, "sample": i, "seed": sample_seed(header, id_, i), "text": text, "tokens": 3, "finish": finish}
        for id_, group in texts.items()
        for i, text in enumerate(group)
    ]
    return write_lines(path, [header, *rows])


def write_scores(path, verdicts, **header):
    """`verdicts`: problem -> verdicts of its samples, the keys all "0"; right is class 0 and wrong class 1."""
    n = len(next(iter(verdicts.values())))
    rows = []
    for id_, group in verdicts.items():
        for i, verdict in enumerate(group):
            number = {"right": 0, "wrong": 1}.get(verdict)
            answer = None if number is None else str(number)
            row = {"problem": id_, "sample": i, "verdict": verdict, "answer": answer, "class": number}
            rows.append({**row, "tokens": 3, "finish": "stop"})
    graded = {"checker": "fake", "truncated": "wrong", "duplicates": 0, "samples_sha256": "0"}
    graded |= {"keys_sha256": keys(dict.fromkeys(verdicts, "0")), "questions": questions(verdicts)}
    return write_lines(
        path, [{**HEADER, "kind": "scores", "n": n, "problems": len(verdicts), **graded, **header}, *rows]
    )
