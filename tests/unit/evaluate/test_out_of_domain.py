"""Multiple choice over lm-evaluation-harness, for real: its tasks, our engine, a small model that knows one phrase."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from transformers import Qwen2Config, Qwen2ForCausalLM

from datpo.__main__ import main
from datpo.config import load_config, write_settings
from datpo.config_choice import NEXT_QUESTION, SHARED, TASKS, choice_settings, question_settings
from datpo.config_slices import sample_settings
from datpo.core.errors import InputError
from datpo.core.files import read_json, read_jsonl
from datpo.core.problem import load_problems, save_problems
from datpo.core.seeds import seed
from datpo.engines import build
from datpo.engines.hf import HFEngine
from datpo.evaluate import out_of_domain, sample
from datpo.evaluate.out_of_domain import DrawnSamples, check_same_mean, harness_says, write_prompts
from datpo.evaluate.samples import read_samples, read_scores
from datpo.learn.policy import Policy, save_policy
from datpo.learn.tokenizer import build_tokenizer

ROOT = Path(__file__).resolve().parents[3]
PHRASE = "Answer: The answer is ({})."
# What follows a token, and how likely: a letter A to D, or none; then the end, or the phrase once more.
NEXT = {
    ":": {" The": 1.0},
    " The": {" answer": 1.0},
    " answer": {" is": 1.0},
    " is": {" (": 0.9, " ?": 0.1},
    " (": {"A": 0.4, "B": 0.3, "C": 0.2, "D": 0.1},
    **{letter: {").": 1.0} for letter in "ABCD"},
    ").": {"<|end|>": 0.9, " The": 0.1},
    " ?": {"<|end|>": 1.0},
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2 whose layers do nothing, so that its next token depends on the last one alone, as `NEXT` says."""
    tokenizer = build_tokenizer([PHRASE.format(letter) for letter in "ABCD"] + [" ?"])
    tokenizer.chat_template = "User: {{ messages[-1]['content'] }}\nAssistant:"
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape = {"vocab_size": len(tokenizer), "num_key_value_heads": 2, "max_position_embeddings": 1024}
    config = Qwen2Config(
        **sizes, **shape, tie_word_embeddings=False, eos_token_id=tokenizer.eos_token_id, attn_implementation="datpo"
    )
    model = Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.model.norm.weight.fill_(1)
        model.lm_head.weight.fill_(-30)
        for place, (token, following) in enumerate(NEXT.items()):
            (this,) = tokenizer(token)["input_ids"]
            model.model.embed_tokens.weight[this, place] = 1  # becomes sqrt(16) = 4 in the norm
            for word, probability in following.items():
                (that,) = tokenizer(word)["input_ids"]
                model.lm_head.weight[that, place] = np.log(probability) / 4
    folder = tmp_path_factory.mktemp("choice") / "checkpoint"
    save_policy(Policy(model, tokenizer), folder)
    return folder


def rows(count: int = 12) -> list[dict[str, Any]]:
    """Questions with the keys A to D in turn."""
    asked = [(f"q{i}", f"What is {i} + 1?", _options(i), "ABCD"[i % 4], "sums") for i in range(count)]
    return [dict(zip(("id", "question", "options", "answer", "category"), each, strict=True)) for each in asked]


def _options(i: int) -> list[str]:
    wrong = [str(i + 2), str(i + 3), str(i + 4)]
    return [*wrong[: i % 4], str(i + 1), *wrong[i % 4 :]]


