import dataclasses

import numpy as np
import pytest
from tests.trees import grow_all

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.tree import Fork, RolloutTree
from datpo.engines.scripted import ScriptedEngine
from datpo.methods import load
from datpo.search.budget import Progress
from datpo.search.forks import ForkRule
from datpo.search.rollout import Rollouts, under_way

END = 3
# token 1 is followed by anything, 2 goes on or ends
CHAIN = np.array([[0.0, 1.0, 0.0, 0.0], [0.1, 0.4, 0.4, 0.1], [0.1, 0.3, 0.3, 0.3], [0.0, 0.0, 0.0, 1.0]])
DATPO = load("datpo", {"roots": 4, "max_forks": 3, "max_siblings": 4, "alpha": [0, 0], "clip": [0.2, 0.2]})


def rollouts(reward, engine=None, max_new=12, window=64):
    seen = []

    def grade(leaves):
        seen.append([tuple(tree.response(leaf)) for tree, leaf in leaves])
        return [(float(reward(tree.response(leaf))), "graded") for tree, leaf in leaves]

    every_two = {"sentence": lambda leaves: [np.arange(len(tree.branches[b].tokens)) // 2 for tree, b in leaves]}
    return Rollouts(engine or ScriptedEngine(CHAIN, END), grade, every_two, max_new, window), seen


def problems(count):
    return [(Problem(f"p{i}", "?", "!"), np.array([0, 1])) for i in range(count)]


def test_all_wrong_grows_all_branches_in_one_second_batch():
    engine = ScriptedEngine(CHAIN, END)
    grow, seen = rollouts(lambda response: 0, engine)
    trees = grow_all(grow, DATPO, problems(3), Progress(), 0)
    assert [len(batch) for batch in engine.batches] == [12, sum(len(t.branches) - 4 for t in trees)]
    assert len(seen) == 2
    for tree in trees:
        forks = {(b.parent, b.start) for b in tree.branches[4:]}
        assert len(tree.branches) == 4 + 4 * len(forks)
        for b in tree.branches[4:]:
            assert b.parent in range(4)


def test_a_branch_continues_its_own_prefix_and_is_graded_with_it():
    engine = ScriptedEngine(CHAIN, END)
    grow, seen = rollouts(lambda response: 0, engine)
    (tree,) = grow_all(grow, DATPO, problems(1), Progress(), 0)
    for request, (leaf, b) in zip(engine.batches[1], list(enumerate(tree.branches))[4:], strict=True):
        base = tree.branches[b.parent]
        assert request.context.tolist() == [0, 1, *base.tokens[: b.start]]
        assert request.source == b.parent
        assert tuple(tree.response(leaf)) == seen[1][leaf - 4]


def test_a_solved_problem_is_not_forked():
    engine = ScriptedEngine(CHAIN, END)
    grow, _ = rollouts(lambda response: 1, engine)
    (tree,) = grow_all(grow, DATPO, problems(1), Progress(), 0)
    assert len(tree.branches) == 4
    assert [len(batch) for batch in engine.batches] == [4, 0]


def test_a_tree_does_not_depend_on_its_neighbours():
    grow, _ = rollouts(lambda response: len(response) % 2)
    together = grow_all(grow, DATPO, problems(4), Progress(step=7), 5)
    alone = [grow_all(grow, DATPO, [p], Progress(step=7), 5)[0] for p in problems(4)[::-1]][::-1]
    for one, other in zip(together, alone, strict=True):
        assert [b.tokens.tolist() for b in one.branches] == [b.tokens.tolist() for b in other.branches]


def test_another_step_or_seed_draws_anew():
    grow, _ = rollouts(lambda response: 0)
    runs = [grow_all(grow, DATPO, problems(1), Progress(step=s), seed)[0] for s, seed in ((0, 0), (1, 0), (0, 1))]
    texts = {tuple(tuple(b.tokens) for b in tree.branches) for tree in runs}
    assert len(texts) == 3


def test_a_problem_that_stands_twice_in_a_step_is_sampled_twice():
    grow, _ = rollouts(lambda response: 0)
    first, second = grow_all(grow, DATPO, problems(1) * 2, Progress(), 0)
    (alone,) = grow_all(grow, DATPO, problems(1), Progress(), 0)
    spell = lambda tree: [b.tokens.tolist() for b in tree.branches]  # noqa: E731
    assert spell(first) != spell(second)
    assert spell(first) == spell(alone)


def test_caches_are_kept_for_what_is_forked_and_dropped_at_the_end():
    engine = ScriptedEngine(CHAIN, END)
    grow, _ = rollouts(lambda response: 0, engine)

    def after_first(tree, plan, rng):
        return [Fork(root, 1, 1) for root in tree.roots if tree.branches[root].stop > 1]

    for method in (DATPO, dataclasses.replace(DATPO, forks=ForkRule(after_first))):
        trees = grow_all(grow, method, problems(6), Progress(), 0)
        assert any(tree.siblings for tree in trees)
        assert engine.kept == [True, False]
        engine.kept.clear()
    grow_all(grow, load("grpo", {"roots": 4, "clip": [0.2, 0.28]}), problems(1), Progress(), 0)
    assert engine.kept == [False, False]
    assert engine.forgotten == 3


def test_grpo_is_a_tree_without_forks():
    grow, _ = rollouts(lambda response: len(response) % 2)
    (tree,) = grow_all(grow, load("grpo", {"roots": 16, "clip": [0.2, 0.28]}), problems(1), Progress(), 0)
    assert tree.roots == tuple(range(16))
    assert len(tree.blocks) == 16


def test_new_tokens_give_way_to_the_context_window_and_never_the_prompt():
    engine = ScriptedEngine(CHAIN, END)
    grow, _ = rollouts(lambda response: 0, engine, max_new=4096, window=10)
    grow_all(grow, DATPO, problems(1), Progress(), 0)
    assert {r.max_new_tokens for r in engine.batches[0]} == {8}
    assert all(len(r.context) + r.max_new_tokens == 10 for r in engine.batches[1])


def test_a_prompt_that_fills_the_window_is_an_error_naming_the_problem():
    grow, _ = rollouts(lambda response: 0, window=2)
    with pytest.raises(InputError, match="problem p0: 2 tokens of context leave no room"):
        grow_all(grow, DATPO, problems(1), Progress(), 0)


# --- one step off policy (AttnRL) -----------------------------------------------------------------------------------

# 20 tokens, none of which ends a response, under a policy and under the same after an update
ENDLESS, UPDATED = (np.random.default_rng(n).dirichlet(np.full(20, 0.5), size=20) for n in (0, 1))
NEVER = -1
ATTNRL = load("attnrl", {"roots": 4, "max_forks": 2, "siblings": 2, "clip": [0.2, 0.2]})


def attentive(engine):
    """Rollouts of 12 tokens in steps of two, the influence of a step being the number of its first token."""
    grow, _ = rollouts(lambda response: response[-1] % 2, engine)

    def steps(leaves):
        return [np.arange(len(tree.branches[b].tokens)) // 2 for tree, b in leaves]

    def influence(leaves):
        return [np.repeat(tree.branches[b].tokens[::2], 2).astype(float) for tree, b in leaves]

    return dataclasses.replace(grow, signals={"step": steps, "influence": influence})


def seedlings(step, *numbers):
    given = problems(max(numbers) + 1)
    return under_way([RolloutTree(*given[number]) for number in numbers], step)


def sampled_by(transition_VV, tree, b):
    """The log-probabilities of a branch under a policy."""
    own = tree.branches[b]
    before = [tree.prompt[-1], *tree.prefix(b, own.start), *own.tokens][-len(own.tokens) - 1 : -1]
    return np.log(transition_VV[before, own.tokens])


def test_branches_of_a_step_and_base_rollouts_of_the_next_are_one_batch():
    engine = ScriptedEngine(ENDLESS, NEVER)
    grow = attentive(engine)
    planted = grow.plant(ATTNRL, seedlings(0, 0, 1), 5)
    trees, following = grow.fork(ATTNRL, planted, Progress(), 5, seedlings(1, 2, 3, 4))
    branches = sum(len(tree.branches) - 4 for tree in trees)
    assert branches > 0
    assert [len(batch) for batch in engine.batches] == [8, branches + 12]
    assert engine.forgotten == 1
    assert all(request.source is not None for request in engine.batches[1][:branches])
    assert all(request.source is None and request.context.tolist() == [0, 1] for request in engine.batches[1][-12:])
    # they are what planting by itself would give, graded and with the signals that their forks will need
    alone = grow.plant(ATTNRL, seedlings(1, 2, 3, 4), 5)
    for one, other in zip(following, alone, strict=True):
        assert one.name == other.name
        assert spelled(one.tree) == spelled(other.tree)
        assert one.tree.rewards_L.tolist() == other.tree.rewards_L.tolist()
        assert all({"step", "influence"} <= set(b.signals) for b in one.tree.branches)
        assert one.handles == ()  # the policy will have moved
        assert len(other.handles) == 4


@pytest.mark.parametrize("rounds", [1, 2])
def test_base_rollouts_keep_the_log_probs_of_the_policy_that_sampled_them(rounds):
    method = dataclasses.replace(ATTNRL, rounds=rounds)
    engine = ScriptedEngine(ENDLESS, NEVER)
    grow = attentive(engine)
    _, planted = grow.fork(method, grow.plant(method, seedlings(0, 0), 5), Progress(), 5, seedlings(1, 1, 2))
    engine.transition_VV = UPDATED
    trees, following = grow.fork(method, planted, Progress(1), 5, seedlings(2, 3))
    forks = sum(len(tree.branches) - 4 for tree in trees)
    assert forks > 0
    after_the_update = engine.batches[1 + rounds :]
    assert all(request.source is None for batch in after_the_update for request in batch)  # what was cached is stale
    for tree, before in zip(trees, planted, strict=True):
        for b in range(len(tree.branches)):
            policy = ENDLESS if b < 4 else UPDATED
            assert tree.branches[b].logprobs == pytest.approx(sampled_by(policy, tree, b))
        assert spelled(tree)[:4] == spelled(before.tree)
    assert all(
        b.logprobs == pytest.approx(sampled_by(UPDATED, following[0].tree, i))
        for i, b in enumerate(following[0].tree.branches)
    )


def test_the_last_step_plants_nothing():
    engine = ScriptedEngine(ENDLESS, NEVER)
    grow = attentive(engine)
    trees, following = grow.fork(ATTNRL, grow.plant(ATTNRL, seedlings(0, 0), 5), Progress(), 5)
    assert following == []
    assert len(engine.batches[1]) == len(trees[0].branches) - 4


# --- seeds ----------------------------------------------------------------------------------------------------------


def spelled(tree):
    return [b.tokens.tolist() for b in tree.branches]


def everything(engine):
    """Rollouts with the signals of every method."""
    grow = attentive(engine)
    nothing = {"closing": lambda leaves: [np.zeros(len(tree.branches[b].tokens)) for tree, b in leaves]}
    return dataclasses.replace(grow, signals={**rollouts(None)[0].signals, **grow.signals, **nothing})


SMALL = {
    "grpo": ({"roots": 4}, {"sample_std": True}),
    "dr_grpo": ({"roots": 4}, {"aggregate": "token_mean"}),
    "treerl": ({"roots": 4, "forks": 2, "rounds": 2, "siblings": 2}, {"forks": 3}),
    "attnrl": ({"roots": 4, "max_forks": 2, "siblings": 2}, {"max_forks": 1}),
    "datpo": ({"roots": 4, "max_forks": 3, "max_siblings": 2, "alpha": [0, 0]}, {"max_forks": 1}),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_trees_and_another_number_the_same_base_rollouts(name):
    numbers, change = SMALL[name]
    grown = []
    for changed in ({}, {}, change):
        method = load(name, {**numbers, "clip": [0.2, 0.2], **changed})
        trees = grow_all(everything(ScriptedEngine(ENDLESS, NEVER)), method, problems(4), Progress(3), 11)
        grown.append([spelled(tree) for tree in trees])
    first, again, other = grown
    assert first == again
    assert [tree[:4] for tree in first] == [tree[:4] for tree in other]
    assert (first == other) == (name in ("grpo", "dr_grpo"))


def test_a_limit_of_the_path_leaves_a_branch_what_its_prefix_left():
    engine = ScriptedEngine(CHAIN, END)
    grow, _ = rollouts(lambda response: 0, engine)
    for limit, expected in (("branch", lambda at: 12), ("path", lambda at: 12 - at)):
        engine.batches.clear()
        (tree,) = grow_all(dataclasses.replace(grow, limit=limit), DATPO, problems(1), Progress(), 0)
        forks = [b.start for b in tree.branches[4:]]
        assert forks
        assert [request.max_new_tokens for request in engine.batches[1]] == [expected(at) for at in forks]
