"""The base model of the tiny scale: a small transformer that has read worked move puzzles.

Half of what it reads is aimless: feasible moves that take no heed of the target. So it learns well how to move
and poorly where to, which leaves reinforcement learning something to elicit, as with a real base model.

The matrices inside the layers are trained by Muon (Jordan et al. 2024), everything else by AdamW. The budget is
counted in steps, and a step draws its texts from the seed and its own number: the same configuration gives the
same weights on one thread, however often the job was interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from datpo.core.files import whole_folder
from datpo.core.seeds import generator, seed
from datpo.data.moves import LEVELS, draw_puzzle, solution, wander
from datpo.learn.muon import Muon
from datpo.learn.tokenizer import build_tokenizer
from datpo.progress import ProgressLines

CONTEXT = 256  # positions: several times the longest puzzle with its answer


@dataclass(frozen=True)
class Recipe:
    """What is read, and how it is learnt.

    Attributes:
        seed: of the first weights and of the corpus.
        steps: updates.
        tokens_per_step: about how many tokens, prompts included, one update reads.
        levels: puzzle levels, easiest first.
        curriculum: share of the steps over which the levels come in, one after the other.
        aimless: share of the worked solutions that take no heed of the target.
        learning_rates: `matrices` (Muon) and `rest` (AdamW) at their peak.
        cooldown: share of the steps, at the end, over which both rates fall to zero.
        prompt_format: how a problem becomes a prompt; must end a paragraph.
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
    prompt_format: str
    model: dict[str, int]
    state_every: int


def pretrain(config: Path, out: Path, work: Path) -> None:
    """Train the base model of `config` and publish it as the folder `out`; continue from `work` if interrupted."""
    recipe = load_recipe(config)
    tokenizer = make_tokenizer(recipe)
    model = new_model(recipe, tokenizer)
    optimizers = make_optimizers(model, recipe)
    state = work / "pretrain.pt"
    done = _restore(state, recipe, model, optimizers)
    progress = ProgressLines("pretrain", recipe.steps, unit="step", done=done)
    for step in range(done, recipe.steps):
        loss = _update(model, optimizers, recipe, step, read_batch(recipe, tokenizer, step))
        progress.advance(note=f"loss {loss:.3f}")
        if (step + 1) % recipe.state_every == 0:
            _save_state(state, recipe, step + 1, model, optimizers)
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    state.unlink(missing_ok=True)


def make_tokenizer(recipe: Recipe) -> PreTrainedTokenizerFast:
    """A tokenizer that has each word, move and number of the puzzles as one token."""
    rng = generator(recipe.seed, "pretrain", "tokenizer")
    puzzles = (draw_puzzle(level, rng) for _ in range(300) for level in LEVELS)
    return build_tokenizer(
        recipe.prompt_format.format(problem=puzzle.text()) + solution(puzzle, sequence)
        for puzzle, sequence in puzzles
    )


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """An untrained model of the recipe's size, its first weights drawn from the seed."""
    torch.manual_seed(seed(recipe.seed, "pretrain", "weights"))
    ends = {
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        **ends,
        **recipe.model,
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=True, **ends)
    return model


def make_optimizers(model: Qwen2ForCausalLM, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers; AdamW for embeddings, biases and norms."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    inside = {id(weight) for weight in matrices}
    rest = [weight for weight in model.parameters() if id(weight) not in inside]
    rates = recipe.learning_rates
    return [
        Muon(matrices, lr=rates["matrices"]),
        torch.optim.AdamW(rest, lr=rates["rest"], betas=(0.9, 0.98), weight_decay=0.0),
    ]


def read_batch(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, step: int) -> tuple[torch.Tensor, int]:
    """The token ids of one step's texts (texts, tokens), and how many of each belong to its prompt.

    All texts of a step are of one level, hence of one length: nothing is padded.
    """
    rng = generator(recipe.seed, "pretrain", step)
    level = _level(recipe, step, rng)
    offered, use = LEVELS[level]
    prompts: list[str] = []
    answers: list[str] = []
    while len(prompts) < recipe.tokens_per_step // (15 + offered + 7 * use):
        puzzle, sequence = draw_puzzle(level, rng)
        if puzzle.part == "held_out":
            continue
        if rng.random() < recipe.aimless:
            sequence = wander(puzzle, rng)
        prompts.append(recipe.prompt_format.format(problem=puzzle.text()))
        answers.append(solution(puzzle, sequence) + tokenizer.eos_token)
    prompt_ids, answer_ids = (torch.tensor(tokenizer(texts)["input_ids"]) for texts in (prompts, answers))
    return torch.cat([prompt_ids, answer_ids], dim=1), prompt_ids.shape[1]


def _level(recipe: Recipe, step: int, rng: np.random.Generator) -> int:
    """A level drawn among those the curriculum has reached."""
    reached = (step + 1) / max(1.0, recipe.curriculum * recipe.steps) * len(recipe.levels)
    return int(rng.choice(recipe.levels[: max(1, int(reached))]))


def _update(model, optimizers, recipe: Recipe, step: int, batch: tuple[torch.Tensor, int]) -> float:
    """One update on the answers' tokens; the loss in nats per token."""
    ids, prompt = batch
    hidden = model.model(input_ids=ids[:, :-1]).last_hidden_state[:, prompt - 1 :]
    loss = torch.nn.functional.cross_entropy(model.lm_head(hidden).flatten(0, 1), ids[:, prompt:].flatten())
    loss.backward()
    left = (recipe.steps - step) / max(1.0, recipe.cooldown * recipe.steps)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * min(1.0, left, (step+1)/10)
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()
