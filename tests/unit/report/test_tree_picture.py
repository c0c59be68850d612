"""Figure 3: which tree is drawn, and what of it."""

import re

import numpy as np
import pytest

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.core.saved import SavedTree
from datpo.report.trees.picture import chosen_tree, figure3, heights
from tests.browser.trees import Writer, grown, hostile_tree, plain_tree
from tests.trees import branch, tree, tree_a, tree_b


@pytest.fixture
def drawn(tmp_path):
    """Draws trees, and gives the figure's SVG."""

    def draw(writer, trees, method="datpo"):
        writer.pages(trees)
        figure3(writer.folder / "trees.jsonl", writer.folder, method, [], tmp_path / "figure3.png")
        assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
        return (tmp_path / "figure3.svg").read_text()

    return draw


@pytest.fixture
def writer(tmp_path):
    return Writer(tmp_path / "checkpoint")


def test_mixed_rewards_come_before_forks_and_the_first_of_equals_is_drawn():
    uniform = tree(*(branch(None, 0, 9, 0), branch(0, 2, 5, 0), branch(0, 4, 5, 0), branch(0, 6, 5, 0)))
    single = tree(branch(None, 0, 9, 0), branch(0, 2, 5, 1))
    trees = [SavedTree(one) for one in (uniform, single, tree_a(), tree_b())]
    assert chosen_tree(trees) == 2  # two forks, as tree b
    assert chosen_tree(trees[:2]) == 1
    assert chosen_tree(trees[:1]) == 0


def test_values_advantages_and_quotes(drawn, writer):
    svg = drawn(writer, [plain_tree(writer)])
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    assert "4 leaves, 2 right (dots); V(root) = 0.50" in texts
    assert "0.67" in texts  # the value of the only fork point
    note = " ".join(texts)
    assert "Problem: “What is 6 x 7?”" in note
    assert "Highest advantage (+0.43): “is forty-two”; lowest advantage (−0.67): “makes 13”." in note


def test_equal_trees_make_equal_files(drawn, writer):
    assert drawn(writer, [plain_tree(writer)]) == drawn(writer, [plain_tree(writer)])


@pytest.mark.filterwarnings("error")
def test_hostile_and_odd_texts_are_drawn_as_text(drawn, writer):
    svg = drawn(writer, [hostile_tree(writer)])
    assert "<script" not in svg and "&lt;script&gt;" in svg


@pytest.mark.filterwarnings("error")
def test_a_single_branch_without_credit(drawn, writer):
    assert ">1 leaf, 1 right (dots); V(root) = 1.00<" in drawn(
        writer, [SavedTree(grown([writer.branch(None, 0, [], 1)]))]
    )


def test_a_method_that_trains_a_part_is_refused(drawn, writer):
    with pytest.raises(InputError, match="attnrl trains a part of the tree alone"):
        drawn(writer, [plain_tree(writer)], "attnrl")


def test_base_rollouts_stand_apart():
    gaps = np.diff(sorted(heights(tree_a())))
    assert np.flatnonzero(gaps > 1).tolist() == [2]


def test_the_verb(writer, tmp_path, capsys):
    writer.pages([plain_tree(writer)])
    call = ["figure3", "--trees", f"{writer.folder}/trees.jsonl", "--method", "datpo", "--out", f"{tmp_path}/f.png"]
    assert main([*call, "--model", f"{writer.folder}"]) == 0
    assert main([*call, "--model", f"{tmp_path}"]) == 2
    assert "tokenizer.json" in capsys.readouterr().err
