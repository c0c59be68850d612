"""TreeRL by hand: where it forks, how its trees grow in rounds, and what their blocks earn."""

import dataclasses

import numpy as np
import pytest
from tests.trees import branch, grow_all, tree, tree_a

from datpo.core.problem import Problem
from datpo.core.tree import Fork
from datpo.engines.scripted import ScriptedEngine
from datpo.learn.minibatch import credited, gather, units_of
from datpo.methods import load
from datpo.search.budget import Plan, Progress
from datpo.search.rollout import Rollouts
from datpo.search.signals import closing

NUMBERS = {"roots": 6, "forks": 2, "rounds": 1, "siblings": 2, "clip": [0.2, 0.2]}


def treerl(**numbers):
    return load("treerl", {**NUMBERS, **numbers})


def sampled(parent, start, logprobs, entropy, closing=None, finish="length"):
    closing = np.zeros(len(logprobs)) if closing is None else np.array(closing, dtype=float)
    signals = {"entropy": np.array(entropy, dtype=float), "closing": closing}
    return branch(parent, start, len(logprobs), 1, logprobs=logprobs, finish=finish, signals=signals)


def places(method, grown, forks):
    chosen = method.forks.choose(grown, Plan(forks, 2), np.random.default_rng(0))
    return [(fork.branch, fork.at) for fork in chosen]


# --- search ---------------------------------------------------------------------------------------------------------


def test_every_problem_gets_the_same_plan():
    for rewards in ((0, 0), (1, 0), (1, 1)):
        grown = tree(*(branch(None, 0, 4, r) for r in rewards))
        assert treerl(forks=3, siblings=4).budget(grown, Progress(), np.random.default_rng(0)) == Plan(3, 4)


def test_surprise_and_entropy_are_different_rules():
    # token       0    1    2    3    4
    # -log p      9    1    2    3    1
    # entropy     9   .1   .5   .2   .9
    one = sampled(None, 0, [-9, -1, -2, -3, -1], [9, 0.1, 0.5, 0.2, 0.9])
    assert places(treerl(), tree(one), 2) == [(0, 2), (0, 3)]  # 3, then 2
    assert places(treerl(uncertainty="entropy"), tree(one), 2) == [(0, 2), (0, 4)]  # .9, then .5; token 0 is none
    ended = sampled(None, 0, [-9, -1, -2, -3, -1], [9, 0.1, 0.5, 0.2, 0.9], finish="stop")
    assert places(treerl(uncertainty="entropy"), tree(ended), 1) == [(0, 2)]  # the end token is not sampled anew


def test_branches_compete_with_their_base_and_keep_their_own_announcement():
    # base, entropies 9 1 2 3; a branch from 2: 9 8 7, its answer announced by its second token
    base = sampled(None, 0, [-1] * 4, [9, 1, 2, 3])
    grown = tree(base, sampled(0, 2, [-1] * 3, [9, 8, 7], closing=[0, 0, 1]))
    # 8 on the branch (position 3), then 3 on the base: 7 stands behind the announcement, 9 begins its branch
    assert places(treerl(uncertainty="entropy"), grown, 2) == [(0, 3), (1, 3)]
    announced = sampled(None, 0, [-1] * 4, [9, 1, 2, 3], closing=[0, 1, 1, 1])
    assert places(treerl(uncertainty="entropy"), tree(announced), 2) == []


def test_forks_of_a_tree_are_counted_per_base_rollout():
    one = sampled(None, 0, [-1, -5, -1], [0, 0, 0])
    other = sampled(None, 0, [-1, -1, -2], [0, 0, 0])
    chosen = treerl().forks.choose(tree(one, other), Plan(1, 2), np.random.default_rng(0))
    assert chosen == [Fork(0, 1, 2), Fork(1, 2, 2)]  # though tokens 1 and 2 of the first are as unsure


# --- rounds ---------------------------------------------------------------------------------------------------------

# 20 tokens, none of which ends a response, so that no two distributions and hardly two surprises are the same
ENDLESS = np.random.default_rng(0).dirichlet(np.full(20, 0.5), size=20)
HERALD = 7  # the token that announces the answer
GROVE = {"roots": 3, "forks": 2, "rounds": 2, "siblings": 2}


class Remembering(ScriptedEngine):
    """Never gives a handle twice, and remembers every request with its continuation."""

    def __init__(self, transition_VV, end=-1):
        super().__init__(transition_VV, end)
        self.done = []

    def sample(self, requests, keep=False):
        sampled = super().sample(requests, keep)
        numbered = [dataclasses.replace(one, handle=len(self.done) + i) for i, one in enumerate(sampled)]
        self.done += zip(requests, numbered, strict=True)
        return numbered


def endless(engine, announced=None):
    """Rollouts of 12 tokens each."""

    def grade(leaves):
        return [(float(tree.response(leaf)[-1] % 2), "graded") for tree, leaf in leaves]

    decode = lambda tokens: "Answer" if tokens[0] == announced else "so"  # noqa: E731
    signals = {"closing": lambda leaves: [closing(tree.branches[b], decode) for tree, b in leaves]}
    return Rollouts(engine, grade, signals, max_new_tokens=12, context_window=64)