class Job:
    """The jobs of one benchmark, each run by its verb on settings as the workflow writes them."""

    def __init__(self, folder: Path, checkpoint: Path, task: str = "mmlu_pro", count: int = 12, **config: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.checkpoint = folder, checkpoint
        self.task = ROOT / TASKS / f"{task}.yaml"
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
        entry = {"task": task, "problems": {"path": str(folder / "rows.jsonl")}, "samples": 8, "count": count}
        evaluation = {"max_new_tokens": 32, **config.pop("evaluation", {})}
        self.config = load_config(
            ROOT, {"scale": "ci", "out_of_domain": {"own": entry}, "evaluation": evaluation, **config}
        )
        for name, settings in (
            ("questions", question_settings(self.config, "own")),
            ("sample", sample_settings(self.config, "ci", "base", "base", 0, "own")),
            ("metrics", choice_settings(self.config, "own")),
        ):
            write_settings(json.dumps(settings), folder / f"{name}.yaml")

    def prompts(self) -> None:
        self("out-of-domain-questions", config="questions.yaml", out="questions.jsonl")
        self("out-of-domain-prompts", questions="questions.jsonl", task=self.task, out="prompts.jsonl")

    def samples(self) -> list[dict[str, Any]]:
        files = {"config": "sample.yaml", "problems": "prompts.jsonl", "out": "samples.jsonl"}
        self("sample", model=self.checkpoint, work="work", **files)
        return read_samples(self.folder / "samples.jsonl")[1]

    def metrics(self) -> dict[str, Any]:
        files = {"questions": "questions.jsonl", "problems": "prompts.jsonl", "samples": "samples.jsonl"}
        self("out-of-domain", config="metrics.yaml", task=self.task, scores="scores.jsonl", out="metrics.json", **files)
        document: dict[str, Any] = read_json(self.folder / "metrics.json")
        return document

    def __call__(self, verb: str, **files: Path | str) -> None:
        options = [word for name, file in files.items() for word in (f"--{name}", str(self.folder / file))]
        assert main([verb, *options]) == 0


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Job:
    """Everything run once."""
    job = Job(tmp_path_factory.mktemp("jobs") / "done", checkpoint)
    job.prompts()
    job.samples()
    job.metrics()
    return job


def test_a_prompt_is_the_task_file_s_wording_of_a_question(done: Job) -> None:
    problem = load_problems(done.folder / "prompts.jsonl")[1]
    assert problem.problem == (
        'The following is a multiple choice question. Think step by step, and end with a line that says "The answer is '
        '(X)", where X is the letter of the right option.\n\n'
        "Question: What is 1 + 1?\nOptions:\n(A) 3\n(B) 2\n(C) 4\n(D) 5\n\nAnswer:"
    )
    assert (problem.id, problem.answer, problem.subject) == ("q1", "B", "sums")


def test_a_prompt_shows_a_question_s_words_whatever_they_look_like(tmp_path: Path) -> None:
    options = ["1066-10-14", "{{ answer }}", " 3", "null"]
    row = {"id": "1914-06-28", "question": "{% raw %}\n\tWhen?", "options": options, "answer": "A"}
    (tmp_path / "questions.jsonl").write_text(json.dumps({**row, "category": "1789-07-14"}))
    write_prompts(tmp_path / "questions.jsonl", ROOT / TASKS / "gpqa_diamond.yaml", tmp_path / "prompts.jsonl")
    (problem,) = load_problems(tmp_path / "prompts.jsonl")
    assert (problem.id, problem.subject) == ("1914-06-28", "1789-07-14")
    shown = "\n".join(f"({letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
    assert f"Question: {{% raw %}}\n\tWhen?\nOptions:\n{shown}\n\nAnswer:" in problem.problem


def test_all_eight_samples_are_kept_each_with_its_own_seed(done: Job) -> None:
    header, samples = read_samples(done.folder / "samples.jsonl")
    assert (header["n"], header["problems"], header["domain"], len(samples)) == (8, 12, "choice", 96)
    assert [row["seed"] for row in samples] == [seed(0, "own", f"q{i}", n) for i in range(12) for n in range(8)]
    assert len({row["seed"] for row in samples}) == 96
    assert all(len({row["text"] for row in samples if row["problem"] == f"q{i}"}) > 1 for i in range(12))


def test_scores_and_metrics_are_what_counting_by_hand_gives(done: Job) -> None:
    samples = read_jsonl(done.folder / "samples.jsonl")[1:]
    header, scores = read_scores(done.folder / "scores.jsonl")
    metrics = read_json(done.folder / "metrics.json")
    key = {row["id"]: row["answer"] for row in rows()}
    right = Counter()
    for drawn, score in zip(samples, scores, strict=True):
        letter = next(reversed(re.findall(r"\(([A-D])\)", drawn["text"])), None)
        assert (score["problem"], score["sample"], score["answer"]) == (drawn["problem"], drawn["sample"], letter)
        verdict = "no_answer" if letter is None else "right" if letter == key[drawn["problem"]] else "wrong"
        assert score["verdict"] == verdict
        assert score["class"] == (None if letter is None else "ABCD".index(letter))
        right[drawn["problem"]] += verdict == "right"
    average = sum(right.values()) / 96
    assert metrics["avg"]["value"] == pytest.approx(average)
    assert metrics["avg"]["low"] < average < metrics["avg"]["high"]
    # A model that says A to D with 0.4 to 0.1 whatever the question: a quarter of nine tenths is right.
    assert average == pytest.approx(0.225, abs=4 * np.sqrt(0.225 * 0.775 / 96))
    assert list(metrics["pass"]) == list(metrics["maj"]) == ["1", "2", "4", "8"]
    assert metrics["pass"]["1"]["value"] == pytest.approx(average)
    assert metrics["pass"]["8"]["value"] == sum(number > 0 for number in right.values()) / 12
    assert metrics["rates"]["no_answer"] == sum(row["verdict"] == "no_answer" for row in scores) / 96 > 0
    assert metrics["rates"]["duplicate"] > 0
    assert header["checker"].startswith("lm-eval 0.4")
    assert metrics["header"] == header


def test_samples_depend_on_seed_question_and_number_alone(tmp_path: Path, checkpoint: Path, done: Job) -> None:
    job = Job(tmp_path, checkpoint, evaluation={"generation_batch": 5})
    job.prompts()
    save_problems(tmp_path / "prompts.jsonl", load_problems(tmp_path / "prompts.jsonl")[::-1])
    name = lambda row: (row["problem"], row["sample"])  # noqa: E731
    assert sorted(job.samples(), key=name) == sorted(read_jsonl(done.folder / "samples.jsonl")[1:], key=name)
    first, again = read_json(done.folder / "metrics.json"), job.metrics()
    assert {row["problem"]: row["correct"] for row in again["per_problem"]} == {
        row["problem"]: row["correct"] for row in first["per_problem"]
    }


def test_an_interrupted_job_goes_on_where_it_stopped(
    tmp_path: Path, checkpoint: Path, done: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tmp_path, checkpoint, evaluation={"generation_batch": 32})
    job.prompts()
    asked: list[str] = []
    real = sample.sample_problems

    def dies(engine: Any, policy: Policy, problems: Any, settings: Any) -> Any:
        asked.extend(problem.id for problem in problems)
        if len(asked) > 4:
            raise KeyboardInterrupt
        return real(engine, policy, problems, settings)

    monkeypatch.setattr(sample, "sample_problems", dies)
    with pytest.raises(KeyboardInterrupt):
        job.samples()
    finished = asked[:4]
    asked.clear()
    monkeypatch.setattr(
        sample, "sample_problems", lambda e, p, q, s: (asked.extend(each.id for each in q), real(e, p, q, s))[1]
    )
    assert job.samples() == read_jsonl(done.folder / "samples.jsonl")[1:]
    assert len(asked) == 8
    assert not set(finished) & set(asked)


def test_a_text_that_was_cut_off_has_no_answer_unless_it_is_graded(tmp_path: Path, checkpoint: Path) -> None:
    found = {}
    for truncated in ("wrong", "graded"):
        # " The answer is (A).": the end token is the seventh
        job = Job(tmp_path / truncated, checkpoint, evaluation={"max_new_tokens": 6, "truncated": truncated})
        job.prompts()
        job.samples()
        found[truncated] = job.metrics()
    assert found["wrong"]["rates"]["truncated"] == found["graded"]["rates"]["truncated"] > 0.8
    assert found["wrong"]["rates"]["no_answer"] == 1
    assert found["wrong"]["avg"]["value"] == 0
    assert found["graded"]["avg"]["value"] > 0.1


def test_a_chat_template_wraps_the_whole_prompt(tmp_path: Path, checkpoint: Path, monkeypatch: Any) -> None:
    seen: list[str] = []

    class Listening(HFEngine):
        def sample(self, requests: Any, keep: bool = False) -> Any:
            seen.extend(self.policy.decode(request.context) for request in requests)
            return super().sample(requests, keep)

    monkeypatch.setattr(build, "HFEngine", Listening)
    for template in ("plain", "chat"):
        job = Job(tmp_path / template, checkpoint, prompt={"template": template}, task="gpqa_diamond", count=1)
        job.prompts()
        job.samples()
        job.metrics()
    prompt = load_problems(tmp_path / "chat/prompts.jsonl")[0].problem
    assert seen == [prompt] * 8 + [f"User: {prompt}\nAssistant:"] * 8


def test_responses_end_before_a_next_question(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job(tmp_path, checkpoint, prompt={"stop": ["\nProblem:"]})
    settings = yaml.safe_load((tmp_path / "sample.yaml").read_text())
    assert settings["prompt"]["stop"] == ["\nProblem:", NEXT_QUESTION]
    shared = (ROOT / TASKS / SHARED).read_text()
    assert f"until: [{json.dumps(NEXT_QUESTION)}]" in shared
    job.prompts()
    job.samples()
    lines = read_jsonl(tmp_path / "samples.jsonl")
    lines[0]["prompt"]["stop"] = []
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(AssertionError):
        job.metrics()
    assert "question 'q0': its samples were drawn for another prompt or cut at other texts" in capsys.readouterr().err


def answers(count: int = 3) -> dict[str, list[str]]:
    return {f"q{i}": ["The answer is (A).", "The answer is (B).", "no idea"] for i in range(count)}


def test_the_harness_counts_every_sample_in_its_order(tmp_path: Path, checkpoint: Path) -> None:
    job = Job(tmp_path, checkpoint, count=3)
    job.prompts()
    known = {problem.id: problem for problem in load_problems(tmp_path / "prompts.jsonl")}
    texts = answers()
    mean, letters = harness_says(job.task, tmp_path / "questions.jsonl", known, texts, [NEXT_QUESTION])
    assert letters == {f"q{i}": ["A", "B", ""] for i in range(3)}
    assert mean == pytest.approx(2 / 9)  # the keys are A, B and C


def test_another_prompt_or_number_of_samples_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    job = Job(tmp_path, checkpoint, count=3)
    job.prompts()
    known = {problem.id: problem for problem in load_problems(tmp_path / "prompts.jsonl")}
    changed = {**known, "q1": known["q0"]}
    with pytest.raises(InputError, match="question 'q1': its samples were drawn for another prompt"):
        harness_says(job.task, tmp_path / "questions.jsonl", changed, answers(), [NEXT_QUESTION])
    with pytest.raises(InputError, match="question 'q3': the harness does not ask for all"):
        harness_says(job.task, tmp_path / "questions.jsonl", known, answers(4), [NEXT_QUESTION])
    with pytest.raises(InputError, match="question 'q2': the harness asks for more samples"):
        harness_says(job.task, tmp_path / "questions.jsonl", known, answers(2), [NEXT_QUESTION])
    for ask in (DrawnSamples.loglikelihood, DrawnSamples.loglikelihood_rolling):
        with pytest.raises(NotImplementedError, match="no likelihoods"):
            ask(DrawnSamples(known, answers(), []), [])


def test_means_that_differ_are_refused(
    done: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_same_mean(0.1 + 0.2, 0.3, "file")
    with pytest.raises(InputError, match=r"finds avg 0\.25 where we count 0\.5"):
        check_same_mean(0.25, 0.5, "samples.jsonl")
    real = harness_says

    def first_only(*given: Any) -> Any:
        mean, letters = real(*given)
        return mean, {name: [group[0]] * len(group) for name, group in letters.items()}

    monkeypatch.setattr(out_of_domain, "harness_says", first_only)
    before = (done.folder / "metrics.json").read_bytes()
    with pytest.raises(AssertionError):
        done.metrics()
    assert "some samples were lost between the two" in capsys.readouterr().err
    assert (done.folder / "metrics.json").read_bytes() == before


def graded(tmp_path: Path, done: Job, change: Callable[[list[dict[str, Any]]], Any]) -> int:
    """The exit code of grading the samples after a change in their file."""
    lines = read_jsonl(done.folder / "samples.jsonl")
    change(lines)
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = {"config": "metrics.yaml", "questions": "questions.jsonl", "problems": "prompts.jsonl"}
    files = {option: done.folder / name for option, name in names.items()}
    files |= {option: tmp_path / f"{option}.jsonl" for option in ("samples", "scores", "out")} | {"task": done.task}
    return main(["out-of-domain", *(word for option, file in files.items() for word in (f"--{option}", str(file)))])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[3].update(text=None), "question 'q0' has lost a sample"),
        (lambda lines: lines[0].pop("prompt"), "'prompt' is missing"),
        (lambda lines: lines[0]["prompt"].pop("stop"), "its header does not tell the `stop` of its `prompt`"),
    ],
)
def test_samples_that_cannot_be_graded_are_named(
    tmp_path: Path, done: Job, capsys: pytest.CaptureFixture[str], change: Any, said: str
) -> None:
    assert graded(tmp_path, done, change) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
