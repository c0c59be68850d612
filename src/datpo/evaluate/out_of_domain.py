"""Multiple-choice benchmarks over lm-evaluation-harness, with every sample of ours kept.

Left to itself the harness draws a question's samples as clones of one request, often from one seed, and keeps the
first. So it is used for what it is good at: its task files word the prompts (`write_prompts`), read the letters and
average (`grade_choices`). In between the samples are drawn like those of every other benchmark (`evaluate.sample`):
each has its own seed, the batch does not matter, an interrupted job goes on, and grading again draws nothing again.

What the harness found is written in the project's own files and counted by the project's own functions; both means must
be the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.task import Task
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import Row, write_json, write_jsonl
from datpo.core.problem import Problem, save_problems
from datpo.data.choices import load_questions
from datpo.evaluate.metrics import benchmark_metrics
from datpo.evaluate.samples import by_problem, matching_problems, read_samples, scores_header

Texts = Mapping[str, Sequence[str]]  # question id -> the texts of its samples, in their order


def write_prompts(questions: Path, task: Path, out: Path) -> None:
    """Write the questions as problems whose texts are the whole prompts, in the words of the harness's task file.

    Args:
        questions: a file that `fetch_questions` wrote.
        task: workflow/out_of_domain/TASK.yaml.
        out: problems, JSON Lines.

    Raises:
        InputError: the questions are not whole.
    """
    asked = {question.id: question for question in load_questions(questions)}
    ours = _harness_task(task, questions, samples=1)
    ours.build_all_requests()
    prompts = {request.doc["id"]: request.args[0] for request in ours.instances}
    source = f"out_of_domain/{task.stem}"
    save_problems(
        out,
        [
            Problem(name, prompts[name], question.answer, subject=question.category or None, source=source)
            for name, question in asked.items()
        ],
    )


def grade_choices(
    config: Path, task: Path, questions: Path, problems: Path, samples: Path, scores: Path, out: Path
) -> None:
    """Let the harness read the letter of every sample, and count what is right.

    A sample cut off by the token limit has no final answer, even with a letter in its text; with `truncated: graded` it
    is read like the others.

    Args:
        config: YAML with `truncated`, `k`, `bootstrap`, `seed`, and what else `benchmark_metrics` takes.
        task: workflow/out_of_domain/TASK.yaml.
        questions: a file that `fetch_questions` wrote.
        problems: the prompts that `write_prompts` made of them.
        samples: a samples file drawn for these prompts.
        scores: a verdict for each sample, in the form that `score` writes.
        out: the metrics as JSON, in the form that `metrics` writes.

    Raises:
        InputError: an incomplete file, files that do not belong together, or means that differ.
    """
    settings = read_settings(config)
    header, rows = read_samples(samples)
    known = matching_problems(samples, header, rows, problems)
    groups = by_problem(rows)
    if lost := [name for name, group in groups.items() if any(row["text"] is None for row in group)]:
        raise InputError(f"{samples}: question {lost[0]!r} has lost a sample; delete the file to draw them again")
    if "stop" not in header["prompt"]:
        raise InputError(
            f"{samples}: its header does not tell the `stop` of its `prompt`; delete it to draw them again"
        )
    graded = settings["truncated"] == "graded"
    texts = {
        name: [row["text"] if graded or row["finish"] == "stop" else "" for row in group]
        for name, group in groups.items()
    }
    mean, letters = harness_says(task, questions, known, texts, header["prompt"]["stop"])
    scored = [
        _score(row, letter, known[name].answer)
        for name, group in groups.items()
        for row, letter in zip(group, letters[name], strict=True)
    ]
    checker = f"lm-eval {version('lm-eval')}, task {task.stem}"
    whole_header = scores_header(header, rows, samples, known, checker, settings["truncated"])
    counted = benchmark_metrics(settings, scored, known, whole_header)
    check_same_mean(mean, counted["avg"]["value"], str(samples))
    write_jsonl(scores, [whole_header, *scored])
    write_json(out, {"header": whole_header, **counted})


def harness_says(
    task: Path, questions: Path, known: Mapping[str, Problem], texts: Texts, stops: Sequence[str]
) -> tuple[float, dict[str, list[str]]]:
    """The harness's own mean over all samples, and the letters it read in each question's, "" for none."""
    (samples,) = {len(of_one) for of_one in texts.values()}
    tasks = {task.stem: _harness_task(task, questions, samples)}
    said: Any = evaluate(DrawnSamples(known, texts, stops), {"tasks": tasks}, bootstrap_iters=0)
    letters = {row["doc"]["id"]: list(row["filtered_resps"][0]) for row in said["samples"][task.stem]}
    return float(said["results"][task.stem]["avg,letters"]), letters


def check_same_mean(harness: float, ours: float, place: str) -> None:
    """Refuse numbers that the harness and we do not agree on.

    Raises:
        InputError: the two means differ by more than rounding.
    """
    if not math.isclose(harness, ours, rel_tol=0, abs_tol=1e-9):
        raise InputError(
            f"{place}: lm-evaluation-harness finds avg {harness} where we count {ours}; some samples were lost between "
            "the two, and neither number is to be trusted"
        )


class DrawnSamples(LM):  # type: ignore[misc]
    """A language model that answers the harness with samples that were drawn before, each of them once."""

    def __init__(self, known: Mapping[str, Problem], texts: Texts, stops: Sequence[str]) -> None:
        super().__init__()
        self.known, self.texts, self.stops = known, texts, stops

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """The next sample of each request's question.

        Raises:
            InputError: another prompt, another end of a response, or more or fewer requests than there are samples.
        """
        left = {name: list(texts) for name, texts in self.texts.items()}
        answers = []
        for request in requests:
            name, (prompt, wanted) = request.doc["id"], request.args
            if name not in left or not left[name]:
                raise InputError(f"question {name!r}: the harness asks for more samples than were drawn")
            if prompt != self.known[name].problem or not set(wanted["until"]) <= set(self.stops):
                raise InputError(
                    f"question {name!r}: its samples were drawn for another prompt or cut at other texts than the task "
                    "file says now; delete the samples to draw them again"
                )
            answers.append(left[name].pop(0))
        if over := [name for name, texts in left.items() if texts]:
            raise InputError(f"question {over[0]!r}: the harness does not ask for all samples that were drawn")
        return answers

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Not to be had from texts."""
        raise NotImplementedError("samples have no likelihoods; these tasks are of the type generate_until")

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Not to be had from texts."""
        raise NotImplementedError("samples have no likelihoods; these tasks are of the type generate_until")


def _harness_task(task: Path, questions: Path, samples: int) -> Task:
    """A task file over our questions; in a group, since the harness lets a group change its tasks' settings."""
    found = TaskManager(include_path=task.parent, include_defaults=False, metadata={"questions": str(questions)})
    group = {"group": "out_of_domain", "task": [{"task": task.stem, "repeats": samples}]}
    return found.load([group])["tasks"][task.stem]


def _score(row: Row, letter: str, key: str) -> Row:
    verdict = "no_answer" if not letter else "right" if letter == key else "wrong"
    return {
        "problem": row["problem"],
        "sample": row["sample"],
        "verdict": verdict,
        "answer": letter or None,
        "class": LETTERS.index(letter) if letter else None,
        "tokens": row["tokens"],
        "finish": row["finish"],
    }
