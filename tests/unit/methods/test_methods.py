import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.trees import branch, tree, tree_b

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.credit.advantages import group_normalised, of_leaves
from datpo.learn.loss import clipped_loss
from datpo.learn.minibatch import credited, gather, units_of
from datpo.methods import load, names
from datpo.search.budget import Progress

ROOT = Path(__file__).resolve().parents[3]
GRPO = {"roots": 4, "clip": [0.2, 0.28]}


def test_known_methods():
    assert {"attnrl", "datpo", "dr_grpo", "grpo", "treerl"} <= set(names())


def test_grpo_numbers_by_hand():
    # rewards 1 0 0 0: mean 1/4, population std sqrt(3)/4, sample std 1/2
    rewards = np.array([1.0, 0, 0, 0])
    assert group_normalised(rewards) == pytest.approx([1.7317, -0.5772, -0.5772, -0.5772], abs=1e-3)
    assert group_normalised(rewards, sample_std=True) == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-3)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_equal_rewards_give_zeros_and_no_nan(reward):
    assert group_normalised(np.full(4, reward)).tolist() == [0.0] * 4


def test_grpo_credit_is_each_leafs_own_on_a_fork_free_tree():
    grown = tree(*(branch(None, 0, n, r) for n, r in ((3, 1), (5, 0), (2, 0), (4, 0))))
    credit = load("grpo", GRPO).credit(grown, Progress(), np.zeros(4))
    assert np.diag(credit) == pytest.approx(group_normalised(grown.rewards_L))
    assert not (credit - np.diag(np.diag(credit))).any()


@pytest.mark.parametrize(
    ("aggregate", "weights", "normaliser"),
    [
        ("token_mean", [1, 1, 1], 2 + 6 + 4),
        ("sequence_mean", [1 / 2, 1 / 6, 1 / 4], 3),  # every response weighs the same, long or short
        ("constant", [1 / 10, 1 / 10, 1 / 10], 3),
        ("tree_mean", [1 / 12, 1 / 12, 1 / 12], 1),  # 2/12 + 6/12 + 4/12
    ],
)
def test_how_a_groups_losses_are_averaged(aggregate, weights, normaliser):
    # rewards 1 0 0: mean 1/3, population std sqrt(2)/3 = 0.4714
    right, wrong = (2 / 3) / (math.sqrt(2) / 3 + 1e-4), (1 / 3) / (math.sqrt(2) / 3 + 1e-4)
    method = load("grpo", {**GRPO, "aggregate": aggregate})
    grown = tree(branch(None, 0, 2, 1), branch(None, 0, 6, 0), branch(None, 0, 4, 0))
    credit = credited(method, grown, Progress(), np.zeros(3))
    batch = gather(method, [credit], units_of([credit]), longest_response=10)
    assert batch.normaliser == pytest.approx(normaliser)
    assert batch.shares[0].pull_B == pytest.approx([weights[0] * right, 0, 0])
    assert batch.shares[0].push_B == pytest.approx([0, weights[1] * wrong, weights[2] * wrong])


@pytest.mark.parametrize(
    ("clip", "loss"),
    [
        ("none", -(2 * 3.0 - 1 * 0.1)),  # r A, however far the ratio has gone
        ([0.2, 0.28], -(2 * 1.28 - 1 * 0.8)),
        ([0.2, 0.2], -(2 * 1.2 - 1 * 0.8)),
    ],
)
def test_clipping_by_hand(clip, loss):
    # a token with A = 2 whose ratio rose to 3, and one with A = -1 whose ratio fell to 0.1
    clip_range = load("grpo", {**GRPO, "clip": clip}).clip_range
    ratio, pull, push = (torch.tensor(x, dtype=torch.float64) for x in ([3.0, 0.1], [2.0, 0.0], [0.0, 1.0]))
    ours, _ = clipped_loss(ratio.log(), torch.zeros(2, dtype=torch.float64), pull, push, clip_range, 1.0)
    assert float(ours) == pytest.approx(loss)


def test_leaf_advantages_reach_all_blocks_of_the_path_and_no_other():
    grown = tree_b()
    spread = of_leaves(grown, np.arange(1.0, 6.0))
    for leaf in range(5):
        on_path = np.isin(np.arange(len(grown.blocks)), grown.path(leaf))
        assert (spread[leaf][on_path] == leaf + 1).all()
        assert not spread[leaf][~on_path].any()


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("grop", GRPO, "method 'grop' has no module src/datpo/methods/grop.py"),
        ("grpo", {**GRPO, "root": 4}, "has no number 'root'; it takes: roots, clip"),
        ("grpo", {"roots": 4}, "needs the number 'clip'"),
        ("grpo", {**GRPO, "roots": 0}, "roots must be at least 2"),
        ("grpo", {**GRPO, "clip": [1.2, 0.2]}, "clip must be"),
        ("grpo", {**GRPO, "aggregate": "mean"}, "aggregate must be one of token_mean"),
    ],
)
def test_bad_numbers_are_named(name, numbers, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace("[", r"\[")):
        load(name, numbers)


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("grpo", {"roots": 1}, "roots must be at least 2, not 1"),
        ("dr_grpo", {"roots": 1}, "roots must be at least 2, not 1"),
        ("treerl", {"siblings": 0}, "siblings must be at least 1, not 0"),
        ("treerl", {"rounds": 0}, "rounds must be at least 1, not 0"),
        ("attnrl", {"max_forks": 0}, "max_forks must be at least 1, not 0"),
        ("datpo", {"max_siblings": 0}, "max_siblings must be at least 1, not 0"),
        ("datpo", {"alpha": [1, 2, 3]}, "alpha must be two numbers, the first and the last, not [1, 2, 3]"),
        ("datpo", {"fork_rule": "sentences"}, "fork_rule must be one of random, fixed-seg, atb"),
        ("grpo", {"clip": [0.2]}, "clip must be two numbers, [low, high], or none, not [0.2]"),
    ],
)
def test_numbers_with_which_a_method_would_do_nothing_are_refused(name, number, said):
    usual = read_settings(ROOT / f"config/methods/{name}.yaml")
    with pytest.raises(InputError, match=re.escape(f"method {name!r}: {said}")):
        load(name, {**usual, **number})
