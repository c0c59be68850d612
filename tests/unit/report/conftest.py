"""Small metrics files and training logs whose table can be worked out by hand."""

import json
from pathlib import Path

import pytest
from matplotlib import pyplot

from datpo.evaluate.metrics import pass_at_k
from datpo.report.tables import table2
from tests.unit.evaluate.files import HEADER, keys, questions

# Right samples (of 4) of problems p0 and p1, by run and seed.
MOVES = {("base", 0): [0, 2], ("grpo", 0): [1, 3], ("grpo", 1): [2, 4]}
HARD = {("base", 0): [0, 1], ("grpo", 0): [2, 2], ("grpo", 1): [1, 3]}
PUBLISHED = """
table2:
  benchmarks: [MATH500, AMC23, Average]
  Model-A:
    Base: [[10.0, 60.0], [20.0, 70.0], [15.0, 65.0]]
    GRPO: [[30.0, 50.0], [40.0, 60.0], [35.0, 55.0]]
    DATPO: [[50.0, 90.0], [60.0, 90.0], [55.0, 90.0]]
  Model-B:
    Base: [[10.0, 60.0], [20.0, 70.0], [15.0, 65.0]]
    GRPO: [[30.0, 80.0], [40.0, 80.0], [35.0, 80.0]]
    DATPO: [[20.0, 90.0], [30.0, 90.0], [25.0, 90.0]]
"""


class Folder:
    """A results folder to fill."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.metrics: list[Path] = []
        self.logs: list[Path] = []
        self.published = root / "published.yaml"
        self.published.write_text(PUBLISHED)

    def add_metrics(
        self,
        correct,
        *,
        model="small",
        method="grpo",
        run=None,
        seed=0,
        benchmark="moves",
        n=4,
        ks=(1, 2, 4),
        settings=None,
        runs=None,
        **header,
    ) -> Path:
        run = run or method
        identity = {"scale": "tiny", "model": model, "method": method, "run": run, "seed": seed}
        names = [f"p{i}" for i in range(len(correct))]
        graded = {"checker": "moves 1", "truncated": "wrong", "duplicates": 0, "samples_sha256": "0"}
        graded |= {"keys_sha256": keys(dict.fromkeys(names, "0")), "questions": questions(names)}
        drawn = {**HEADER, **identity, "kind": "scores", "benchmark": benchmark, "n": n, "problems": len(correct)}
        counted = {"k": list(ks), "bootstrap": 2000, "seed": 0, "missing": "exclude", "runs": 1, **(settings or {})}
        elected = [float(2 * c > n) for c in correct]
        document = {
            "header": {**drawn, **graded, **header},
            "settings": counted,
            "n": n,
            "problems": len(correct),
            "avg": mean([c / n for c in correct]),
            "pass": {str(k): mean(pass_at_k([n] * len(correct), correct, k)) for k in ks},
            "maj": {str(k): mean(elected) for k in ks},
            "runs": {
                "count": counted["runs"],
                "n": n // counted["runs"],
                "avg": [],
                "pass": {},
                "maj": {},
                **(runs or {}),
            },
            "rates": {"truncated": 0.125, "no_answer": 0.0, "timeout": 0.0, "missing": 0.0, "duplicate": 0.0},
            "per_problem": [
                {"problem": name, "level": 1, "n": n, "correct": c, "maj": {str(k): value for k in ks}}
                for name, c, value in zip(names, correct, elected, strict=True)
            ],
        }
        folder = self.root / model / method / run / f"seed{seed}" / (f"at-{header['at']}" if "at" in header else "")
        path = folder / "metrics" / f"{benchmark}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        self.metrics.append(path)
        return path

    def add_log(self, *, model="small", method="grpo", run=None, seed=0, steps=10, **changed) -> Path:
        path = self.root / model / method / (run or method) / f"seed{seed}" / "metrics.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(log_row(step, **changed)) + "\n" for step in range(steps)))
        self.logs.append(path)
        return path


def mean(values):
    return {"value": sum(values) / len(values), "low": 0.0, "high": 1.0}


def log_row(step: int, **changed):
    """Tokens per question 100, 110, …; entropy 1.0, 0.9, … 0.1; 2 updates, 1,000 tokens and 6 s a step.

    Of all durations `steps` is spent in the second, `tokens` in the fourth and `updates` in the last of ten steps.
    """
    row = {"step": step, "reward": 0.1 * step, "zero_signal": 0.5 if step % 2 else 0.25, "updates": 2}
    row |= {"tokens_per_question": 100 + 10 * step, "ratio_max": 1.2, "clip_share": 0.01, "truncated": 0.0}
    row |= {"entropy": 1 - 0.1 * step, "response_length": 20.0, "total_tokens": 1000 * (step + 1)}
    row |= {"prompts": 4, "leaves": 16.0, "trained_tokens": 1500}
    row["reached"] = {1: ["steps"], 3: ["tokens"], 9: ["updates"]}.get(step, [])
    return row | {"total_updates": 2 * (step + 1), "seconds": 6.0 * (step + 1)} | changed


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def golden(folder) -> Folder:
    """Base (one seed) and GRPO (two) on `moves` (k = 4) and `moves_hard` (table_k = 2)."""
    for (method, seed), correct in MOVES.items():
        folder.add_metrics(correct, method=method, seed=seed)
    for (method, seed), correct in HARD.items():
        folder.add_metrics(correct, method=method, seed=seed, benchmark="moves_hard", table_k=2)
    folder.add_log(seed=0)
    folder.add_log(seed=1)
    return folder


@pytest.fixture
def make(tmp_path):
    """Writes the tables of a folder and says where they are."""

    def make(folder):
        out = tmp_path / "tables"
        table2(folder.metrics, folder.logs, folder.published, out)
        return out

    return make


@pytest.fixture
def drawn(monkeypatch):
    """The figures that a test draws, kept open to be read."""
    figures = []
    close = pyplot.close
    monkeypatch.setattr(pyplot, "close", figures.append)
    yield figures
    for figure in figures:
        close(figure)
