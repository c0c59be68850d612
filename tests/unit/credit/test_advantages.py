"""Advantages worked out by hand, and against their definitions recomputed without blocks' own bookkeeping."""

import math

import numpy as np
import pytest
from hypothesis import given
from tests.trees import TREE_A_ROWS, branch, random_trees, tree, tree_a, tree_b

from datpo.credit.advantages import centred, global_and_local, global_and_local_released, linear_schedule


def test_centred_by_hand():
    # mean 1/4; nothing is divided by a standard deviation
    assert centred(np.array([1.0, 0, 0, 0])).tolist() == [0.75, -0.25, -0.25, -0.25]


def test_schedule_by_hand():
    # 0.2 -> 0: a quarter of the way 0.2 - 0.05; beyond the end it stays at the end
    assert [linear_schedule(0.2, 0.0, f) for f in (0, 0.25, 1, 1.5)] == pytest.approx([0.2, 0.15, 0, 0])
    assert linear_schedule(0.1, -0.1, 0.75) == pytest.approx(-0.05)


# --- TreeRL and AttnRL, the paper's form ----------------------------------------------------------------------------

# Tree A, blocks 1 to 8 of the drawing. V(root) = 4/6, V(f1) = V(f2) = 2/3.
# Root blocks (three leaves below): 2/3 - 2/3 + 2/3 - 2/3 = 0. A leaf with r = 1: 1 - 2/3 + 1 - 2/3 = 2/3,
# one with r = 0: -2/3 - 2/3 = -4/3; one leaf below, so the root is 1.
A_PAPER = [0, 2 / 3, -4 / 3, 2 / 3, 0, -4 / 3, 2 / 3, 2 / 3]

# Code: 4 of 6 right, c = 1 - 3/5 = 0.4 or 0 - 4/5 = -0.8. Root blocks: 0.4 - 0.8 + 0.4 = 0.
# A leaf's local is its c, as V' of its parent is 0: 0.4 + 0.4, or -0.8 - 0.8.
A_RELEASED = [0, 0.8, -1.6, 0.8, 0, -1.6, 0.8, 0.8]


@pytest.mark.parametrize(("form", "expected"), [(global_and_local, A_PAPER), (global_and_local_released, A_RELEASED)])
def test_worked_tree_a(form, expected):
    assert form(tree_a()) == pytest.approx([expected[row - 1] for row in TREE_A_ROWS], abs=1e-12)


def test_worked_chain_b():
    # V(root) = V(f1) = 3/5, V(f2) = 1. Blocks: root to f1, f1 to f2, f2 to end, branches of f1, branches of f2.
    # f1 to f2: 1 - 3/5 twice, three leaves below: (4/5) / sqrt 3. f2 to end: 1 - 3/5 + 1 - 1 = 2/5, and so are the
    # branches of f2. Branches of f1: 0 - 3/5 twice.
    assert global_and_local(tree_b()) == pytest.approx([0, 0.8 / math.sqrt(3), 0.4, -1.2, -1.2, 0.4, 0.4], abs=1e-12)


def test_worked_chain_b_as_released():
    # 3 of 5 right: c = 1 - 2/4 = 1/2 or 0 - 3/4 = -3/4. V': 0; 3/2 / 3^1.5 = 1 / (2 sqrt 3); then the leaves' own c.
    v_2 = 1 / (2 * math.sqrt(3))
    # A = V' + (V' - V' of the parent): 2 v_2; 2 (1/2) - v_2; 2 (-3/4) - 0
    expected = [0, 2 * v_2, 1 - v_2, -1.5, -1.5, 1 - v_2, 1 - v_2]
    assert global_and_local_released(tree_b()) == pytest.approx(expected, abs=1e-12)


def test_released_form_copies_the_local_advantage_where_it_is_zero():
    # One base (r = 1) with forks f1 (branch 1), f2 (branches 1, 0), f3 (branch 0), and a base with r = 0 alone.
    # 3 of 6 leaves are right: c = 1 - 2/5 = 0.6 or 0 - 3/5 = -0.6.
    grown = tree(
        branch(None, 0, 8, 1),
        branch(None, 0, 3, 0),
        branch(0, 2, 1, 1),
        branch(0, 4, 1, 1),
        branch(0, 4, 1, 0),
        branch(0, 6, 1, 0),
    )
    # Root to f1: five leaves, 3 x 0.6 - 2 x 0.6 = 0.6 in sum, V' = 0.6 / 5^1.5 = v. f1 to f2: 0.6 (2 - 2) = 0, local
    # 0 - v. f2 to f3: 0.6 (1 - 1) = 0, local 0 - 0, which becomes the one before: -v. f3 to end: 0.6 twice.
    v = 0.6 / 5**1.5
    chain = [2 * v, -v, -v, 1.2]
    # the base alone: -0.6 twice; f1's branch: 2 x 0.6 - v; those of f2 and f3 fork where V' = 0
    assert global_and_local_released(grown) == pytest.approx([*chain, -1.2, 1.2 - v, 1.2, -1.2, -1.2], abs=1e-12)


@pytest.mark.parametrize("form", [global_and_local, global_and_local_released])
@pytest.mark.parametrize("reward", [0, 1])
def test_a_response_alone_has_nothing_to_be_compared_with(form, reward):
    assert form(tree(branch(None, 0, 4, reward))).tolist() == [0.0]


@pytest.mark.parametrize("form", [global_and_local, global_and_local_released])
@given(grown=random_trees())
def test_equal_rewards_give_zeros(form, grown):
    for reward in (0.0, 1.0):
        alike = tree(*(branch(b.parent, b.start, 0, reward, b.tokens) for b in grown.branches))
        if len(alike.branches) > 1:
            assert not form(alike).any()


def passing(grown, block):
    """The leaves whose response runs through a block, found by walking from each leaf to the prompt."""
    found = []
    for leaf in range(len(grown.branches)):
        here, until = leaf, grown.branches[leaf].stop
        while here != block.branch and here is not None:
            here, until = grown.branches[here].parent, grown.branches[here].start
        if here == block.branch and until >= block.stop:
            found.append(leaf)
    return found


def block_before(grown, block):
    """The block that ends where this one starts, on the way to its own branch's end; None at the prompt."""
    (before,) = [(None, *line)[line.index(block)] for line in [[grown.blocks[b] for b in grown.path(block.branch)]]]
    return before


@given(random_trees())
def test_the_papers_form_is_its_definition(grown):
    rewards = np.array([b.reward for b in grown.branches])
    root = rewards.mean()
    for block, ours in zip(grown.blocks, global_and_local(grown), strict=True):
        below, before = passing(grown, block), block_before(grown, block)
        value = rewards[below].mean()
        parent = root if before is None else rewards[passing(grown, before)].mean()
        assert ours == pytest.approx(((value - root) + (value - parent)) / math.sqrt(len(below)), abs=1e-12)


@given(random_trees())
def test_the_released_form_is_its_definition_path_by_path(grown):
    rewards = [b.reward for b in grown.branches]
    if len(rewards) == 1:
        return
    c = [r - np.mean(rewards[:i] + rewards[i + 1 :]) for i, r in enumerate(rewards)]
    ours = global_and_local_released(grown)

    def value(block):
        below = passing(grown, block)
        return sum(c[leaf] for leaf in below) / math.sqrt(len(below)) / len(below)

    for leaf in range(len(rewards)):
        above, local = 0.0, None
        for b in grown.path(leaf):
            here = value(grown.blocks[b])
            step = here - above
            local = local if abs(step) < 1e-8 and local is not None else step
            assert ours[b] == pytest.approx(here + local, abs=1e-9)
            above = here
