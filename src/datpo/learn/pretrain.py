"""The base model of the tiny scale: a small transformer that has read worked move puzzles.

Part of what it reads is aimless: feasible moves that take no heed of the target. So it learns well how to move
and less well where to, which leaves reinforcement learning something to elicit, as with a real base model.

The matrices inside the layers are trained by Muon, everything else by AdamW. The budget is counted in steps, and
the texts of a step depend on the seed and the step alone: the same settings give the same weights (on the same
kind of machine and one thread), however often the job was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from transformers.utils.logging import disable_progress_bar

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import whole_file, whole_folder
from datpo.core.seeds import generator, seed
from datpo.core.spent import drop_spent
from datpo.data.moves import LEVELS, Puzzle, draw_puzzle, solution, wander
from datpo.learn.muon import Muon
from datpo.learn.prompts import prompt_text
from datpo.learn.tokenizer import build_tokenizer
from datpo.progress import ProgressLines

CONTEXT = 512  # positions: the longest multiple-choice prompt, in this tokenizer, with its answer
WARMUP = 10  # steps over which the learning rates rise

Optimizers = tuple[torch.optim.Optimizer, ...]

disable_progress_bar()  # of writing weights: a job has one bar, its own


@dataclass(frozen=True)
class Recipe:
    """What is read, and how it is learnt: the `pretrain` section of a model's settings.

    Attributes:
        seed: of the first weights and of the corpus.
        steps: updates.
        tokens_per_step: about how many tokens one update reads, prompts included.
        levels: puzzle levels, easiest first.
        curriculum: share of the steps over which the levels come in, one after the other.
        aimless: share of the worked solutions that take no heed of the target.
        learning_rates: peak rates of `matrices` (Muon) and `rest` (AdamW).
        cooldown: share of the steps, at the end, over which both rates fall to zero.
        model: `hidden_size`, `num_hidden_layers`, … of a Qwen2 configuration.
        state_every: steps between two saved states.
    """

    seed: int
    steps: int
    tokens_per_step: int
    levels: list[int]
    curriculum: float
    aimless: float
    learning_rates: dict[str, float]
    cooldown: float
    model: dict[str, int]
    state_every: int


def pretrain(config: Path, out: Path, work: Path) -> None:
    """Train a base model and publish it as the folder `out`, in the format that transformers loads.

    A killed job continues from the state in `work` and ends with the weights it would have had.

    Args:
        config: YAML with the sections `pretrain` (a `Recipe`) and `prompt` (how a problem becomes a prompt).
        out: the checkpoint folder.
        work: the folder of the state; the state is removed at the end.

    Raises:
        InputError: a key of the recipe is missing or unknown, or a prompt and its response share a token.
    """
    settings = read_settings(config)
    recipe, prompt = _recipe(settings), settings["prompt"]
    tokenizer = make_tokenizer(recipe, prompt)
    model = new_model(recipe, tokenizer)
    optimizers = make_optimizers(model, recipe)
    state = work / f"pretrain-{_fingerprint(settings)}.pt"
    done = _load_state(state, model, optimizers)
    progress = ProgressLines("pretrain", recipe.steps, unit="step", done=done)
    for step in range(done, recipe.steps):
        token_NT, answer_from = read_texts(recipe, prompt, tokenizer, step)
        _set_rates(optimizers, recipe, step)
        loss = _update(model, optimizers, token_NT, answer_from)
        progress.advance(note=f"loss {loss:.3f}")
        if (step + 1) % recipe.state_every == 0:
            _save_state(state, step + 1, model, optimizers)
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    drop_spent([state], out)


def make_tokenizer(recipe: Recipe, prompt: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """A tokenizer that has each word, move and number of the puzzles as one token.

    Raises:
        InputError: the prompt's last token would also hold the beginning of a response.
    """
    rng = generator(recipe.seed, "pretrain", "tokenizer")
    drawn = [draw_puzzle(level, rng) for _ in range(300) for level in LEVELS]
    pairs = [(_prompt(puzzle, prompt), solution(puzzle, sequence)) for puzzle, sequence in drawn]
    tokenizer = build_tokenizer(question + answer for question, answer in pairs)
    question, answer = pairs[0]
    if tokenizer.encode(question) + tokenizer.encode(answer) != tokenizer.encode(question + answer):
        raise InputError("prompt.format must end in a line break: a prompt and its response would share a token")
    return tokenizer


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """An untrained model of the recipe's size, its first weights drawn from the seed."""
    torch.manual_seed(seed(recipe.seed, "pretrain", "weights"))
    special: dict[str, Any] = {
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    size: dict[str, Any] = {"vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, **recipe.model}
    model = Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, **special, **size))
    model.set_attn_implementation("eager")  # texts are short: a tenth faster than SDPA on a CPU
    model.generation_config = GenerationConfig(do_sample=True, **special)
    return model


