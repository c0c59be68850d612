"""The viewer's pages as files: what they hold, and that nothing in them can leave its place."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.saved import SavedTree
from datpo.report.trees.layout import rows_of
from datpo.report.trees.viewer import inline_json, view
from tests.browser.trees import ATTACKS, ODD, Writer, grown, hostile_tree, plain_tree
from tests.trees import branch, random_trees, tree, tree_a


@pytest.fixture
def writer(tmp_path):
    return Writer(tmp_path / "checkpoint")


def data_of(path: Path):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(data)


def test_a_page_holds_the_tree_its_credit_and_its_tokens_texts(writer):
    data = data_of(writer.pages([plain_tree(writer)]) / "tree-0000.html")
    assert data["problem"]["id"] == "p/1" and data["problem"]["level"] == 1
    assert (data["step"], data["root"], data["method"], data["diversity"]) == (7, 0.5, "datpo", "file")
    said = [[data["words"][word] for word in branch["words"]] for branch in data["branches"]]
    assert said[0] == ["Six", " times", " seven", " is", " 42", ".", ""]
    assert said[2] == [" is", " forty", "-two", ""]
    blocks = data["blocks"]
    assert [(b["branch"], b["start"], b["stop"], b["parent"]) for b in blocks] == [
        *((0, 0, 3, None), (0, 3, 7, 0), (1, 0, 5, None), (2, 3, 7, 0), (3, 3, 6, 0)),
    ]
    # V(root) = 1/2 is the mean of the base rollouts, V of the fork 2/3; alpha = 0.2 as nothing is spent yet
    assert [b["value_start"] for b in blocks] == pytest.approx([1 / 2, 2 / 3, 1 / 2, 2 / 3, 2 / 3])
    assert [b["value_end"] for b in blocks] == pytest.approx([2 / 3, 1, 0, 1, 0])
    assert [b["base_advantage"] for b in blocks] == pytest.approx([1 / 6, 1 / 3, -1 / 2, 1 / 3, -2 / 3])
    assert [b["advantage"] for b in blocks] == pytest.approx([1 / 6, 1 / 3 + 0.05, -1 / 2, 1 / 3 + 0.1, -2 / 3])
    assert [b["row"] for b in data["branches"]] == [0, 3, 1, 2]


def test_signals_that_are_not_in_the_file_are_told_apart_from_zeros(writer):
    data = data_of(writer.pages([plain_tree(writer)]) / "tree-0000.html")
    assert data["branches"][0]["entropy"] == pytest.approx(np.linspace(0, 2, 7), abs=5e-4)
    assert data["branches"][0]["sentences"] == [5]  # of the sentences at 0 and 5; the end token is in none
    assert data["branches"][2]["sentences"] is None and data["branches"][0]["steps"] is None
    bare = writer.branch(None, 0, ["a", "b"], 1, logprobs=False)
    data = data_of(writer.pages([SavedTree(grown([bare]))]) / "tree-0000.html")
    assert data["branches"][0]["entropy"] is None and data["branches"][0]["logprobs"] is None
    assert data["diversity"] == "absent"


def rules_of(folder, branch=0):
    rules = data_of(folder / "tree-0000.html")["branches"][branch]["rules"]
    return {rule["rule"]: rule.get("at", rule.get("missing")) for rule in rules}


def test_other_rules_fork_a_base_rollout_as_often_as_it_was(writer):
    rules = rules_of(writer.pages([plain_tree(writer)]))
    assert list(rules) == [
        *("random", "fixed-seg", "atb", "atb-release", "tok-entropy", "tok-entropy-5", "tok-entropy-10"),
        "sent-entropy",
    ]
    # one fork of six tokens before the end; the surest token is the first, the least sure the end token
    assert rules["fixed-seg"] == [3] and rules["tok-entropy"] == [5]
    assert rules["sent-entropy"] == [1]  # sentence 1 starts at 5, and a fork after its first token lies behind the end
    assert rules["atb"] == "step" and rules["atb-release"] == "paragraph"
    assert len(rules["random"]) == 1 and 1 <= rules["random"][0] <= 5


def test_a_method_that_samples_the_chosen_token_anew_forks_before_it(writer):
    rules = rules_of(writer.pages([plain_tree(writer)], numbers=["fork_offset=at_start"]))
    assert rules["sent-entropy"] == [5]
    assert rules_of(writer.pages([plain_tree(writer)], method="treerl"))["sent-entropy"] == [5]


def test_a_rollout_that_was_not_forked_is_asked_for_three(writer):
    signals = ("entropy", "sentence", "step", "influence")
    whole = writer.branch(None, 0, list("abcdefghijklmnop"), 1, signals=signals)
    folder = writer.pages([SavedTree(grown([whole]))])
    rules = rules_of(folder)
    assert rules["fixed-seg"] == [4, 8, 12]
    assert len(rules["atb"]) == len(rules["random"]) == 3
    assert rules["atb-release"] == "paragraph"
    alone = writer.branch(None, 0, [], 1, signals=signals)  # an end token is no place to fork
    assert [at for at in rules_of(writer.pages([SavedTree(grown([alone]))])).values() if isinstance(at, list)] == [
        []
    ] * 7


@pytest.mark.parametrize(
    ("kept", "method", "source"),
    [
        ({"diversity_B": np.zeros(5)}, "datpo", "file"),
        ({"texts": tuple("abcde")}, "datpo", "texts"),
        ({}, "datpo", "absent"),
        ({"diversity_B": np.zeros(5)}, "grpo", "unread"),
    ],
)
def test_where_diversity_comes_from(writer, kept, method, source):
    saved = SavedTree(plain_tree(writer).tree, **kept)
    assert data_of(writer.pages([saved], method=method) / "tree-0000.html")["diversity"] == source


def test_blocks_that_are_not_trained_have_no_advantage(writer):
    """AttnRL leaves out base rollouts without a fork."""
    tree = plain_tree(writer).tree
    blocks = data_of(writer.pages([SavedTree(tree)], method="attnrl") / "tree-0000.html")["blocks"]
    assert [block["advantage"] is None for block in blocks] == [False, False, True, False, False]


@pytest.mark.parametrize("name", ["tree-0000.html", "index.html"])
def test_a_page_may_run_its_own_script_alone(writer, name):
    text = (writer.pages([hostile_tree(writer)]) / name).read_text(encoding="ascii")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for part, kind in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}';" in policy
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 2
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "<!--" not in text
    assert not re.findall(r"(?:src|href)=\"(?!index\.html)", text)
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}  # a name, no address
    for sink in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("):
        assert sink not in script


def test_inline_json_is_the_value_and_cannot_end_its_element():
    value = {"said": [*ATTACKS, *ODD, "\ud800", "</SCRIPT\n>"], "number": 1.5}
    text = inline_json(value)
    assert json.loads(text) == value
    assert text.isascii() and not set("<>&\n") & set(text)
    with pytest.raises(ValueError, match="JSON"):
        inline_json(float("nan"))


def test_only_the_trees_of_a_problem(writer):
    other = grown([writer.branch(None, 0, ["x"], 1)], Problem("other", "?", "1"))
    trees = [plain_tree(writer), SavedTree(other), plain_tree(writer)]
    folder = writer.pages(trees, "p/1")
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "tree-0000.html", "tree-0002.html"]
    assert [tree["page"] for tree in data_of(folder / "index.html")["trees"]] == ["tree-0000.html", "tree-0002.html"]
    first, last = data_of(folder / "tree-0000.html"), data_of(folder / "tree-0002.html")
    assert (first["previous"], first["next"], last["previous"], last["next"]) == (
        *(None, "tree-0002.html"),
        *("tree-0000.html", None),
    )
    with pytest.raises(InputError, match=r"no tree of problem 'q' in this file"):
        writer.pages(trees, "q")


def test_the_verb_keeps_what_else_is_in_the_folder_and_names_mistakes(writer, tmp_path, capsys):
    pages = writer.pages([plain_tree(writer)])
    (pages / "notes.txt").write_text("mine")
    call = ["view", "--trees", f"{writer.folder}/trees.jsonl", "--method", "datpo", "--out", f"{pages}"]
    before = (pages / "tree-0000.html").read_bytes()
    assert main([*call, "--model", f"{writer.folder}"]) == 0
    assert (pages / "notes.txt").read_text() == "mine"
    assert (pages / "tree-0000.html").read_bytes() == before  # the random rule's draw too
    assert main([*call, "--model", f"{tmp_path}/nowhere"]) == 2
    assert main([*call, "--model", f"{writer.folder}", "--set", "alpha=1"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "nowhere/tokenizer.json" in errors[0] and "alpha must be" in errors[1]
    with pytest.raises(InputError, match=r"nothing\.jsonl"):
        view(writer.folder / "nothing.jsonl", writer.folder, "datpo", [], pages)


def test_rows_of_worked_trees():
    assert rows_of(tree_a()) == [0, 3, 1, 2, 4, 5]
    # later forks stand above earlier ones, and a branch's own branches right beneath it
    nested = tree(
        branch(None, 0, 9, 1), branch(0, 2, 5, 0), branch(0, 6, 4, 0), branch(1, 4, 3, 1), branch(None, 0, 2, 1)
    )
    assert rows_of(nested) == [0, 2, 1, 3, 4]


@given(random_trees())
def test_no_line_from_a_fork_to_a_branch_crosses_a_bar(grown_tree):
    rows = rows_of(grown_tree)
    assert sorted(rows) == list(range(len(rows)))
    for index, one in enumerate(grown_tree.branches):
        if one.parent is None:
            continue
        assert rows[one.parent] < rows[index]
        between = [other for other, row in enumerate(rows) if rows[one.parent] < row < rows[index]]
        assert all(grown_tree.branches[other].start >= one.start for other in between)
