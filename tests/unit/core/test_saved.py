"""Trees on disk: what is saved comes back as it was, and a mistake in a tree written by hand is named."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.trees import branch, random_trees, tree, tree_a

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.saved import SavedTree, load_graded_trees, load_trees, save_trees

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def saved_trees(draw):
    """Trees with any finite numbers in every place that holds some."""
    grown = draw(random_trees(graded=draw(st.booleans())))
    branches = [
        replace(
            one,
            logprobs=np.array([draw(FLOATS) for _ in one.tokens]),
            signals={name: np.array([draw(FLOATS) for _ in one.tokens]) for name in draw(st.sets(st.text(max_size=3)))},
            finish=draw(st.sampled_from(["stop", "length"])),
            reward=draw(FLOATS | st.none()),
        )
        for one in grown.branches
    ]
    problem = Problem(
        "π/1", "Is\n$x$?", "\\frac12", draw(st.none() | st.integers(1, 5)), draw(st.none() | st.text()), "s"
    )
    count = len(grown.blocks)
    return SavedTree(
        replace(grown, problem=problem, branches=tuple(branches)),
        step=draw(st.integers(0, 10**9)),
        fraction=draw(st.floats(0, 1)),
        texts=draw(st.none() | st.lists(st.text(), min_size=count, max_size=count).map(tuple)),
        diversity_B=draw(st.none() | st.lists(FLOATS, min_size=count, max_size=count).map(np.array)),
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine draws slowly
@given(st.lists(saved_trees(), max_size=3))
def test_what_is_saved_comes_back_as_it_was(tmp_path_factory, trees):
    path = tmp_path_factory.mktemp("saved") / "trees.jsonl"
    save_trees(path, trees)
    loaded = load_trees(path)
    assert len(loaded) == len(trees)
    for before, after in zip(trees, loaded, strict=True):
        assert after.tree.blocks == before.tree.blocks
        assert after.tree.problem == before.tree.problem
        assert after.tree.prompt.tolist() == before.tree.prompt.tolist()
        assert (after.step, after.fraction, after.texts) == (before.step, before.fraction, before.texts)
        assert same(after.diversity_B, before.diversity_B)
        for mine, theirs in zip(after.tree.branches, before.tree.branches, strict=True):
            plain = {"tokens": None, "logprobs": None, "signals": None}
            assert replace(mine, **plain) == replace(theirs, **plain)
            assert mine.tokens.tolist() == theirs.tokens.tolist()
            assert mine.tokens.dtype == theirs.tokens.dtype
            assert same(mine.logprobs, theirs.logprobs)
            assert list(mine.signals) == list(theirs.signals)
            assert all(same(values, theirs.signals[name]) for name, values in mine.signals.items())


def same(some, others):
    """Equal to the last bit, the sign of a zero included."""
    return some is others is None or some.tobytes() == others.tobytes()


def test_a_half_grown_tree_grows_on_as_if_it_had_never_been_saved(tmp_path):
    whole = tree_a()
    half = replace(whole, branches=whole.branches[:2])
    save_trees(tmp_path / "t.jsonl", [SavedTree(half)])
    (loaded,) = load_trees(tmp_path / "t.jsonl")
    assert loaded.tree.grow(whole.branches[2:]).blocks == whole.blocks
    assert loaded.tree.rewards_L.tolist() == [1, 0]


def test_no_trees_are_saved_as_an_empty_file(tmp_path):
    save_trees(tmp_path / "t.jsonl", [])
    assert load_trees(tmp_path / "t.jsonl") == []
    with pytest.raises(InputError, match="no trees"):
        load_graded_trees(tmp_path / "t.jsonl")


BY_HAND = {
    "version": 1,
    "problem": {"id": "p", "problem": "What is 6 x 7?", "answer": "42"},
    "branches": [
        {"parent": None, "start": 0, "tokens": [5, 6, 7], "finish": "stop", "reward": 1},
        {"parent": 0, "start": 2, "tokens": [8], "finish": "length", "reward": 0},
    ],
}


def load_row(tmp_path, row, load=load_trees):
    """The one tree of a file whose second line is blank and whose third is `row`."""
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(BY_HAND) + "\n\n" + (row if isinstance(row, str) else json.dumps(row)) + "\n")
    return load(path)[1]


def test_a_tree_written_by_hand_needs_few_keys(tmp_path):
    loaded = load_row(tmp_path, BY_HAND)
    assert (loaded.step, loaded.fraction, loaded.texts, loaded.diversity_B) == (0, 0.0, None, None)
    assert loaded.tree.prompt.tolist() == []
    assert loaded.tree.branches[0].logprobs.tolist() == [0.0, 0.0, 0.0]
    assert loaded.tree.branches[0].signals == {}
    assert [one.verdict for one in loaded.tree.branches] == [None, None]
    assert [(block.branch, block.start, block.stop) for block in loaded.tree.blocks] == [
        (0, 0, 2),
        (0, 2, 3),
        (1, 2, 3),
    ]


def test_a_fork_at_the_start_of_a_branch_is_one_of_its_parent(tmp_path):
    third = {"parent": 1, "start": 2, "tokens": [9], "finish": "stop"}
    loaded = load_row(tmp_path, {**BY_HAND, "branches": [*BY_HAND["branches"], third]})
    assert loaded.tree.branches[2].parent == 0


def with_branch(**keys):
    """The tree by hand with other keys in its second branch."""
    first, second = BY_HAND["branches"]
    return {**BY_HAND, "branches": [first, {key: v for key, v in {**second, **keys}.items() if v != "absent"}]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 3 is not JSON"),
        ("[1]", "line 3 is not a JSON object"),
        ({**BY_HAND, "version": 2}, "line 3: version must be 1, not 2"),
        ({"problem": {}}, "line 3: version must be 1, not None"),
        ({**BY_HAND, "stepp": 3}, "line 3: problem 'p': unknown key 'stepp'"),
        ({"version": 1, "problem": BY_HAND["problem"]}, "key 'branches' is missing"),
        ({**BY_HAND, "branches": []}, "at least one branch"),
        ({**BY_HAND, "step": -1}, "step must be a whole number, 0 or more, not -1"),
        ({**BY_HAND, "step": True}, "step must be a whole number"),
        ({**BY_HAND, "fraction": 1.5}, "fraction must lie between 0 and 1, not 1.5"),
        ({**BY_HAND, "fraction": "1"}, "fraction must be a finite number, not '1'"),
        ({**BY_HAND, "prompt": [1.0]}, "prompt must be a list of whole numbers"),
        ({**BY_HAND, "problem": "p"}, "line 3: its problem must be a JSON object"),
        (
            {**BY_HAND, "problem": {"id": "q", "problem": " ", "answer": "1"}},
            "problem 'q': its problem: field 'problem'",
        ),
        ({**BY_HAND, "problem": {**BY_HAND["problem"], "lvl": 3}}, "unknown key 'lvl'"),
        ({**BY_HAND, "texts": ["a", "b"]}, "texts has 2 entries, but the tree has 3 blocks"),
        ({**BY_HAND, "texts": ["a", "b", None]}, "texts must be a list of strings"),
        ({**BY_HAND, "diversity": [0, 0, 0, 0]}, "diversity has 4 entries, but the tree has 3 blocks"),
        (with_branch(parent="absent"), "branch 1: key 'parent' is missing"),
        (with_branch(rewards=1), "branch 1: unknown key 'rewards'"),
        (with_branch(parent=1), "branch 1: its parent must stand before it, which branch 1 does not"),
        (with_branch(parent=-1), "branch 1: parent must be a whole number, 0 or more, not -1"),
        (with_branch(start=3), r"branch 1: fork point 3 does not lie inside branch 0, \(0, 3\)"),
        (with_branch(parent=None), "branch 1: a root branch starts at position 0, not 2"),
        (with_branch(tokens=[]), "branch 1: a branch needs at least one token"),
        (with_branch(tokens=[2**63]), "branch 1: tokens must be a list of whole numbers"),
        (with_branch(finish="eos"), "branch 1: finish must be one of stop, length, not 'eos'"),
        (with_branch(verdict=1), "branch 1: verdict must be a word or null, not 1"),
        (with_branch(reward="1"), "branch 1: reward must be a finite number, not '1'"),
        (with_branch(reward=float("nan")), "branch 1: reward must be a finite number, not nan"),
        (with_branch(reward=10**400), "branch 1: reward must be a finite number"),
        (with_branch(logprobs=[-1, -2]), "branch 1: logprobs has 2 numbers, but the branch has 1 tokens"),
        (with_branch(signals={"entropy": [None]}), "branch 1: signal 'entropy' must be a list of finite numbers"),
        (with_branch(signals=[]), "branch 1: signals must be a JSON object"),
    ],
)
def test_mistakes_are_named_with_file_line_problem_and_branch(tmp_path, row, message):
    with pytest.raises(InputError, match=message) as error:
        load_row(tmp_path, row)
    assert str(error.value).startswith(f"{tmp_path / 't.jsonl'}: line 3")


@pytest.mark.parametrize("reward", [None, "absent"])
def test_credit_needs_every_reward(tmp_path, reward):
    assert load_row(tmp_path, with_branch(reward=reward)).tree.branches[1].reward is None
    with pytest.raises(InputError, match="line 3: problem 'p': branch 1 has no reward"):
        load_row(tmp_path, with_branch(reward=reward), load_graded_trees)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        load_trees(tmp_path / "none.jsonl")


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_json_cannot_say_is_not_saved(tmp_path, value):
    broken = tree(branch(None, 0, 2, 1, logprobs=[0, value]))
    with pytest.raises(ValueError, match="cannot be saved"):
        save_trees(tmp_path / "t.jsonl", [SavedTree(broken)])
    assert not (tmp_path / "t.jsonl").exists()


def test_a_tree_has_one_text_a_block():
    with pytest.raises(ValueError, match="texts has 1 entries, but the tree has 8 blocks"):
        SavedTree(tree_a(), texts=("x",))
