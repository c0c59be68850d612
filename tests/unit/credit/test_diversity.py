import numpy as np
import pytest
from tests.trees import branch, tree

from datpo.credit.diversity import lexical, sibling_diversity

# token t is the word below; 9 is an end token without text
WORDS = {1: "east ", 2: "north ", 3: "west ", 9: ""}
VECTORS = {"east": [1.0, 0.0], "north": [0.0, 1.0], "west": [-1.0, 0.0]}


def decode(tokens):
    return "".join(WORDS[int(t)] for t in tokens)


def embed(texts):
    return np.array([VECTORS[text] for text in texts])


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
    def refuse(texts):
        raise AssertionError("nothing to embed")

    (ours,) = sibling_diversity([tree(branch(None, 0, 2, 1, [1, 2]))], decode, refuse)
    assert ours.tolist() == [0.0]


@pytest.mark.parametrize("text", ["4", "+4", " +4", "\u00e9"])
def test_short_texts_have_unit_vectors_too(text):
    one, other = lexical([text, text])
    assert one @ other == pytest.approx(1)


def test_lexical_vectors_are_unit_and_tell_texts_apart():
    vectors = lexical(["From 10 +4 = 14.", "From 10 +4 = 14.", "From 14 *3 = 42."])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.9
