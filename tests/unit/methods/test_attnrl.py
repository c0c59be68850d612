"""AttnRL by hand: which base rollouts are forked, where, what is kept, and how many problems a step gets."""

import math

import numpy as np
import pytest
from tests.trees import branch, tree

from datpo.learn.minibatch import credited, split, units_of
from datpo.methods import load
from datpo.methods.attnrl import dynamic_prompts, mean_influence
from datpo.search.budget import Plan, Progress

NUMBERS = {"roots": 6, "max_forks": 2, "siblings": 2, "clip": [0.2, 0.2]}


def attnrl(**numbers):
    return load("attnrl", {**NUMBERS, **numbers})


def base(reward, influences, width=2, finish="length"):
    """A base rollout with steps of `width` tokens and the given influence of each; an end token is of no step."""
    step = np.repeat(np.arange(len(influences), dtype=float), width)
    influence = np.repeat(np.array(influences, dtype=float), width)
    if finish == "stop":
        step, influence = np.append(step, -1.0), np.append(influence, 0.0)
    signals = {"step": step, "influence": influence, "entropy": np.zeros(len(step))}
    return branch(None, 0, len(step), reward, finish=finish, signals=signals)


def bases(rewards, influences=(0, 1, 1)):
    return tree(*(base(reward, influences) for reward in rewards))


def plan(method, grown, statistics=None, seed=0):
    return method.budget(grown, Progress(statistics=statistics or {}), np.random.default_rng(seed))


# --- which base rollouts are forked ---------------------------------------------------------------------------------


# exp(-z) N for z = 0, 1/N, ..., 1.
# N = 6: 6, 5.08, 4.30, 3.64, 3.08, 2.61, 2.21. N = 4: 4, 3.12, 2.43, 1.89, 1.47.
@pytest.mark.parametrize(
    ("roots", "rounding", "forked"),
    [
        (6, "round", [6, 5, 4, 4, 3, 3, 2]),
        (6, "ceil", [6, 6, 5, 4, 4, 3, 3]),
        (4, "round", [4, 3, 2, 2, 1]),
        (4, "ceil", [4, 4, 3, 2, 2]),
    ],
)
def test_the_more_are_right_the_fewer_are_forked(roots, rounding, forked):
    method = attnrl(roots=roots, rounding=rounding)
    plans = [plan(method, bases([1] * right + [0] * (roots - right))) for right in range(roots + 1)]
    assert [len(each.bases) for each in plans] == forked
    assert all((each.forks, each.siblings) == (2, 2) for each in plans)


@pytest.mark.parametrize(
    ("rewards", "count", "minority"),
    [
        ([0, 1, 0, 0, 0, 1], 5, {1, 5}),  # z = 1/3
        ([1, 0, 1, 1, 0, 1], 4, {1, 4}),  # z = 2/3
        ([1, 1, 1, 0, 1, 1], 3, {3}),  # z = 5/6
        ([1, 0, 1, 0, 1, 0], 4, {1, 3, 5}),  # z = 1/2: the wrong ones
    ],
)
def test_all_of_the_minority_and_others_by_lot(rewards, count, minority):
    method, others = attnrl(), set()
    for seed in range(40):
        chosen = plan(method, bases(rewards), seed=seed).bases
        assert chosen == tuple(sorted(set(chosen))) and len(chosen) == count
        assert minority <= set(chosen)
        others |= set(chosen) - minority
        assert chosen == plan(method, bases(rewards), seed=seed).bases
    assert others == set(range(6)) - minority  # each has its chance


@pytest.mark.parametrize(("reward", "rounding", "first"), [(0, "ceil", 6), (1, "ceil", 3), (1, "round", 2)])
def test_where_all_are_alike_the_first_are_forked(reward, rounding, first):
    for seed in range(5):
        assert plan(attnrl(rounding=rounding), bases([reward] * 6), seed=seed).bases == tuple(range(first))


def test_base_rollouts_are_meant_whatever_else_was_grown():
    # z = 1/2 of two bases, ceil(0.607 x 2) = 2; branches count for nothing
    grown = bases([1, 0]).grow([branch(0, 2, 3, 0), branch(1, 2, 3, 0)])
    assert plan(attnrl(), grown) == Plan(2, 2, bases=(0, 1))


def test_without_adaptation_every_base_rollout_is_forked():
    assert plan(attnrl(adaptive=False), bases([1] * 6), {"solved_influence": 9.0}) == Plan(2, 2)


# --- the filter of solved problems ----------------------------------------------------------------------------------


def test_mean_influence_is_over_steps_then_over_base_rollouts():
    # (0 + 3 + 3) / 3 = 2, the first step counting as 0; (0 + 8) / 2 = 4: mean 3. Over all steps it would be 14/5.
    assert mean_influence(tree(base(1, [7, 3, 3]), base(1, [7, 8]))) == pytest.approx(3)
    assert mean_influence(tree(base(1, [7, 3, 3], finish="stop"))) == pytest.approx(2)  # the end token is no step


