import numpy as np
import pytest
from tests.trees import branch, tree, tree_b

from datpo.core.errors import InputError
from datpo.credit.advantages import group_normalised, of_leaves
from datpo.methods import load, names
from datpo.search.budget import Progress

GRPO = {"roots": 4, "clip": [0.2, 0.28]}


def test_known_methods():
    assert {"grpo", "datpo"} <= set(names())


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
        ("grpo", {**GRPO, "roots": 0}, "roots must be at least 1"),
        ("grpo", {**GRPO, "clip": [1.2, 0.2]}, "clip must be"),
        ("grpo", {**GRPO, "aggregate": "mean"}, "aggregate must be one of token_mean"),
    ],
)
def test_bad_numbers_are_named(name, numbers, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace("[", r"\[")):
        load(name, numbers)
