import numpy as np
import pytest
from hypothesis import given
from tests.trees import PROBLEM, branch, random_trees, tree, tree_a, tree_b

from datpo.core.tree import RolloutTree


def test_blocks_of_worked_tree_a():
    spans = [(b.branch, b.start, b.stop, b.parent, b.leaves, b.terminal) for b in tree_a().blocks]
    assert spans == [
        (0, 0, 4, None, (0, 2, 3), False),
        (0, 4, 10, 0, (0,), True),
        (1, 0, 6, None, (1, 4, 5), False),
        (1, 6, 12, 2, (1,), True),
        (2, 4, 9, 0, (2,), True),
        (3, 4, 10, 0, (3,), True),
        (4, 6, 9, 2, (4,), True),
        (5, 6, 10, 2, (5,), True),
    ]
    assert tree_a().siblings == ((1, 4, 5), (3, 6, 7))
    assert tree_a().generated_tokens == 10 + 12 + 5 + 6 + 3 + 4


def test_blocks_of_worked_chain_b():
    blocks = tree_b().blocks
    assert [(b.start, b.stop, b.parent) for b in blocks[:3]] == [(0, 3, None), (3, 7, 0), (7, 10, 1)]
    assert [b.leaves for b in blocks[:3]] == [(0, 1, 2, 3, 4), (0, 3, 4), (0,)]
    assert [b.parent for b in blocks[3:]] == [0, 0, 1, 1]


def test_shared_prefixes_are_generated_once():
    # base of 10 tokens, fork at 6, branches of 5 and 7: 22 tokens generated, not the 34 on the leaf paths
    grown = tree(branch(None, 0, 10), branch(0, 6, 5), branch(0, 6, 7))
    assert grown.generated_tokens == 22
    assert max(len(grown.response(leaf)) for leaf in range(3)) == 13


@given(random_trees())
def test_blocks_tile_each_branch(grown):
    for index, b in enumerate(grown.branches):
        mine = [block for block in grown.blocks if block.branch == index]
        assert [mine[0].start, *(block.stop for block in mine)] == [*(block.start for block in mine), b.stop]
        assert all(len(block) > 0 for block in mine)
        assert [block.terminal for block in mine] == [False] * (len(mine) - 1) + [True]


@given(random_trees())
def test_the_block_chain_above_a_leaf_spells_its_response(grown):
    for leaf in range(len(grown.branches)):
        spelled = np.concatenate([grown.block_tokens(grown.blocks[b]) for b in grown.path(leaf)])
        assert spelled.tolist() == grown.response(leaf).tolist()


@given(random_trees())
def test_leaf_sets_nest_and_the_top_blocks_part_the_leaves(grown):
    for index, block in enumerate(grown.blocks):
        below = [other.leaves for other in grown.blocks if other.parent == index]
        if block.terminal:
            assert block.leaves == (block.branch,) and not below
        else:
            assert len(below) > 1
            assert sorted(leaf for leaves in below for leaf in leaves) == list(block.leaves)
    top = [leaf for block in grown.blocks if block.parent is None for leaf in block.leaves]
    assert sorted(top) == list(range(len(grown.branches)))


def test_a_fork_at_a_branchs_start_is_a_fork_of_its_parent():
    grown = tree(branch(None, 0, 6), branch(0, 3, 4), branch(1, 3, 2), branch(1, 5, 2))
    assert [b.parent for b in grown.branches] == [None, 0, 0, 1]
    again = grown.grow([branch(1, 3, 1), branch(0, 0, 2)])
    assert [b.parent for b in again.branches[-2:]] == [0, None]


def test_siblings_that_begin_with_the_same_token_stay_apart():
    grown = tree(branch(None, 0, 6), branch(0, 3, 2, tokens=[7, 8]), branch(0, 3, 2, tokens=[7, 8]))
    assert len(grown.blocks) == 4


@pytest.mark.parametrize("at", [7, 6, -1])
def test_forks_outside_a_branch_are_refused(at):
    with pytest.raises(ValueError, match="does not lie inside branch 0"):
        tree(branch(None, 0, 6), branch(0, at, 2))


def test_empty_branches_and_unanchored_roots_are_refused():
    with pytest.raises(ValueError, match="at least one token"):
        tree(branch(None, 0, 0))
    with pytest.raises(ValueError, match="position 0"):
        tree(branch(None, 2, 3))


def test_one_token_responses_have_one_block():
    grown = tree(branch(None, 0, 1), branch(None, 0, 1))
    assert [(b.start, b.stop, b.terminal) for b in grown.blocks] == [(0, 1, True)] * 2


def test_rewards_must_all_be_known():
    half = RolloutTree(PROBLEM, np.array([1])).grow([branch(None, 0, 2)])
    with pytest.raises(ValueError, match="problem p"):
        _ = half.rewards_L
    assert half.graded([1.0], ["right"]).rewards_L.tolist() == [1.0]
