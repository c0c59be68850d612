"""Prompts: the tokens a problem becomes before the first new token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.tree import Finish, Ints

TEMPLATES = ("plain", "chat")
NAMED = 10  # problems in one message


def prompt_text(problem: str, settings: Mapping[str, Any]) -> str:
    """The words shown to the model: `settings["format"]` with the problem in place of `{problem}`."""
    text: str = settings["format"]
    return text.replace("{problem}", problem)


def prompts_of(
    problems: Sequence[Problem],
    settings: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerFast,
    context_window: int,
) -> list[Ints]:
    """The prompts of all problems as token ids, never truncated and all looked at before the first is used.

    Raises:
        InputError: the template is unknown or missing from the tokenizer; or prompts are over `max_tokens`, or leave
            no room for a single token of a response. Their problems are named.
    """
    prompts = [prompt_tokens(problem, settings, tokenizer) for problem in problems]
    room, limit = context_window - 1, settings.get("max_tokens")
    most = room if limit is None else min(limit, room)
    long = [f"{p.id} ({len(ids)} tokens)" for p, ids in zip(problems, prompts, strict=True) if len(ids) > most]
    if long:
        rule = f"prompt.max_tokens = {limit}" if most == limit else f"the context window of {context_window} less one"
        named = ", ".join(long[:NAMED]) + (f" and {len(long) - NAMED} more" if len(long) > NAMED else "")
        raise InputError(
            f"prompts over {rule}: problem {named}; they are never cut: raise the limit where the model allows it, or "
            "set these problems aside with `drop`"
        )
    return prompts


def prompt_tokens(problem: Problem, settings: Mapping[str, Any], tokenizer: PreTrainedTokenizerFast) -> Ints:
    """The prompt as token ids, of whatever length.

    `template: plain` encodes the text as it is (base models); `chat` wraps it in the tokenizer's chat template, with
    an optional `system` message. Worked `examples` stand before the problem, each as the problem's text would, and its
    answer; a blank line follows them in a plain text, and in a chat they are turns.

    Raises:
        InputError: the template is unknown or missing from the tokenizer.
    """
    template = settings["template"]
    text = prompt_text(problem.problem, settings)
    shown = [(prompt_text(each["problem"], settings), each["answer"]) for each in settings.get("examples", ())]
    if template == "plain":
        ids = tokenizer("".join(f"{asked}{answer}\n\n" for asked, answer in shown) + text)["input_ids"]
    elif template == "chat":
        if not tokenizer.chat_template:
            raise InputError(
                "prompt.template is 'chat', but this model's tokenizer has no chat template: choose template: plain, "
                "or add an explicit chat_template.jinja file to the model folder"
            )
        messages = [{"role": "system", "content": settings["system"]}] if settings.get("system") else []
        for asked, answer in shown:
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
        messages.append({"role": "user", "content": text})
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    else:
        raise InputError(f"prompt.template must be one of {', '.join(TEMPLATES)}, not {template!r}")
    return np.array(ids, dtype=np.int64)


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text up to the first stop string: a base model that goes on with a question of its own is cut there."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else text


def ended(text: str, finish: Finish, stops: Sequence[str]) -> tuple[str, Finish]:
    """What is read of a response, and how it ended: at its first stop string it would have stopped by itself."""
    read = cut_at_stop(text, stops)
    return read, finish if read == text else "stop"
