"""What a made-up step consists of, against the paper's tokens and against what follows by counting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from datpo.methods import load
from datpo.methods.base import Method
from datpo.plan.made_step import Shape, made_step, made_trees, mean_problems, solved_shares

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = yaml.safe_load((ROOT / "config/published.yaml").read_text())
SHAPE = Shape(
    prompt=150,
    length=PUBLISHED["table8"]["GRPO"] / 16,
    problems=16,
    solved=0.5,
    epochs=2,
    minibatch="units",
    minibatch_size=64,
    token_budget=16384,
    max_new_tokens=1024,
)


def method(name: str, **changed: Any) -> Method:
    return load(name, yaml.safe_load((ROOT / f"config/methods/{name}.yaml").read_text()) | changed)


@pytest.mark.parametrize(
    ("named", "published"),
    [
        (method("grpo"), PUBLISHED["table8"]["GRPO"]),
        (method("treerl"), PUBLISHED["table8"]["TreeRL"]),
        (method("attnrl"), PUBLISHED["table8"]["AttnRL"]),
        (method("datpo"), PUBLISHED["table8"]["DATPO"]),
        (method("treerl", roots=4, forks=3, siblings=4), PUBLISHED["table14"]["TreeRL (4,3,4)"][0]),
        (method("attnrl", roots=4, max_forks=3, siblings=4), PUBLISHED["table14"]["AttnRL (4,3,4)"][0]),
    ],
)
def test_tokens_of_a_question_agree_with_the_paper(named: Method, published: float) -> None:
    trees = made_trees(named, SHAPE, solved_shares(80), np.random.default_rng(0))
    assert np.mean([tree.generated_tokens for tree in trees]) == pytest.approx(published, rel=0.1)


def test_parallel_samples_by_counting() -> None:
    work = made_step(method("grpo"), SHAPE)
    assert (work.questions, work.roots, work.leaves, work.widest) == (16, 16, 16, 0)
    assert work.updates == 2 * 16 * 16 / 64
    assert work.trained == pytest.approx(2 * 16 * work.generated)  # every token twice
    assert work.scored <= work.trained  # questions whose samples are all alike have no signal
    assert work.packed > work.scored  # prompts come along


def test_blocks_are_trained_once_in_an_epoch_and_their_prefixes_come_along() -> None:
    work = made_step(method("datpo", adaptive=False), SHAPE)
    assert work.leaves == pytest.approx(52, abs=0.1)
    assert work.widest == pytest.approx(16 * 48, abs=2)
    assert work.updates == pytest.approx(2 * 16, abs=0.1)  # 64 blocks a question, 64 a mini-batch
    assert work.trained == pytest.approx(2 * 16 * work.generated)
    assert work.packed > 1.1 * work.scored


def test_paths_are_trained_whole() -> None:
    work = made_step(method("treerl"), SHAPE)
    assert work.leaves == pytest.approx(30)
    assert work.updates == 2 * np.ceil(16 * 30 / 64)
    assert work.trained == pytest.approx(2 * 16 * 30 * SHAPE.length, rel=0.1)
    assert work.packed < work.trained  # shared prefixes are run once


def test_harder_problems_grow_wider_trees_and_their_widest_is_known() -> None:
    hard, easy = (made_step(method("datpo"), replace(SHAPE, solved=solved)) for solved in (0.1, 0.9))
    assert hard.leaves > 2 * easy.leaves
    assert hard.widest == pytest.approx(16 * 48, abs=2)
    assert easy.widest == pytest.approx(16 * 48, abs=2)


def test_a_method_that_adapts_its_number_of_problems_does_so_over_the_steps() -> None:
    assert mean_problems(method("datpo"), SHAPE, 750) == 16
    assert mean_problems(method("attnrl"), SHAPE, 1) == 16
    later = mean_problems(method("attnrl"), SHAPE, 750)
    assert 16 < later < 24
    step = made_step(method("attnrl"), SHAPE)
    assert step.of(32).updates == 2 * step.updates
    assert step.of(32).generated == step.generated


def test_shares_of_solved_problems_have_their_mean() -> None:
    assert solved_shares(2) == [0.25, 0.75]
    for mean in (0.1, 0.3, 0.8):
        assert np.mean(solved_shares(2000, mean)) == pytest.approx(mean, rel=0.01)


def test_equal_shapes_give_equal_numbers() -> None:
    assert made_step(method("datpo"), SHAPE) == made_step(method("datpo"), SHAPE)
