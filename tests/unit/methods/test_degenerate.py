"""Every method on trees at the edge of what can happen, with the numbers it is trained with."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from tests.trees import PROBLEM, branch, grow_all, random_trees, tree

from datpo.credit.values import VALUES, value_of_root
from datpo.engines.scripted import ScriptedEngine
from datpo.learn.minibatch import credited, gather, units_of
from datpo.learn.statistics import fork_statistics
from datpo.methods import load, names
from datpo.report.runs import METHOD_LABELS
from datpo.search.budget import Progress
from datpo.search.forks import fork_bounds
from datpo.search.rollout import Rollouts

CONFIGS = Path(__file__).resolve().parents[3] / "config" / "methods"


def as_trained(name, **numbers):
    return load(name, {**yaml.safe_load((CONFIGS / f"{name}.yaml").read_text()), **numbers})


# every method as it is trained, and what else decides over its credit
METHODS = [(name, {}) for name in names()]
VARIANTS = [
    ("grpo", {"sample_std": True}),
    ("treerl", {"credit": "released"}),
    ("attnrl", {"adaptive": False}),
    *(("datpo", {"value": value, "root_value": root}) for value in VALUES for root in ("base", "all")),
    ("datpo", {"compared": "released"}),
]
EVERY_METHOD = pytest.mark.parametrize(("name", "numbers"), [*METHODS, *VARIANTS])
ONLY_NAMES = pytest.mark.parametrize("name", names())


def roots(*rewards, length=6, finish="length"):
    return [branch(None, 0, length, reward, finish=finish) for reward in rewards]


def at_the_edges(rewards):
    """A base of five tokens and an end token, forked at the first and at the last position that are allowed."""
    base = branch(None, 0, 6, rewards[0], finish="stop")
    assert fork_bounds(base) == (1, 4)
    return tree(base, branch(0, 1, 3, rewards[1]), branch(0, 1, 1, rewards[2]), branch(0, 4, 1, rewards[3]))


TREES = {
    "all right": tree(*roots(1, 1), branch(0, 3, 2, 1), branch(1, 4, 2, 1), branch(2, 4, 1, 1)),
    "all wrong": tree(*roots(0, 0), branch(0, 3, 2, 0), branch(1, 4, 2, 0), branch(2, 4, 1, 0)),
    "alone and right": tree(*roots(1)),
    "alone and wrong": tree(*roots(0)),
    "one token each": tree(*roots(1, 0, 0, 1, length=1)),
    "an end token each": tree(*roots(1, 0, 0, 1, length=1, finish="stop")),
    "an end token each, all wrong": tree(*roots(0, 0, 0, length=1, finish="stop")),
    "an end token for a branch": tree(*roots(1, 0), branch(0, 2, 1, 0, finish="stop")),
    "edges": at_the_edges([1, 0, 1, 0]),
    "edges, all wrong": at_the_edges([0, 0, 0, 0]),
    "base rollouts right, branches wrong": tree(*roots(1, 1), branch(0, 3, 2, 0), branch(1, 4, 2, 0)),
    "identical siblings": tree(*roots(1, 0), *[branch(0, 3, 2, 1, tokens=[8, 9])] * 2, branch(1, 3, 2, 0, [8, 9])),
    "identical siblings, all right": tree(*roots(1, 1), *[branch(0, 3, 2, 1, tokens=[8, 9])] * 3),
}


def check_tiling(grown):
    assert all(len(block) > 0 for block in grown.blocks)
    for b, own in enumerate(grown.branches):
        spans = [(block.start, block.stop) for block in grown.blocks if block.branch == b]
        assert spans[0][0] == own.start and spans[-1][1] == own.stop
        assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert sum(len(block) for block in grown.blocks) == grown.generated_tokens


def check_credit(method, grown, name):
    """Finite advantages on blocks that tile the branches; a mini-batch that can be divided by its normaliser."""
    diversity_B = np.full(len(grown.blocks), 0.3)
    check_tiling(grown)
    for end_tokens in (True, False):
        credit = credited(method, grown, Progress(), diversity_B, end_tokens)
        assert credit.advantages.shape[-1] == len(grown.blocks) == len(credit.tree.blocks)
        assert np.isfinite(credit.advantages).all()
        assert all(len(block) > 0 for block in credit.tree.blocks)
        if np.ptp(grown.rewards_L) == 0 and name in METHOD_LABELS:  # another baseline may compare with a constant
            assert not credit.advantages.any()
        if not credit.units:
            assert credit.tokens == 0
            continue
        batch = gather(method, [credit], units_of([credit]), 8)
        assert batch.normaliser > 0 and batch.trained_tokens > 0
        for share in batch.shares:
            assert np.isfinite([share.pull_B, share.push_B]).all()


@EVERY_METHOD
@pytest.mark.parametrize("case", TREES)
@pytest.mark.filterwarnings("error")
def test_credit_is_finite_and_zero_where_there_is_no_signal(name, numbers, case):
    check_credit(as_trained(name, **numbers), TREES[case], name)


@ONLY_NAMES
def test_end_tokens_alone_leave_nothing_to_train_where_end_tokens_are_not_trained(name):
    grown = TREES["an end token each"]
    credit = credited(as_trained(name), grown, Progress(), np.zeros(len(grown.blocks)), end_tokens=False)
    assert (credit.units, credit.tokens) == ((), 0)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("root", ["base", "all"])
@given(grown=random_trees())
def test_datpos_advantages_telescope_under_every_option(value, root, grown):
    credit = as_trained("datpo", value=value, root_value=root, alpha=[0.0, 0.0]).credit
    ours = credit(grown, Progress(), np.full(len(grown.blocks), 0.3))
    for leaf, reward in enumerate(grown.rewards_L):
        assert ours[list(grown.path(leaf))].sum() == pytest.approx(reward - value_of_root(grown, root), abs=1e-9)


# --- grown from the edge --------------------------------------------------------------------------------------------

END = 3
CERTAIN = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])  # 1 for ever
SILENT = np.array([[0, 0, 0, 1]] * 4)  # an end token and nothing else
SHORT = np.array([[0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1]])


def labels(tree, b, per_unit):
    """Sentences or steps of `per_unit` tokens; an end token belongs to none."""
    own = tree.branches[b]
    label_T = np.arange(len(own.tokens)) // per_unit * 1.0
    return np.where((own.finish == "stop") & (np.arange(len(own.tokens)) == len(own.tokens) - 1), -1.0, label_T)


def rollouts(transition_VV, reward, longest, per_unit):
    def grade(leaves):
        return [(float(reward(tree.response(leaf))), "graded") for tree, leaf in leaves]

    def of_units(leaves):
        return [labels(tree, b, per_unit) for tree, b in leaves]

    def zeros(leaves):
        return [np.zeros(len(tree.branches[b].tokens)) for tree, b in leaves]

    signals = {"sentence": of_units, "step": of_units, "influence": zeros, "token_influence": zeros, "closing": zeros}
    return Rollouts(ScriptedEngine(transition_VV, END), grade, signals, longest, context_window=64)


def grown_by(method, grow, count=3):
    trees = grow_all(grow, method, [(PROBLEM, np.array([0, 1]))] * count, Progress(), 4)
    statistics = method.remember(trees, {})
    assert np.isfinite([*statistics.values()]).all()
    assert method.prompts(trees, count, count) >= 1
    return trees


REWARDS = {"wrong": lambda response: 0, "right": lambda response: 1, "some": lambda response: len(response) % 2}


@ONLY_NAMES
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(
    ("transition_VV", "longest"),
    [(CERTAIN, 8), (CERTAIN, 1), (SILENT, 8), (SHORT, 8), (SHORT, 2)],
    ids=["identical", "one token", "an end token", "short", "at most two tokens"],
)
@pytest.mark.filterwarnings("error")
def test_grown_trees_are_sound(name, reward, transition_VV, longest):
    method = as_trained(name)
    for grown in grown_by(method, rollouts(transition_VV, REWARDS[reward], longest, per_unit=2)):
        for b in grown.branches:
            if b.parent is not None:
                first, last = fork_bounds(grown.branches[b.parent])
                assert first <= b.start <= last
        check_credit(method, grown, name)


@ONLY_NAMES
@pytest.mark.parametrize("transition_VV", [CERTAIN, SILENT], ids=["one token", "an end token"])
def test_a_response_of_one_token_cannot_be_forked(name, transition_VV):
    method = as_trained(name)
    (grown,) = grown_by(method, rollouts(transition_VV, REWARDS["wrong"], 1, per_unit=2), count=1)
    assert len(grown.branches) == method.roots


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        ("grpo", 16),
        ("dr_grpo", 16),
        ("treerl", 6 * (1 + 2 * 2)),  # positions 1 and 2
        ("attnrl", 6),  # the one step starts where no fork may lie
        ("datpo", 4 * (1 + 1 * 4)),  # after the first token of the one sentence, though 3 forks are wanted
    ],
)
def test_more_forks_than_sentences(name, leaves):
    # an unsolved problem, three tokens in one sentence (or step)
    method = as_trained(name)
    (grown,) = grown_by(method, rollouts(CERTAIN, REWARDS["wrong"], 3, per_unit=3), count=1)
    assert len(grown.branches) == leaves


@pytest.mark.parametrize(
    ("name", "leaves"),
    [("treerl", 30), ("attnrl", 6 + 3 * 2 * 2), ("datpo", 4)],  # AttnRL: ceil(6 / e) = 3 bases are forked
)
def test_a_solved_problem(name, leaves):
    method = as_trained(name)
    (grown,) = grown_by(method, rollouts(CERTAIN, REWARDS["right"], 8, per_unit=2), count=1)
    assert len(grown.branches) == leaves
    assert not method.credit(grown, Progress(), np.full(len(grown.blocks), 0.3)).any()


# --- the log --------------------------------------------------------------------------------------------------------


def test_fork_distance_is_over_the_same_length_whether_or_not_end_tokens_are_trained():
    # ten tokens and an end token, forks at 2 and 7: 5 / 10
    grown = tree(branch(None, 0, 11, 1, finish="stop"), branch(0, 2, 3, 0), branch(0, 7, 3, 0))
    method = as_trained("treerl")
    for end_tokens in (True, False):
        credit = credited(method, grown, Progress(), np.zeros(len(grown.blocks)), end_tokens)
        assert fork_statistics([grown], [credit], [])["fork_nnd"] == pytest.approx(0.5)
