"""The questions of the tiny scale: well made, without a hint in the letters, and short enough for the tiny model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from string import ascii_uppercase as LETTERS
from types import SimpleNamespace

import pytest
import yaml

from datpo.core.files import read_jsonl
from datpo.core.problem import Problem, load_problems
from datpo.data.choices import Question, fetch_questions, load_questions, stratified
from datpo.evaluate.out_of_domain import write_prompts
from datpo.learn.pretrain import make_tokenizer

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "workflow/out_of_domain/questions/tiny.jsonl"
WINDOW = 512  # positions that a model needs to be asked these questions and to answer in 64 tokens
NEW_TOKENS = 64


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return load_questions(FILE)


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Problem]:
    out = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    write_prompts(FILE, ROOT / "workflow/out_of_domain/mmlu_pro.yaml", out)
    return {problem.id: problem for problem in load_problems(out)}


def test_there_are_48_and_the_reader_takes_them_as_they_are(questions: list[Question], tmp_path: Path) -> None:
    source = {"problems": {"path": str(FILE)}, "count": 48, "stratified": None, "seed": 0}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(source))
    fetch_questions(tmp_path / "config.yaml", tmp_path / "questions.jsonl")
    assert read_jsonl(tmp_path / "questions.jsonl") == read_jsonl(FILE)
    assert len({question.id for question in questions}) == len({question.question for question in questions}) == 48
    assert {len(question.options) for question in questions} == {4, 5, 6, 7, 8, 10}
    assert all(question.id.startswith(f"{question.category}-") for question in questions)


def test_whoever_always_says_one_letter_is_right_as_often_as_whoever_guesses(questions: list[Question]) -> None:
    """Of the questions with m options, each of the m letters is the right one equally often."""
    for m in {len(question.options) for question in questions}:
        right = Counter(question.answer for question in questions if len(question.options) == m)
        assert set(right) == set(LETTERS[:m]) and len(set(right.values())) == 1, (m, right)


def test_categories_are_uneven_so_that_a_subset_has_to_weigh_them(questions: list[Question]) -> None:
    sizes = Counter(question.category for question in questions)
    assert sizes == {"nature": 14, "home": 10, "words": 8, "places": 7, "order": 6, "matter": 3}
    half = Counter(question.category for question in stratified(questions, 24, 0, "tiny"))
    # 7, 5, 4, 3½, 3, 1½: one is left over, and of equal remainders matter comes before places
    assert half == {"nature": 7, "home": 5, "words": 4, "places": 3, "order": 3, "matter": 2}


def test_prompts_in_the_words_of_the_task_fit_a_window_of_512_with_their_answers(prompts: dict[str, Problem]) -> None:
    prompt = yaml.safe_load((ROOT / "config/scales/tiny.yaml").read_text())["prompt"]
    tokenizer = make_tokenizer(SimpleNamespace(seed=0), prompt)
    lengths = {name: len(tokenizer(problem.problem)["input_ids"]) for name, problem in prompts.items()}
    assert len(lengths) == 48
    assert max(lengths.values()) + NEW_TOKENS <= WINDOW, lengths


def test_a_prompt_shows_question_and_options_and_not_which_is_right(
    questions: list[Question], prompts: dict[str, Problem]
) -> None:
    for question in questions:
        shown = prompts[question.id].problem
        assert f"Question: {question.question}\nOptions:\n(A) {question.options[0]}\n" in shown
        assert shown.endswith(f"({LETTERS[len(question.options) - 1]}) {question.options[-1]}\n\nAnswer:")
        assert prompts[question.id].answer == question.answer
