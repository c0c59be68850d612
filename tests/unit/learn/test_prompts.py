import pytest

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate.verify import grade_all
from datpo.learn.prompts import cut_at_stop, prompt_text, prompt_tokens

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
    assert prompt_text(problem, PLAIN) == "Find $\\frac{1}{2}$ of {problem}.\n\n"


def test_chat_template_with_and_without_system_words():
    chat = {**PLAIN, "template": "chat", "format": "{problem}"}
    problem = Problem("a", "2+2?", "4")
    assert text_of(prompt_tokens(problem, chat, Chat())) == "<user>2+2?<assistant>"
    spoken = prompt_tokens(problem, {**chat, "system": "Think."}, Chat())
    assert text_of(spoken) == "<system>Think.<user>2+2?<assistant>"


def test_a_base_model_without_chat_template_is_an_error_naming_both_choices():
    with pytest.raises(InputError, match=r"template: plain.*explicit chat_template"):
        prompt_tokens(Problem("a", "?", "1"), {**PLAIN, "template": "chat"}, Letters())


def test_prompts_over_the_limit_are_named_and_never_cut():
    with pytest.raises(InputError, match=r"problem a: its prompt has 103 tokens, over prompt.max_tokens = 64"):
        prompt_tokens(Problem("a", "x" * 101, "1"), PLAIN, Letters())


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


def test_only_the_response_is_searched_for_a_box():
    problem = Problem("a", "Put the answer in \\boxed{}. Example: \\boxed{5}.", "5")
    assert grade_all("math", [(problem, "I do not know.")])[0].verdict == "no_answer"