def problems(count):
    return [(Problem(f"p{i}", "?", "!"), np.array([0, 1])) for i in range(count)]


@pytest.mark.parametrize(
    ("shape", "leaves"),  # M (1 + N T L)
    [((6, 2, 1, 2), 30), ((4, 3, 1, 4), 52), ((3, 2, 2, 2), 27), ((2, 1, 3, 2), 14), ((1, 2, 1, 1), 3)],
)
def test_treerl_leaves(shape, leaves):
    engine = Remembering(ENDLESS)
    trees = grow_all(endless(engine), treerl(**dict(zip(NUMBERS, shape, strict=False))), problems(2), Progress(), 0)
    assert [len(tree.branches) for tree in trees] == [leaves] * 2
    assert len(engine.batches) == 1 + shape[2]  # a round is one batch
    assert engine.kept == [True] * shape[2] + [False]  # the last round's branches are not forked


def test_later_rounds_fork_the_least_sure_tokens_of_all_that_was_grown_before():
    engine = Remembering(ENDLESS)
    for grown in grow_all(endless(engine), treerl(**GROVE), problems(3), Progress(), 0):
        family = list(range(3))  # the base rollout that each branch goes back to
        for b in grown.branches[3:]:
            family.append(family[b.parent])
        before = 3
        for _ in range(2):  # rounds; 3 families x 2 forks x 2 siblings
            forked = [(b.parent, b.start) for b in grown.branches[before : before + 12]]
            for root in range(3):
                open_ = [
                    (grown.branches[i].logprobs[at - grown.branches[i].start], i, at)
                    for i in range(before)
                    if family[i] == root
                    for at in range(grown.branches[i].start + 1, grown.branches[i].stop)
                ]
                expected = sorted(place[1:] for place in sorted(open_)[:2])
                assert [place for place in forked if family[place[0]] == root] == sorted(expected * 2)
            before += 12
        assert any(b.parent >= 3 for b in grown.branches[15:])  # the second round forks branches too
        assert all(b.parent < 3 for b in grown.branches[3:15])


def test_rounds_draw_with_seeds_of_their_own_and_start_from_what_they_continue():
    engine = Remembering(ENDLESS)
    grow_all(endless(engine), treerl(**GROVE), problems(3), Progress(), 0)
    assert [len(batch) for batch in engine.batches] == [9, 36, 36]
    assert len({request.seed for request, _ in engine.done}) == 81
    for request, _ in engine.done[9:]:
        source, continuation = engine.done[request.source]
        known = [*source.context, *continuation.tokens]
        assert request.context.tolist() == known[: len(request.context)]
    assert {request.source >= 9 for request, _ in engine.done[45:]} == {True, False}


def test_nothing_is_forked_behind_the_herald_of_the_answer_in_any_round():
    trees = grow_all(endless(Remembering(ENDLESS), HERALD), treerl(**GROVE), problems(6), Progress(), 0)
    met = 0
    for grown in trees:
        for b in grown.branches[3:]:
            host = grown.branches[b.parent]
            assert HERALD not in host.tokens[: b.start - host.start]
        met += sum(HERALD in b.tokens[:-1] for b in grown.branches)
    assert met > 10


# --- credit and update ----------------------------------------------------------------------------------------------


# The working stands in credit/test_advantages.py.
@pytest.mark.parametrize(("form", "right", "wrong"), [("paper", 2 / 3, -4 / 3), ("released", 0.8, -1.6)])
def test_credit_of_worked_tree_a(form, right, wrong):
    grown = tree_a()
    ours = treerl(credit=form).credit(grown, Progress(), np.full(8, 0.3))
    earned = [0 if not block.terminal else right if grown.rewards_L[block.branch] else wrong for block in grown.blocks]
    assert ours == pytest.approx(earned, abs=1e-12)


def test_a_shared_block_is_trained_once_for_every_leaf_below_it():
    # a base of 2 + 2 tokens, r = 1, and a branch of 3 from 2, r = 0; a base of 4, r = 0
    grown = tree(branch(None, 0, 4, 1), branch(None, 0, 4, 0), branch(0, 2, 3, 0))
    # V(root) = 1/3, V(fork) = 1/2. Root to fork: (1/6 + 1/6) / sqrt 2. Fork to end: 2/3 + 1/2. Branch: -1/3 - 1/2.
    # The other base: -1/3 - 1/3.
    shared = (1 / 3) / np.sqrt(2)
    method = treerl()
    credit = credited(method, grown, Progress(), np.zeros(4))
    assert credit.advantages == pytest.approx([shared, 7 / 6, -2 / 3, -5 / 6])
    assert credit.units == (0, 1, 2)
    batch = gather(method, [credit], units_of([credit]), 8)
    # paths of 4, 4 and 5 tokens; the shared block is pulled twice
    assert batch.normaliser == 13
    (share,) = batch.shares
    assert share.pull_B == pytest.approx([2 * shared, 7 / 6, 0, 0])
    assert share.push_B == pytest.approx([0, 0, 2 / 3, 5 / 6])
