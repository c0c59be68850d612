"""Fixtures shared by all tests."""

from __future__ import annotations

import pytest
import torch
import yaml

from datpo.core.problem import save_problems
from datpo.data.moves import make_problems
from datpo.learn.pretrain import pretrain

torch.set_num_threads(1)  # the same bits on every machine, and none of the fights of two busy cores

PRETRAIN = {
    "seed": 0,
    "steps": 80,
    "tokens_per_step": 1200,
    "levels": [1, 2],
    "curriculum": 0.2,
    "aimless": 0.5,
    "learning_rates": {"matrices": 0.02, "rest": 0.01},
    "cooldown": 0.3,
    "model": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
    },
    "state_every": 1000,
}
PROMPT = {"template": "plain", "format": "{problem}\n\n", "max_tokens": 64}


@pytest.fixture(scope="session")
def base_checkpoint(tmp_path_factory):
    """A model that has read a few easy puzzles: it speaks the format and is sometimes right."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "config.yaml").write_text(yaml.safe_dump({"pretrain": PRETRAIN, "prompt": PROMPT}))
    pretrain(folder / "config.yaml", folder / "checkpoint", folder / "work")
    return folder / "checkpoint"


@pytest.fixture(scope="session")
def easy_problems(tmp_path_factory):
    """A file of easy puzzles."""
    path = tmp_path_factory.mktemp("problems") / "train.jsonl"
    save_problems(path, make_problems(24, [1, 2], 5, "train", "training"))
    return path
