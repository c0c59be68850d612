import dataclasses

import numpy as np
import pytest
from tests.trees import grow_all

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.tree import Fork
from datpo.engines.scripted import ScriptedEngine
from datpo.methods import load
from datpo.search.budget import Progress
from datpo.search.forks import ForkRule
from datpo.search.rollout import Rollouts

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
