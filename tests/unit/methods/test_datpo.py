"""DATPO against the worked trees, and what must hold on any tree."""

import numpy as np
import pytest
from hypothesis import given
from tests.trees import TREE_A_ROWS, branch, random_trees, tree, tree_a, tree_b

from datpo.credit.diversity import released_groups, siblings
from datpo.credit.values import VALUES, all_descendants, start_values, value_of_root
from datpo.methods import load
from datpo.methods.datpo import base_advantages
from datpo.search.budget import Progress, difficulty_adaptive

NUMBERS = {"roots": 4, "max_forks": 3, "max_siblings": 4, "alpha": [0.2, 0.0], "clip": [0.2, 0.2]}

# Worked tree A, blocks 1 to 8 of the drawing in tests/trees.py.
A_ALL_ROOT_BASE = [1 / 6, 1 / 3, -2 / 3, 1 / 3, 1 / 6, -2 / 3, 1 / 3, 1 / 3]
A_ALL_ROOT_ALL = [0, 1 / 3, -2 / 3, 1 / 3, 0, -2 / 3, 1 / 3, 1 / 3]
A_BRANCHES = [0, 1 / 2, -1 / 2, 1 / 2, 1 / 2, -1, 0, 0]


@pytest.mark.parametrize(
    ("value", "root", "expected"),
    [
        ("all_descendants", "base", A_ALL_ROOT_BASE),
        ("all_descendants", "all", A_ALL_ROOT_ALL),
        ("branches_only", "base", A_BRANCHES),
        ("branches_and_base", "base", A_ALL_ROOT_BASE),  # one fork per base: the same as all descendants
    ],
)
def test_worked_tree_a(value, root, expected):
    ours = base_advantages(tree_a(), value, root)
    assert ours == pytest.approx([expected[row - 1] for row in TREE_A_ROWS])


@pytest.mark.parametrize(
    ("value", "expected"),  # blocks →f1 (less V(root) = 1), f1→f2, f2→end, f1's branches, f2's branches
    [
        ("all_descendants", [3 / 5 - 1, 2 / 5, 0, -3 / 5, -3 / 5, 0, 0]),
        ("branches_only", [0 - 1, 1, 0, 0, 0, 0, 0]),
        ("branches_and_base", [1 / 3 - 1, 2 / 3, 0, -1 / 3, -1 / 3, 0, 0]),
    ],
)
def test_worked_chain_b(value, expected):
    assert base_advantages(tree_b(), value) == pytest.approx(expected)


@given(random_trees())
def test_advantages_telescope_to_reward_minus_root_value(grown):
    for value in VALUES:
        if value != "all_descendants" and any(b.parent is not None for b in grown.branches if b.parent):
            continue  # the released estimators know forks of base trajectories only
        for root in ("base", "all"):
            ours = base_advantages(grown, value, root)
            for leaf, reward in enumerate(grown.rewards_L):
                total = ours[list(grown.path(leaf))].sum()
                assert total == pytest.approx(reward - value_of_root(grown, root))


@given(random_trees())
def test_children_of_a_fork_weighted_by_their_leaves_sum_to_zero(grown):
    ours = base_advantages(grown)
    for group in grown.siblings:
        assert sum(len(grown.blocks[b].leaves) * ours[b] for b in group) == pytest.approx(0, abs=1e-12)


@given(random_trees())
def test_renumbering_siblings_changes_nothing(grown):
    order = _mirrored(grown)
    place = {old: new for new, old in enumerate(order)}
    branches = [grown.branches[old] for old in order]
    moved = [branch(None if b.parent is None else place[b.parent], b.start, 0, b.reward, b.tokens) for b in branches]
    ours, theirs = (_by_span(t) for t in (grown, tree(*moved)))
    assert ours == {(order[b], start): pytest.approx(v) for (b, start), v in theirs.items()}


def _mirrored(grown):
    """Branches in an order that reverses siblings but keeps parents first."""
    children = {}
    for index, b in enumerate(grown.branches):
        children.setdefault(b.parent, []).append(index)
    order, stack = [], list(children[None])
    while stack:
        here = stack.pop()
        order.append(here)
        stack += children.get(here, [])
    return order


def _by_span(grown):
    return {(b.branch, b.start): v for b, v in zip(grown.blocks, base_advantages(grown), strict=True)}


def test_equal_rewards_give_no_signal():
    for reward in (0, 1):
        grown = tree(branch(None, 0, 4, reward), branch(None, 0, 4, reward), branch(0, 2, 2, reward))
        assert base_advantages(grown) == pytest.approx(np.zeros(4))


def test_diversity_lifts_positive_blocks_only_and_is_annealed():
    credit = load("datpo", NUMBERS).credit
    diversity = np.full(8, 0.10)
    base = base_advantages(tree_a())
    at_start = credit(tree_a(), Progress(0, 0.0), diversity)
    assert at_start == pytest.approx(base + np.where(base > 0, 0.02, 0))
    assert at_start[TREE_A_ROWS.index(4)] == pytest.approx(1 / 3 + 0.02)
    assert credit(tree_a(), Progress(5, 0.5), diversity) == pytest.approx(base + np.where(base > 0, 0.01, 0))
    assert credit(tree_a(), Progress(9, 1.0), diversity) == pytest.approx(base)


def test_embedder_is_needed_only_where_alpha_is_not_zero_throughout():
    assert load("datpo", NUMBERS).groups is siblings
    assert load("datpo", {**NUMBERS, "alpha": [0.0, -0.2]}).groups is siblings
    assert load("datpo", {**NUMBERS, "compared": "released"}).groups is released_groups
    assert load("datpo", {**NUMBERS, "alpha": [0.0, 0.0]}).groups is None


@pytest.mark.parametrize(
    ("right", "plan", "leaves", "blocks"),
    [(0, (3, 4), 52, 64), (1, (3, 3), 40, 52), (2, (2, 2), 20, 28), (3, (1, 1), 8, 12), (4, (0, 0), 4, 4)],
)
def test_budget_leaves_and_blocks(right, plan, leaves, blocks):
    roots = [branch(None, 0, 20, float(i < right)) for i in range(4)]
    plan_here = difficulty_adaptive(3, 4)(tree(*roots), Progress(), None)
    assert (plan_here.forks, plan_here.siblings) == plan
    forks = [branch(root, 4 * (fork + 1), 3, 0) for root in range(4) for fork in range(plan[0]) for _ in range(plan[1])]
    grown = tree(*roots, *forks)
    assert (len(grown.branches), len(grown.blocks)) == (leaves, blocks)


def test_budget_is_not_fooled_by_rounding():
    # 3 x (1 - 2/3) is 1.0000000000000002 in floating point
    plan = difficulty_adaptive(3, 3)(tree(*(branch(None, 0, 9, r) for r in (1, 1, 0))), Progress(), None)
    assert (plan.forks, plan.siblings) == (1, 1)


def test_values_at_the_start_of_a_block_are_those_at_the_end_of_its_parent():
    values = all_descendants(tree_b())
    assert (
        start_values(tree_b(), values, 1.0).tolist()
        == [1.0, values[0], values[1], values[0], values[0]] + [values[1]] * 2
    )