def test_a_base_rollout_without_a_step_has_no_influence():
    # an end token alone: the mean of no steps is nothing, and must not spoil the running mean; (0 + 2) / 2
    nothing = base(1, [], finish="stop")
    assert mean_influence(tree(nothing, base(1, [0, 4]))) == pytest.approx(1)
    statistics = attnrl().remember([tree(nothing)], {"solved_problems": 1.0, "solved_influence": 3.0})
    assert statistics["solved_influence"] == pytest.approx(1.5)


def test_the_running_mean_is_that_of_solved_problems_and_includes_the_step_itself():
    method = attnrl()
    high, low, unsolved = bases([1] * 6, [0, 3, 3]), bases([1] * 6, [0, 0, 3]), bases([1] * 5 + [0], [0, 90, 90])
    first = method.remember([high, low, unsolved], {})  # influences 2 and 1; 60 does not count
    assert first == {"solved_problems": 2, "solved_influence": 1.5}
    assert plan(method, high, first).bases == (0, 1, 2)
    assert plan(method, low, first) == Plan(0, 0)
    assert len(plan(method, unsolved, {"solved_influence": 99.0}).bases) == 3
    second = method.remember([bases([1] * 6, [0, 6, 3])], first)  # influence 3: (2 x 1.5 + 3) / 3
    assert second == {"solved_problems": 3, "solved_influence": 2.0}
    assert plan(method, high, second).bases == (0, 1, 2)  # as much as the mean is enough
    assert method.remember([unsolved], second) == second
    assert first == {"solved_problems": 2, "solved_influence": 1.5}  # a state is not changed behind its owner's back


def test_problems_of_equal_influence_all_reach_their_mean():
    # (0 + 0.2) / 2 = 0.1 for each; but 0.1 + 0.1 + 0.1 = 0.30000000000000004, whose third is above 0.1
    method, alike = attnrl(), [bases([1], [0, 0.2]) for _ in range(3)]
    statistics = method.remember(alike, {})
    assert all(plan(method, grown, statistics).forks == 2 for grown in alike)


# --- where they are forked ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spacing", "expected"),
    [
        (0, [8, 20]),  # the two earliest
        (10, [20, 36]),  # 8 is too near the start; 36 is 16 from where step 5 starts, 12 from where it ends
        (18, [4, 20]),  # 36 is too near step 5; the earliest other step makes up for it, however near
        (25, [4, 36]),  # 20 is too near the start too
        (99, [4, 8]),  # no candidate is left
    ],
)
def test_spacing_passes_over_steps_too_near_the_start_or_each_other(spacing, expected):
    # ten steps of four tokens, influence 1 for steps 2, 5 and 9, which start at 8, 20 and 36;
    # 0.8-quantile: rank 7.2 of 0 x 7, 1 x 3 is 1
    one = base(1, [0, 0, 1, 0, 0, 1, 0, 0, 0, 1], width=4)
    chosen = attnrl(spacing=spacing).forks.choose(tree(one), Plan(2, 2), np.random.default_rng(0))
    assert [fork.at for fork in chosen] == expected


def test_a_step_is_sampled_anew_from_its_first_token_on():
    # influences 0 0 0 0 5: rank 3.2 is 0.2 x 5 = 1, step 4 alone; its first token, 8, is not in the prefix
    (fork,) = attnrl().forks.choose(tree(base(1, [0, 0, 0, 0, 5])), Plan(1, 2), np.random.default_rng(0))
    assert fork.at == 8


# --- credit ---------------------------------------------------------------------------------------------------------


def test_the_value_of_the_root_is_over_all_leaves_forked_or_not():
    grown = tree(branch(None, 0, 6, 1), branch(None, 0, 4, 0), branch(0, 2, 3, 0), branch(0, 2, 3, 1))
    # leaves 1 0 0 1: V(root) = 1/2, V(fork) = 2/3. Root to fork: (1/6 + 1/6) / sqrt 3. Fork to end and the right
    # branch: 1/2 + 1/3; the wrong one: -1/2 - 2/3; the base that was not forked: -1/2 - 1/2.
    # (Without that base V(root) would be 2/3, and the first block would earn nothing.)
    ours = attnrl().credit(grown, Progress(), np.full(5, 0.3))
    assert ours == pytest.approx([1 / 3 / math.sqrt(3), 5 / 6, -1, -7 / 6, 5 / 6])


# --- what is kept ---------------------------------------------------------------------------------------------------


def forest(rewards, forks):
    """Base rollouts with these rewards, then branches (base, reward) from position 2."""
    grown = bases(rewards)
    return grown.grow([branch(root, 2, 3, reward) for root, reward in forks])


