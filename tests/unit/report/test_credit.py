"""The verb `credit`: what a method says about trees on disk, on the worked trees and end to end."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from datpo.__main__ import main
from datpo.core.saved import SavedTree, save_trees
from datpo.methods import load
from datpo.report.credit import PROJECT, credit_of_blocks
from datpo.search.budget import Progress
from tests.trees import TREE_A_ROWS, branch, tree, tree_a, tree_b


@pytest.fixture
def credit(tmp_path, capsys):
    """Saves trees, runs the verb on them with more arguments, and gives its rows."""

    def run(trees, *arguments):
        save_trees(tmp_path / "trees.jsonl", trees)
        assert main(["credit", str(tmp_path / "trees.jsonl"), *arguments]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def column(rows, name):
    return [row[name] for row in rows]


# Blocks 1 to 8 of the drawing of tree A in tests/trees.py.
A_BASE = [1 / 6, 1 / 3, -2 / 3, 1 / 3, 1 / 6, -2 / 3, 1 / 3, 1 / 3]
A_VALUES = [2 / 3, 1, 0, 1, 2 / 3, 0, 1, 1]
A_STARTS = [1 / 2, 2 / 3, 2 / 3, 2 / 3, 1 / 2, 2 / 3, 2 / 3, 2 / 3]
IN_ORDER = [row - 1 for row in TREE_A_ROWS]


def test_datpo_on_worked_tree_a(credit):
    rows = credit([SavedTree(tree_a())], "--method", "datpo")
    assert list(rows[0]) == [
        *("problem", "tree", "branch", "start", "stop", "leaves", "value_start", "value_end"),
        *("base_advantage", "diversity", "advantage", "pull", "push"),
    ]
    assert {(row["problem"], row["tree"], row["diversity"]) for row in rows} == {("p", 0, 0)}
    spans = [(row["branch"], row["start"], row["stop"], row["leaves"]) for row in rows]
    assert spans[:3] == [(0, 0, 4, [0, 2, 3]), (0, 4, 10, [0]), (1, 0, 6, [1, 4, 5])]
    base = [A_BASE[i] for i in IN_ORDER]
    assert column(rows, "value_start") == pytest.approx([A_STARTS[i] for i in IN_ORDER])
    assert column(rows, "value_end") == pytest.approx([A_VALUES[i] for i in IN_ORDER])
    assert column(rows, "base_advantage") == column(rows, "advantage") == pytest.approx(base)
    assert column(rows, "pull") == pytest.approx([max(a, 0) for a in base])
    assert column(rows, "push") == pytest.approx([max(-a, 0) for a in base])


def test_datpo_on_worked_chain_b_in_the_order_of_the_file(credit):
    rows = credit([SavedTree(tree_a()), SavedTree(tree_b())], "--method", "datpo")
    rows = [row for row in rows if row["tree"] == 1]
    assert column(rows, "value_end") == pytest.approx([3 / 5, 1, 1, 0, 0, 1, 1])
    assert column(rows, "advantage") == pytest.approx([3 / 5 - 1, 2 / 5, 0, -3 / 5, -3 / 5, 0, 0])


def test_numbers_of_the_command_line_lie_over_those_of_the_file(credit):
    chain = [SavedTree(tree_b())]
    rows = credit(chain, "--method", "datpo", "--set", "value=branches_only", "--set", "root_value=all")
    # V(f1) = 0 over its branches, V(f2) = 1; V(root) = 3/5 over all leaves
    assert column(rows, "value_end") == pytest.approx([0, 1, 1, 0, 0, 1, 1])
    assert column(rows, "advantage") == pytest.approx([-3 / 5, 1, 0, 0, 0, 0, 0])


def test_grpo_on_worked_tree_a(credit):
    # rewards 1 0 0 1 1 1: mean 2/3, population std sqrt(2)/3; a is the advantage of a right leaf, -2a of a wrong one
    a = (1 / 3) / (np.sqrt(2) / 3 + 1e-4)
    rows = credit([SavedTree(tree_a())], "--method", "grpo")
    # blocks 1 and 5 stand above the rewards (1, 0, 1) and (0, 1, 1), the others above one leaf each
    pull = [2 * a, a, 0, a, 2 * a, 0, a, a]
    push = [2 * a, 0, 2 * a, 0, 2 * a, 2 * a, 0, 0]
    mean = [0, a, -2 * a, a, 0, -2 * a, a, a]
    assert column(rows, "pull") == pytest.approx([pull[i] for i in IN_ORDER])
    assert column(rows, "push") == pytest.approx([push[i] for i in IN_ORDER])
    assert column(rows, "advantage") == pytest.approx([mean[i] for i in IN_ORDER], abs=1e-12)
    assert column(rows, "value_start")[0] == pytest.approx(2 / 3)  # of all leaves: GRPO knows no base rollouts


def test_grpo_on_worked_chain_b(credit):
    # rewards 1 0 0 1 1: mean 3/5, population std sqrt(6)/5
    right, wrong = (np.array([2, -3]) / 5) / (np.sqrt(6) / 5 + 1e-4)
    rows = credit([SavedTree(tree_b())], "--method", "grpo")
    assert column(rows, "leaves")[:2] == [[0, 1, 2, 3, 4], [0, 3, 4]]
    ends = [right, wrong, wrong, right, right]
    assert column(rows, "advantage") == pytest.approx([0, right, *ends], abs=1e-12)
    assert column(rows, "pull") == pytest.approx([3 * right, 3 * right, *np.maximum(ends, 0)])
    assert column(rows, "push") == pytest.approx([-2 * wrong, 0, *np.maximum(np.negative(ends), 0)])


def test_diversity_in_the_file_lifts_positive_blocks_at_the_saved_point_of_the_run(credit):
    saved = SavedTree(tree_a(), step=5, fraction=0.5, diversity_B=np.full(8, 0.1))
    base = np.array([A_BASE[i] for i in IN_ORDER])
    rows = credit([saved], "--method", "datpo", "--set", "alpha=[0.2, 0]")  # half way: 0.1 x 0.1 = 0.01
    assert column(rows, "advantage") == pytest.approx(base + np.where(base > 0, 0.01, 0))
    rows = credit([saved], "--method", "datpo", "--set", "alpha=[2e-1,0.2]")  # worked block 4: 1/3 + 0.02
    assert column(rows, "advantage")[TREE_A_ROWS.index(4)] == pytest.approx(1 / 3 + 0.02)
    assert column(rows, "base_advantage") == pytest.approx(base)
    assert set(column(rows, "diversity")) == {0.1}


def test_diversity_is_computed_from_texts_where_the_file_has_none(credit):
    # fork f1 has blocks 2, 3, 4 that say a, a, b; cos is 1 or 0, so Div = 1 - mean over the two others
    said = dict(zip(range(1, 9), ["root", "a", "a", "b", "root", "c", "", " c "], strict=True))
    expected = [0, 1 / 2, 1 / 2, 1, 0, 0, 0, 0]  # fork f2 says c, nothing, c
    alike = replace(tree_a(), branches=tuple(replace(b, tokens=0 * b.tokens) for b in tree_a().branches))
    spoken = SavedTree(alike, texts=tuple(said[row] for row in TREE_A_ROWS))
    silent = SavedTree(tree_b())
    rows = credit([silent, spoken, spoken], "--method", "datpo")
    expected = [expected[i] for i in IN_ORDER]
    assert column(rows, "diversity") == pytest.approx([0.0] * 7 + expected + expected)
    kept = replace(spoken, diversity_B=np.full(8, 0.25))
    assert set(column(credit([kept], "--method", "datpo"), "diversity")) == {0.25}
    rows = credit([kept], "--method", "datpo", "--embedder", "lexical")
    assert column(rows, "diversity") == pytest.approx(expected)
    assert set(column(credit([spoken], "--method", "grpo"), "diversity")) == {0}  # it reads none


def test_the_tree_in_the_docs_gives_the_table_in_the_docs(tmp_path, capsys):
    page = (PROJECT / "docs" / "trees.md").read_text(encoding="utf-8")
    written = json.loads(re.search(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1])
    (tmp_path / "trees.jsonl").write_text(json.dumps(written))
    assert main(["credit", str(tmp_path / "trees.jsonl"), "--method", "datpo"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    head, table = re.search(r"^(\| branch \|.*)\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE).groups()
    names = head.strip("| ").split(" | ")
    assert table.splitlines() == ["| " + " | ".join(in_table(row[name]) for name in names) + " |" for row in rows]


def in_table(value):
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def test_leaves_that_are_not_trained_count_for_nothing():
    grpo = load("grpo", {"roots": 4, "clip": [0.2, 0.2]})
    grown = tree(branch(None, 0, 4, 1), branch(0, 2, 2, 0), branch(None, 0, 3, 0), branch(None, 0, 3, 0))
    # rewards 1 0 0 0: mean 1/4, population std sqrt(3)/4; leaves 1 and 3 are dropped
    right, wrong = (np.array([3, -1]) / 4) / (np.sqrt(3) / 4 + 1e-4)
    method = replace(grpo, keep=lambda tree: np.array([True, False, True, False]))
    rows = list(credit_of_blocks(method, grown, Progress(), np.zeros(5)))
    assert column(rows, "leaves") == [[0, 1], [0], [1], [2], [3]]
    assert column(rows, "advantage") == pytest.approx([right, right, None, wrong, None])
    assert column(rows, "base_advantage") == column(rows, "advantage")
    assert column(rows, "pull") == pytest.approx([right, right, 0, 0, 0])
    assert column(rows, "push") == pytest.approx([0, 0, 0, -wrong, 0])


@pytest.mark.parametrize("name", sorted(path.stem for path in (PROJECT / "config" / "methods").glob("*.yaml")))
def test_every_method_says_something_about_saved_trees(credit, name):
    rows = credit([SavedTree(tree_a())], "--method", name)
    assert len(rows) == 8
    assert sum(row["pull"] for row in rows) > 0 and sum(row["push"] for row in rows) > 0


def test_equal_rewards_give_neither_pull_nor_push(credit):
    same = tree(branch(None, 0, 4, 1), branch(0, 2, 2, 1))
    for row in credit([SavedTree(same)], "--method", "datpo"):
        assert (row["advantage"], row["pull"], row["push"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "grop"], "method 'grop' has no file .*known methods: .*grpo"),
        (["--method", "grpo", "--set", "rootz=4"], "has no number 'rootz'"),
        (["--method", "grpo", "--set", "roots"], "--set wants key=value, not 'roots'"),
        (["--method", "grpo", "--set", "clip=[1"], r"--set clip=\[1: '\[1' is not YAML"),
        (["--method", "datpo", "--embedder", "lexical"], "trees.jsonl: problem 'p': no texts that --embedder could"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, arguments, message):
    save_trees(tmp_path / "trees.jsonl", [SavedTree(tree_a())])
    assert main(["credit", str(tmp_path / "trees.jsonl"), *arguments]) == 2
    printed = capsys.readouterr()
    assert re.match(rf"datpo credit: .*{message}.*\n\Z", printed.err)
    assert printed.out == ""


def test_a_leaf_without_a_reward_is_named(tmp_path, capsys):
    save_trees(tmp_path / "trees.jsonl", [SavedTree(tree_a()), SavedTree(tree(branch(None, 0, 2)))])
    assert main(["credit", str(tmp_path / "trees.jsonl"), "--method", "grpo"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "trees.jsonl: line 2: problem 'p': branch 0 has no reward" in printed.err
