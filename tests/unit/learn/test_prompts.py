import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml

from datpo.core.engine import Request
from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.core.problem import Problem, load_problems, save_problems
from datpo.engines.hf import HFEngine
from datpo.evaluate import sample
from datpo.evaluate.verify import grade_all
from datpo.learn.policy import load_policy
from datpo.learn.prompts import cut_at_stop, ended, prompt_text, prompt_tokens, prompts_of
from datpo.learn.run import Run
from datpo.learn.state import RunState
from tests.unit.evaluate.test_sample import settings as sample_settings
from tests.unit.learn.test_trainer import settings as train_settings

PLAIN = {"template": "plain", "format": "{problem}\n\n", "max_tokens": 64}


class Letters:
    """A tokenizer of characters."""

    chat_template = None

    def __call__(self, text):
        return {"input_ids": [ord(c) for c in text]}


class Chat(Letters):
    chat_template = "a template"

    def apply_chat_template(self, messages, add_generation_prompt, return_dict):
        assert add_generation_prompt
        assert not return_dict
        text = "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"
        return [ord(c) for c in text]


def text_of(tokens):
    return "".join(map(chr, tokens))


def test_plain_text_is_encoded_as_it_is():
    assert text_of(prompt_tokens(Problem("a", "2+2?", "4"), PLAIN, Letters())) == "2+2?\n\n"


def test_braces_in_a_problem_stay():
    problem = Problem("a", r"Find $\frac{1}{2}$ of {problem}.", "4")
    assert prompt_text(problem.problem, PLAIN) == "Find $\\frac{1}{2}$ of {problem}.\n\n"


def test_chat_template_with_and_without_system_words():
    chat = {**PLAIN, "template": "chat", "format": "{problem}"}
    problem = Problem("a", "2+2?", "4")
    assert text_of(prompt_tokens(problem, chat, Chat())) == "<user>2+2?<assistant>"
    spoken = prompt_tokens(problem, {**chat, "system": "Think."}, Chat())
    assert text_of(spoken) == "<system>Think.<user>2+2?<assistant>"


def test_worked_examples_are_earlier_turns_of_a_chat_or_stand_before_a_plain_text():
    shown = {
        "format": "Q: {problem}\nA: ",
        "examples": [{"problem": "1+1?", "answer": "2"}, {"problem": "3?", "answer": "3"}],
    }
    problem = Problem("a", "2+2?", "4")
    plain = text_of(prompt_tokens(problem, {**PLAIN, **shown}, Letters()))
    assert plain == "Q: 1+1?\nA: 2\n\nQ: 3?\nA: 3\n\nQ: 2+2?\nA: "
    chat = {**PLAIN, **shown, "template": "chat", "format": "{problem}", "system": "Think."}
    spoken = text_of(prompt_tokens(problem, chat, Chat()))
    assert spoken == "<system>Think.<user>1+1?<assistant>2<user>3?<assistant>3<user>2+2?<assistant>"


def test_a_base_model_without_chat_template_is_an_error_naming_both_choices():
    with pytest.raises(InputError, match=r"template: plain.*explicit chat_template"):
        prompt_tokens(Problem("a", "?", "1"), {**PLAIN, "template": "chat"}, Letters())


def problems(*lengths):
    return [Problem(f"p{length}", "x" * length, "1") for length in lengths]


def lengths(limit, window, *asked):
    return [len(ids) for ids in prompts_of(problems(*asked), {**PLAIN, "max_tokens": limit}, Letters(), window)]


def test_prompts_over_the_limit_are_all_named_and_none_is_cut():
    assert lengths(64, 100, 62, 8) == [64, 10]
    with pytest.raises(
        InputError, match=r"over prompt.max_tokens = 64: problem p63 \(65 tokens\), p90 \(92 tokens\); th"
    ):
        lengths(64, 100, 63, 8, 90)


def test_a_prompt_leaves_room_for_a_token_in_the_context_window():
    assert lengths(None, 65, 62) == [64]
    assert lengths(99, 65, 62) == [64]
    for limit in (None, 99, 65):
        with pytest.raises(InputError, match=r"over the context window of 65 less one: problem p63 \(65 tokens\)"):
            lengths(limit, 65, 63)


def test_of_many_long_prompts_some_are_named_and_all_counted():
    with pytest.raises(InputError, match=r"p29 \(31 tokens\) and 5 more; they are never cut"):
        lengths(10, 100, *range(20, 35))


def test_unknown_template():
    with pytest.raises(InputError, match="must be one of plain, chat, not 'few'"):
        prompt_tokens(Problem("a", "?", "1"), {**PLAIN, "template": "few"}, Letters())


def test_a_model_that_goes_on_with_its_own_question_is_cut():
    text = "It is $\\boxed{12}$.\n\nUser: What is 3*3?\n\nAssistant: $\\boxed{9}$"
    used = cut_at_stop(text, ["\n\nUser:", "\nQuestion:"])
    assert used.endswith("$\\boxed{12}$.")
    assert grade_all("math", [(Problem("a", "?", "12"), used)])[0].verdict == "right"
    assert cut_at_stop("no stop here", ["\n\nUser:"]) == "no stop here"
    assert cut_at_stop("", []) == ""