def make_optimizers(model: Qwen2ForCausalLM, recipe: Recipe) -> Optimizers:
    """Muon for the matrices inside the layers; AdamW for embeddings, biases and norms."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    inside = {id(weight) for weight in matrices}
    rest = [weight for weight in model.parameters() if id(weight) not in inside]
    rates = recipe.learning_rates
    return (
        Muon(matrices, lr=rates["matrices"]),
        torch.optim.AdamW(rest, lr=rates["rest"], betas=(0.9, 0.98), weight_decay=0.0),
    )


def read_texts(
    recipe: Recipe, prompt: Mapping[str, Any], tokenizer: PreTrainedTokenizerFast, step: int
) -> tuple[Tensor, int]:
    """The texts of a step as tokens (texts N, tokens T), and the position their answers start at.

    They are all of one level, drawn among those the curriculum has reached. One level has one length, so
    nothing is padded.
    """
    rng = generator(recipe.seed, "pretrain", step)
    reached = (step + 1) / max(1.0, recipe.curriculum * recipe.steps) * len(recipe.levels)
    level = int(rng.choice(recipe.levels[: max(1, int(reached))]))
    offered, use = LEVELS[level]
    count = max(1, recipe.tokens_per_step // (15 + offered + 7 * use))  # by the tokens of one text
    questions: list[str] = []
    answers: list[str] = []
    while len(questions) < count:
        puzzle, sequence = draw_puzzle(level, rng)
        if puzzle.part != "training":
            continue
        if rng.random() < recipe.aimless:
            sequence = wander(puzzle, rng)
        questions.append(_prompt(puzzle, prompt))
        answers.append(solution(puzzle, sequence) + str(tokenizer.eos_token))
    question_NT, answer_NT = (torch.tensor(tokenizer(texts)["input_ids"]) for texts in (questions, answers))
    return torch.cat([question_NT, answer_NT], dim=1), question_NT.shape[1]


def _recipe(settings: Mapping[str, Any]) -> Recipe:
    try:
        return Recipe(**settings["pretrain"])
    except TypeError as error:
        raise InputError(f"pretrain: {str(error).removeprefix('Recipe.__init__() ')}") from None


def _prompt(puzzle: Puzzle, prompt: Mapping[str, Any]) -> str:
    return prompt_text(puzzle.text(), prompt)


def _update(model: Qwen2ForCausalLM, optimizers: Optimizers, token_NT: Tensor, answer_from: int) -> float:
    """One update on the answers; the loss before it, in nats per token."""
    hidden_NTD = model.model(input_ids=token_NT[:, :-1], use_cache=False).last_hidden_state
    logits_NTV = model.lm_head(hidden_NTD[:, answer_from - 1 :])
    loss = cross_entropy(logits_NTV.flatten(0, 1), token_NT[:, answer_from:].flatten())
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return float(loss.detach())


def _set_rates(optimizers: Optimizers, recipe: Recipe, step: int) -> None:
    """Both learning rates rise over the first steps, stay, and fall to zero over the last ones."""
    left = (recipe.steps - step) / max(1.0, recipe.cooldown * recipe.steps)
    share = min(1.0, (step + 1) / WARMUP, left)
    for optimizer, name in zip(optimizers, ("matrices", "rest"), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rates[name] * share


def _fingerprint(settings: Mapping[str, Any]) -> str:
    """Differs between settings, so that a state is never continued under others than its own."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _save_state(path: Path, step: int, model: Qwen2ForCausalLM, optimizers: Optimizers) -> None:
    with whole_file(path, "wb") as handle:
        parts = {"model": model.state_dict(), "optimizers": [each.state_dict() for each in optimizers]}
        torch.save({"step": step, **parts}, handle)


def _load_state(path: Path, model: Qwen2ForCausalLM, optimizers: Optimizers) -> int:
    """Continue from a saved state, if there is a whole one; the number of steps it has done."""
    if not path.is_file():
        return 0
    try:
        saved = torch.load(path, weights_only=True)
    except (RuntimeError, EOFError, OSError, ValueError, UnpicklingError) as error:
        print(f"{path}: damaged ({error}); pre-training starts again", file=sys.stderr)
        return 0
    model.load_state_dict(saved["model"])
    for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    return int(saved["step"])
