"""Models and trees of chosen sizes, random throughout: what takes time does not depend on what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from datpo.core.problem import Problem
from datpo.core.tree import Branch, RolloutTree
from datpo.learn.minibatch import CreditedTree
from datpo.learn.policy import Policy
from datpo.methods import load
from datpo.methods.base import Method

END = 2
WORDS = ("so", "then", "we", "find", "that", "the", "sum", "of", "both", "is", "even")


@dataclass(frozen=True)
class Size:
    """A model's sizes."""

    name: str
    hidden: int
    layers: int
    heads: int
    groups: int
    inner: int
    vocabulary: int


TINY = Size("tiny", 96, 3, 6, 3, 256, 350)
ONE_M = Size("1M", 128, 4, 8, 4, 384, 1024)
HUNDRED_M = Size("100M", 768, 12, 12, 4, 2048, 32_000)
QWEN_3B = Size("3B", 2048, 36, 16, 2, 11_008, 151_936)  # as Qwen2.5-3B


def policy(size: Size, device: torch.device | str = "cpu") -> Policy:
    """A random model of this size, made where it is to lie."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.inner,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.groups,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=0,
        attn_implementation="datpo",
    )
    with torch.device(device):
        model = Qwen2ForCausalLM(config).eval()
    model.generation_config.eos_token_id = END
    return Policy(model, SimpleNamespace(eos_token_id=END))


def tree(
    roots: int,
    forks: int,
    siblings: int,
    prompt: int,
    lengths: tuple[int, int],
    rng: np.random.Generator,
    vocabulary: int,
) -> RolloutTree:
    """Base rollouts, each forked at `forks` places with `siblings` new branches; paths of `lengths` tokens.

    Forks stand evenly in the first part of a base rollout: three of them at 1/5, 2/5 and 3/5.
    """
    problem = Problem(f"made-{rng.integers(1 << 30)}", "", "")
    grown = RolloutTree(problem, rng.integers(3, vocabulary, prompt))
    grown = grown.grow([_branch(None, 0, int(rng.integers(*lengths)), rng, vocabulary) for _ in range(roots)])
    for root in range(roots):
        longest = grown.branches[root].stop
        starts = [(i + 1) * longest // (forks + 2) for i in range(forks)]
        new = [
            _branch(root, start, max(1, int(rng.integers(*lengths)) - start), rng, vocabulary)
            for start in starts
            for _ in range(siblings)
        ]
        grown = grown.grow(new)
    return grown


def _branch(parent: int | None, start: int, length: int, rng: np.random.Generator, vocabulary: int) -> Branch:
    return Branch(
        parent,
        start,
        rng.integers(3, vocabulary, length),
        np.log(rng.uniform(0.01, 0.2, length)),
        "stop",
        {"entropy": rng.uniform(0, 2, length)},
        float(rng.integers(2)),
        "right",
    )


def spoken(tokens: Sequence[int], shift: int = 0) -> str:
    """Words for tokens, with a full stop now and then: random weights know no tokenizer. Other words at each shift."""
    numbers = (int(token) + shift for token in tokens)
    return "".join(f" {WORDS[number % len(WORDS)]}{'.' if number % 17 == 0 else ''}" for number in numbers)


def with_credit(method: Method, trees: Sequence[RolloutTree], rng: np.random.Generator) -> list[CreditedTree]:
    """Random advantages, none of them zero: every unit is trained, so that the work depends on the shape alone."""
    credits = []
    for one in trees:
        of_blocks = method.unit == "blocks"
        shape = len(one.blocks) if of_blocks else (len(one.branches), len(one.blocks))
        units = tuple(range(len(one.blocks) if of_blocks else len(one.branches)))
        tokens = sum(len(block) for block in one.blocks) if of_blocks else sum(len(one.response(i)) for i in units)
        signs = rng.choice([-1.0, 1.0], len(one.branches))
        advantages = np.broadcast_to(signs[:, None], shape).copy() if not of_blocks else rng.choice([-1.0, 1.0], shape)
        credits.append(CreditedTree(one, advantages, units, tokens))
    return credits


def methods() -> dict[str, Method]:
    """One that trains blocks, one that trains leaf paths, one that samples in parallel."""
    return {
        "datpo": load(
            "datpo", {"roots": 4, "max_forks": 3, "max_siblings": 4, "alpha": [0.2, 0.0], "clip": [0.2, 0.2]}
        ),
        "treerl": load("treerl", {"roots": 4, "forks": 3, "rounds": 1, "siblings": 4, "clip": [0.2, 0.2]}),
        "grpo": load("grpo", {"roots": 16, "clip": [0.2, 0.28]}),
    }
