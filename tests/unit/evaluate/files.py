"""Small sample and score files for the tests."""

import json

from datpo.core.problem import Problem, questions_hash

HEADER = {
    "kind": "samples", "version": 1, "scale": "tiny", "model": "m", "method": "grpo", "run": "grpo",
    "seed": 0,
    "benchmark": "b", "domain": "fake", "temperature": 1.0, "max_new_tokens": 64, "prompt": "plain",
    "engine": "hf", "checkpoint": "sha256:0", "versions": {},
}  # fmt: skip


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_problems(path, answers):
    rows = [{"id": id_, "problem": f"What is {id_}?", "answer": a, "level": 1} for id_, a in answers.items()]
    return write_lines(path, rows)


def questions(ids):
    return questions_hash([Problem(id_, f"What is {id_}?", "") for id_ in ids])


def write_samples(path, texts, finish="stop", **header):
    """`texts`: problem -> texts of its samples (None for a lost one)."""
    n = len(next(iter(texts.values())))
    rows = [
        {"problem": id_, "sample": i, "seed": i, "text": text, "tokens": 3, "finish": finish}
        for id_, group in texts.items()
        for i, text in enumerate(group)
    ]
    return write_lines(
        path, [{**HEADER, "n": n, "problems": len(texts), "questions": questions(texts), **header}, *rows]
    )


def write_scores(path, verdicts, classes=None, **header):
    """`verdicts`: problem -> verdicts of its samples; unless given, right is class 0 and wrong class 1."""
    n = len(next(iter(verdicts.values())))
    rows = []
    for id_, group in verdicts.items():
        for i, verdict in enumerate(group):
            number = {"right": 0, "wrong": 1}.get(verdict) if classes is None else classes[id_][i]
            answer = None if number is None else str(number)
            row = {"problem": id_, "sample": i, "verdict": verdict, "answer": answer, "class": number}
            rows.append({**row, "tokens": 3, "finish": "stop"})
    return write_lines(
        path,
        [
            {**HEADER, "kind": "scores", "n": n, "problems": len(verdicts), "questions": questions(verdicts), **header},
            *rows,
        ],
    )