def test_a_response_with_a_stop_string_ended_there():
    assert ended("4.\n\nUser: And", "length", ["\n\nUser:"]) == ("4.", "stop")
    assert ended("4. And then", "length", ["\n\nUser:"]) == ("4. And then", "length")
    assert ended("4.", "stop", []) == ("4.", "stop")


def test_only_the_response_is_searched_for_a_box():
    problem = Problem("a", "Put the answer in \\boxed{}. Example: \\boxed{5}.", "5")
    assert grade_all("math", [(problem, "I do not know.")])[0].verdict == "no_answer"


@pytest.fixture(scope="module")
def policy(base_checkpoint):
    return load_policy(base_checkpoint)


def test_stop_tokens_are_single_tokens_however_the_vocabulary_spells_them(policy):
    ends = policy.end_tokens
    space = policy.tokenizer.backend_tokenizer.encode(" ", add_special_tokens=False).ids
    stopped = policy.ending_at([policy.tokenizer.eos_token, ".\n\n", " "])
    paragraph = policy.tokenizer.backend_tokenizer.encode(".\n\n", add_special_tokens=False).ids
    assert stopped.end_tokens == ends | {*space, *paragraph}
    assert (len(space), len(paragraph), policy.end_tokens) == (1, 1, ends)
    assert stopped.ending_at(["7"]).end_tokens > stopped.end_tokens
    assert replace(stopped, model=policy.model).end_tokens == stopped.end_tokens


@pytest.mark.parametrize("text", ["<|im_end|>", "7 7", "\n\n"])
def test_a_stop_token_the_tokenizer_lacks_is_refused(policy, text):
    with pytest.raises(InputError, match=r"is not one token of this model.s tokenizer.*prompt\.stop"):
        policy.ending_at([text])


def test_a_stop_token_ends_a_response(policy):
    prompt = prompt_tokens(Problem("a", "Start at 5. Reach 7 with 1 of: +2 -3 +4.", "+2"), PLAIN, policy.tokenizer)
    requests = [Request(prompt, seed, 30) for seed in range(20)]
    stopped = policy.ending_at([".\n\n"])
    (paragraph,) = stopped.end_tokens - policy.end_tokens
    plain, short = (HFEngine(each, 20).sample(requests) for each in (policy, stopped))
    assert any(paragraph in each.tokens[:-1] for each in plain)
    for before, after in zip(plain, short, strict=True):
        first = np.flatnonzero(before.tokens == paragraph)[:1] + 1
        assert after.tokens.tolist() == before.tokens[: int(first[0]) if len(first) else None].tolist()
        assert after.finish == ("stop" if len(first) else before.finish)


def test_a_long_prompt_is_found_before_anything_is_sampled(base_checkpoint, tmp_path, monkeypatch):
    save_problems(tmp_path / "problems.jsonl", [*problems(5, 6), Problem("last", "7" * 70, "1")])
    asked = sample_settings(generation_batch=4, n=4)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(asked))
    monkeypatch.setattr(HFEngine, "sample", lambda *_: pytest.fail("sampled"))
    with pytest.raises(InputError, match=r"over prompt.max_tokens = 64: problem last \(\d+ tokens\)"):
        sample.sample_file(
            tmp_path / "config.yaml",
            tmp_path / "problems.jsonl",
            base_checkpoint,
            tmp_path / "work",
            tmp_path / "out.jsonl",
        )


def test_samples_end_at_stop_tokens(base_checkpoint, easy_problems, tmp_path):
    asked = sample_settings(prompt={**PLAIN, "stop_tokens": [".\n\n"]})
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(asked))
    sample.sample_file(
        tmp_path / "config.yaml", easy_problems, base_checkpoint, tmp_path / "work", tmp_path / "out.jsonl"
    )
    _, *rows = read_jsonl(tmp_path / "out.jsonl")
    assert any(row["text"].endswith(".\n\n") for row in rows)
    assert all(row["text"].count(".\n\n") <= 1 for row in rows)


def test_rollouts_end_at_the_stop_tokens_of_samples(base_checkpoint, easy_problems, tmp_path):
    def made(*stop_tokens):
        config = {**train_settings("grpo", {"steps": 1}), "prompt": {**PLAIN, "stop_tokens": stop_tokens}}
        return Run(config, load_problems(easy_problems), load_policy(base_checkpoint), tmp_path / "trees")

    run = made(".\n\n")
    ends = load_policy(base_checkpoint).ending_at([".\n\n"]).end_tokens
    assert set(run.rollouts.engine.end_tokens.tolist()) == run.policy.end_tokens == ends
    short, usual = (each.step(RunState())["response_length"] for each in (run, made()))
    assert short < usual / 1.5


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "generation_config.json", "tokenizer.json"])
def test_a_cut_off_checkpoint_is_refused(base_checkpoint, tmp_path, name):
    shutil.copytree(base_checkpoint, tmp_path / "cut")
    file = tmp_path / "cut" / name
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="not a whole checkpoint"):
        load_policy(tmp_path / "cut")


@pytest.mark.parametrize("content", ["[]", "null", '\ufeff{"eos_token_id": [0, 5]}', "[" * 100_000])
def test_a_generation_config_that_would_be_passed_over_is_refused(base_checkpoint, tmp_path, content):
    """It names the tokens that end a response."""
    shutil.copytree(base_checkpoint, tmp_path / "odd")
    (tmp_path / "odd/generation_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="not a whole checkpoint"):
        load_policy(tmp_path / "odd")