def test_base_rollouts_that_were_not_forked_are_dropped():
    grown = forest([1, 0, 1], [(0, 1), (0, 0), (1, 0)])
    assert attnrl().keep(grown).tolist() == [True, True, False, True, True, True]
    assert attnrl(adaptive=False).keep(grown).all()
    credit = credited(attnrl(), grown, Progress(), np.zeros(len(grown.blocks)))
    assert credit.units == (0, 1, 3, 4, 5)
    # paths of 6 tokens for both bases, 2 + 3 for each branch
    assert credit.tokens == 6 + 6 + 3 * 5


def test_a_branch_of_a_branch_is_kept_with_its_base():
    grown = forest([1, 0], [(0, 1)]).grow([branch(2, 3, 2, 0)])
    assert attnrl().keep(grown).tolist() == [True, False, True, True]


@pytest.mark.parametrize("reward", [0, 1])
def test_trees_all_right_or_all_wrong_are_dropped_whole(reward):
    grown = forest([reward] * 3, [(0, reward), (1, reward)])
    assert not attnrl().keep(grown).any()


def test_a_problem_that_the_filter_dropped_is_not_trained():
    assert not attnrl().keep(bases([1] * 6)).any()  # solved, not forked: all leaves are right


def test_a_step_that_is_dropped_whole_has_no_mini_batch():
    method = attnrl()
    dropped = [bases([1] * 6), forest([0] * 6, [(0, 0)])]
    credits = [credited(method, grown, Progress(), np.zeros(len(grown.blocks))) for grown in dropped]
    assert all(credit.tokens == 0 for credit in credits)
    units = units_of(credits)
    assert units == []
    for grouping in ("units", "trees"):
        assert split(units, 64, grouping, np.random.default_rng(0)) == []


# --- how many problems ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "grown", "left", "expected"),  # 480 leaves are wanted
    [
        (16, 16, 480, 16),  # 14.4 + 0.1 x 1 x 16
        (16, 16, 240, 18),  # 14.4 + 0.1 x 2 x 16 = 17.6
        (20, 20, 600, 20),  # 18 + 0.1 x 0.8 x 20 = 19.6
        (30, 30, 900, 29),  # 27 + 0.1 x 8/15 x 30 = 28.6
        (18, 18, 480, 18),  # enough were left: 18 stays, it does not go back to 16
        (30, 16, 480, 29),  # pipeline: 27 + 0.1 x 1 x 16 = 28.6; 30 have been planted since, 16 would be enough
        (16, 30, 480, 17),  # 14.4 + 0.1 x 1 x 30 = 17.4
        (1, 1, 4800, 1),  # 0.9 + 0.01; never none
        (16, 20, 0, 16),  # nothing was left: B stays what it was last
    ],
)
def test_dynamic_prompts_by_hand(last, grown, left, expected):
    assert dynamic_prompts(last, grown, 480, left) == expected


def test_prompts_count_the_leaves_that_are_trained():
    method = attnrl(roots=2, max_forks=1, siblings=1)
    # wanted 10 x 2 x (1 + 1) = 40. Of 10 trees two are left: one of 4 leaves, one of 2 (a base and its branch;
    # the other base was not forked)
    whole, half = forest([1, 0], [(0, 0), (1, 1)]), forest([1, 0], [(0, 0)])
    dropped = [bases([1, 1])] * 8
    assert method.prompts([whole, half, *dropped], 10, 10) == 16  # 9 + 0.1 x 40/6 x 10 = 15.67
    assert method.prompts([whole, half, *dropped], 20, 10) == 25  # 18 + 6.67
    assert method.prompts(dropped, 13, 10) == 13  # nothing left: as many as last, not as are usual
    static = attnrl(roots=2, max_forks=1, siblings=1, adaptive=False)
    assert static.prompts([whole, half, *dropped], 20, 10) == 10


def test_steps_of_the_pipeline_follow_one_another():
    # every problem leaves half of what is wanted; a step's trees are of the step before the last that was planted
    planted = [16, 16]
    for step in range(6):
        planted.append(dynamic_prompts(planted[-1], planted[step], 480, 15 * planted[step]))
    # 0.9 B + 0.1 x 2 x 16 whatever was grown: 17.6, 19.4, 20.3, 21.2, 22.1, 23
    assert planted == [16, 16, 18, 19, 20, 21, 22, 23]


def test_only_what_is_forked_decides_whether_a_problem_is_mixed():
    # base 0 and its branches are right; base 1, which was not forked, is wrong and is not trained
    grown = tree(branch(None, 0, 9, 1), branch(None, 0, 9, 0), branch(0, 4, 3, 1), branch(0, 4, 3, 1))
    assert not attnrl().keep(grown).any()
    mixed = tree(branch(None, 0, 9, 1), branch(None, 0, 9, 0), branch(0, 4, 3, 1), branch(0, 4, 3, 0))
    assert attnrl().keep(mixed).tolist() == [True, False, True, True]
