"""Dr.GRPO by hand: no division by the standard deviation, none by the length."""

import numpy as np
import pytest
import torch
from tests.trees import branch, tree

from datpo.learn.loss import clipped_loss
from datpo.learn.minibatch import credited, gather, units_of
from datpo.methods import load
from datpo.search.budget import Progress

LONGEST = 8


def group(*rewards_and_lengths):
    return tree(*(branch(None, 0, length, reward) for reward, length in rewards_and_lengths))


GROUP = group((1, 3), (0, 5), (0, 2), (0, 4))


def test_advantage_is_the_reward_less_the_groups_mean():
    # mean 1/4
    advantage_LB = load("dr_grpo", {"roots": 4, "clip": [0.2, 0.2]}).credit(GROUP, Progress(), np.zeros(4))
    assert np.diag(advantage_LB).tolist() == [0.75, -0.25, -0.25, -0.25]
    assert np.count_nonzero(advantage_LB) == 4


def test_a_response_is_divided_by_the_longest_that_may_be_sampled_whatever_its_own_length():
    method = load("dr_grpo", {"roots": 4, "clip": [0.2, 0.2]})
    credit = credited(method, GROUP, Progress(), np.zeros(4))
    batch = gather(method, [credit], units_of([credit]), LONGEST)
    (share,) = batch.shares
    assert share.pull_B == pytest.approx([0.75 / 8, 0, 0, 0])
    assert share.push_B == pytest.approx([0, 0.25 / 8, 0.25 / 8, 0.25 / 8])
    assert batch.normaliser == 4
    # at ratio 1 the objective is (1/4) (3 x 0.75 - (5 + 2 + 4) x 0.25) / 8 = -0.5 / 32
    lengths = torch.tensor([3, 5, 2, 4])
    pull, push = (torch.as_tensor(x).repeat_interleave(lengths) for x in (share.pull_B, share.push_B))
    same = torch.zeros(14, dtype=torch.float64)
    loss, _ = clipped_loss(same, same, pull, push, method.clip_range, batch.normaliser)
    assert float(loss) == pytest.approx(0.5 / 32)


def test_part_of_a_group_is_averaged_over_that_part():
    method = load("dr_grpo", {"roots": 4, "clip": [0.2, 0.2]})
    credit = credited(method, GROUP, Progress(), np.zeros(4))
    batch = gather(method, [credit], units_of([credit])[:2], LONGEST)
    assert (batch.normaliser, batch.trained_tokens) == (2, 8)  # two responses of 3 and 5 tokens
    assert batch.shares[0].push_B == pytest.approx([0, 0.25 / 8, 0, 0])


@pytest.mark.parametrize("reward", [0, 1])
def test_equal_rewards_give_no_signal(reward):
    method = load("dr_grpo", {"roots": 3, "clip": [0.2, 0.2]})
    alike = group((reward, 2), (reward, 5), (reward, 1))
    assert not method.credit(alike, Progress(), np.zeros(3)).any()
