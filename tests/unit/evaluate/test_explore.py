import csv
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from datpo.core.errors import InputError
from datpo.core.problem import Problem, load_problems
from datpo.core.saved import load_graded_trees
from datpo.core.seeds import seed
from datpo.credit.diversity import lexical
from datpo.engines.scripted import ScriptedEngine
from datpo.evaluate.explore import COLUMNS, Chunk, Explorer, explore, measures, structures_of
from datpo.search.rollout import Rollouts
from tests.conftest import PROMPT
from tests.trees import branch, tree

ROOT = Path(__file__).resolve().parents[3]
TREE = {"max_forks": 3, "max_siblings": 2, "adaptive": False, "alpha": [0.0, 0.0], "clip": [0.2, 0.2]}
STRUCTURES = [
    {"name": "random", "method": "datpo", "numbers": {"roots": 1, "fork_rule": "random", **TREE}},
    {"name": "sent-entropy-2", "method": "datpo", "numbers": {"roots": 2, **TREE}},
    {"name": "parallel-4", "method": "grpo", "numbers": {"roots": 4, "clip": [0.2, 0.2]}},
    {
        "name": "treerl",
        "method": "treerl",
        "numbers": {"roots": 2, "forks": 2, "rounds": 2, "siblings": 1, "clip": [0.2, 0.2]},
    },
]
TRAIN = {
    "length_limit": "branch",
    "truncated": "graded",
    "graded_text": "response",
    "checker": "own",
    "prompts_per_step": 4,
    "max_new_tokens": 40,
    "temperature": 1.0,
    "engine": "hf",
    "generation_batch": 64,
    "precision": "float32",
    "embedder": "lexical",
}


def settings(**changes):
    return {
        "identity": {"scale": "test", "model": "small", "method": "base", "run": "base", "seed": 0},
        "exploration": "forks",
        "domain": "moves",
        "prompt": PROMPT,
        "data": {},
        "benchmark": "easy",
        "problems": 6,
        "repeats": 2,
        "structures": STRUCTURES,
        "train": TRAIN,
        "seed": 0,
        "bootstrap": 200,
        **changes,
    }


def options(folder, problems, model, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings(**changes), sort_keys=False))
    return {
        "config": folder / "config.yaml",
        "problems": problems,
        "model": model,
        "work": folder / "work",
        "out": folder / "out",
    }


def written(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def explored(tmp_path_factory, easy_problems, base_checkpoint):
    """A finished exploration."""
    folder = tmp_path_factory.mktemp("explored")
    explore(**options(folder, easy_problems, base_checkpoint))
    assert list((folder / "work").iterdir()) == []
    return folder / "out"


def trees_of(explored, name):
    return {(saved.step, saved.tree.problem.id): saved for saved in load_graded_trees(explored / f"trees/{name}.jsonl")}


def same_base(one, other):
    assert one.tokens.tolist() == other.tokens.tolist()
    assert (one.logprobs.tolist(), one.reward, one.verdict) == (other.logprobs.tolist(), other.reward, other.verdict)
    assert {name: values.tolist() for name, values in one.signals.items()} == {
        name: values.tolist() for name, values in other.signals.items()
    }


def test_every_structure_grows_from_the_same_base_rollouts(explored, easy_problems):
    asked = [problem.id for problem in load_problems(easy_problems)[:6]]
    largest = trees_of(explored, "parallel-4")
    assert list(largest) == [(repeat, name) for repeat in range(2) for name in asked]
    for name, roots in (("random", 1), ("sent-entropy-2", 2), ("treerl", 2)):
        trees = trees_of(explored, name)
        assert list(trees) == list(largest)
        for key, saved in trees.items():
            assert saved.tree.roots == tuple(range(roots))
            for base in range(roots):
                same_base(saved.tree.branches[base], largest[key].tree.branches[base])
    first, second = (largest[repeat, asked[0]].tree.branches[0].tokens.tolist() for repeat in range(2))
    assert first != second


def test_structures_are_forked_and_base_rollouts_keep_what_rules_read(explored):
    for saved in trees_of(explored, "random").values():
        spoken = len(saved.tree.branches[0].tokens) - (saved.tree.branches[0].finish == "stop")
        assert len(saved.tree.siblings) == min(3, spoken - 1)
        assert len(saved.tree.branches) == 1 + 2 * len(saved.tree.siblings)
        assert set(saved.tree.branches[0].signals) == {"entropy", "sentence", "step", "influence", "closing"}
        assert len(saved.texts) == len(saved.tree.blocks)
    for saved in trees_of(explored, "treerl").values():
        assert len(saved.tree.branches) == 2 * (1 + 2 * 2)
    assert any(saved.diversity_B.any() for saved in trees_of(explored, "random").values())
    assert not any(saved.diversity_B.any() for saved in trees_of(explored, "parallel-4").values())


def test_rollouts_csv_says_what_the_trees_say(explored):
    with open(explored / "rollouts.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 4 * 2 * 6
    names = {"random", "sent-entropy-2", "parallel-4", "treerl"}
    assert {row["structure"] for row in rows} == names
    known = {name: trees_of(explored, name) for name in names}
    for row in rows:
        found = known[row["structure"]][int(row["repeat"]), row["problem"]].tree
        assert int(row["leaves"]) == len(found.branches)
        assert int(row["right"]) == found.rewards_L.sum()
        assert int(row["tokens"]) == found.generated_tokens
    parallel = [row for row in rows if row["structure"] == "parallel-4"]
    assert {(row["forks"], row["sibling_diversity"], row["nnd"], row["wcr5"]) for row in parallel} == {
        ("0", "", "", "")
    }


class Unsteady(ScriptedEngine):
    """A sampler that never draws the same twice, as a GPU may do."""

    calls = count()

    def _one(self, request, handle):
        return super()._one(replace(request, seed=next(self.calls)), handle)


def scripted(engine):
    """Exploration of a small Markov chain whose token 3 ends a response; longer answers than 4 tokens are right."""
    chain = np.array([[0.0, 1.0, 0.0, 0.0], [0.1, 0.4, 0.4, 0.1], [0.1, 0.4, 0.4, 0.1], [0.0, 0.0, 0.0, 1.0]])
    engine = engine(chain, 3)

    def signal(leaves):
        return [np.arange(len(tree.branches[b].tokens)) // 2 for tree, b in leaves]

    def grade(leaves):
        return [(float(len(tree.response(leaf)) > 4), "right") for tree, leaf in leaves]

    signals = dict.fromkeys(("sentence", "step", "influence", "closing"), signal)
    rollouts = Rollouts(engine, grade, signals, max_new_tokens=12, context_window=64)
    policy = SimpleNamespace(decode=lambda tokens: "".join("abcd"[token] for token in tokens))
    explorer = Explorer(policy, rollouts, structures_of(STRUCTURES), lexical, seed=7)
    chunk = Chunk(3, [Problem(name, "?", "!") for name in "pq"], [np.array([0, 1])] * 2)
    return engine, explorer.trees(chunk)


def test_base_rollouts_are_shared_where_equal_seeds_give_other_bits():
    engine, trees = scripted(Unsteady)
    for name, roots in (("random", 1), ("sent-entropy-2", 2), ("treerl", 2)):
        for tree_, largest in zip(trees[name], trees["parallel-4"], strict=True):
            for base in range(roots):
                same_base(tree_.branches[base], largest.branches[base])
    assert len(engine.batches[0]) == 2 * 4  # the bases of both problems, once
    assert all(request.source is None for request in engine.batches[1])


def test_draws_are_named_by_seed_repeat_problem_and_branch():
    engine, trees = scripted(ScriptedEngine)
    bases = [seed(7, "rollout", problem, 0, 3, b) for problem in "pq" for b in range(4)]
    assert [request.seed for request in engine.batches[0]] == bases
    branches = [
        seed(7, "rollout", tree.problem.id, 0, 3, b) for tree in trees["random"] for b in range(1, len(tree.branches))
    ]
    assert [request.seed for request in engine.batches[1]] == branches
    assert engine.kept[1] is False


def test_an_interrupted_exploration_ends_in_the_same_bytes(
    tmp_path, easy_problems, base_checkpoint, explored, monkeypatch
):
    grown = []
    real = Explorer.grow

    def dies(self, chunk, folder):
        real(self, chunk, folder)
        grown.append((chunk.repeat, chunk.problems[0].id))
        if len(grown) == 2:
            raise KeyboardInterrupt

    given = options(tmp_path / "cut", easy_problems, base_checkpoint)
    monkeypatch.setattr(Explorer, "grow", dies)
    with pytest.raises(KeyboardInterrupt):
        explore(**given)
    assert not given["out"].exists()
    (chunks,) = given["work"].iterdir()
    assert [path.name for path in chunks.iterdir()] == ["000000"]
    (chunks / ".000001.partial").mkdir()  # as a kill leaves it
    (chunks / ".000001.partial/random.jsonl").write_text('{"version"')
    explore(**given)
    assert len(grown) == 2 + 3  # four chunks, of which the second was begun twice
    assert written(given["out"]) == written(explored)
    assert list(given["work"].iterdir()) == []


def test_chunks_that_are_not_as_they_were_written_are_grown_again(
    tmp_path, easy_problems, base_checkpoint, explored, monkeypatch
):
    """Four chunks, all there: one was cut at the end of a line, from one a file is gone, and one has another digit."""
    given = options(tmp_path / "cut", easy_problems, base_checkpoint)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *args, **kwargs: None)  # as if killed once all was grown
        explore(**given)
    shutil.rmtree(given["out"])
    (chunks,) = given["work"].iterdir()
    table = chunks / "000000/rollouts.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    next((chunks / "000001").glob("*.jsonl")).unlink()
    trees = next((chunks / "000003").glob("*.jsonl"))
    trees.write_text(trees.read_text().replace('"reward": 0.0', '"reward": 1.0', 1))
    grown = []
    real = Explorer.grow

    def counted(self, chunk, folder):
        grown.append(folder.name)
        real(self, chunk, folder)

    monkeypatch.setattr(Explorer, "grow", counted)
    explore(**given)
    assert grown == [".000000.partial", ".000001.partial", ".000003.partial"]
    assert written(given["out"]) == written(explored)


@pytest.mark.slow
def test_a_killed_exploration_ends_in_the_same_bytes(tmp_path, easy_problems, base_checkpoint):
    long = {"repeats": 12, "train": {**TRAIN, "prompts_per_step": 2}}
    whole = options(tmp_path / "whole", easy_problems, base_checkpoint, **long)
    explore(**whole)
    given = options(tmp_path / "cut", easy_problems, base_checkpoint, **long)
    command = [sys.executable, "-m", "datpo", "explore"]
    command += [word for name, value in given.items() for word in (f"--{name}", str(value))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    for ending in (signal.SIGTERM, signal.SIGKILL):
        before = len(list(given["work"].glob("*/0*")))
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while len(list(given["work"].glob("*/0*"))) < before + 2:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(ending)
        assert process.wait() == -ending
        assert not given["out"].exists()
    subprocess.run(command, env=environment, check=True)
    assert written(given["out"]) == written(whole["out"])


def test_chunks_of_another_exploration_are_not_taken(tmp_path, easy_problems, base_checkpoint, monkeypatch):
    real = Explorer.grow

    def dies(self, chunk, folder):
        real(self, chunk, folder)
        if folder.name == ".000001.partial":
            raise KeyboardInterrupt

    monkeypatch.setattr(Explorer, "grow", dies)
    with pytest.raises(KeyboardInterrupt):
        explore(**options(tmp_path / "cut", easy_problems, base_checkpoint, repeats=1))
    monkeypatch.setattr(Explorer, "grow", real)
    for folder in ("cut", "fresh"):
        explore(**options(tmp_path / folder, easy_problems, base_checkpoint, repeats=1, seed=1))
    assert len(list((tmp_path / "cut/work").iterdir())) == 1  # what was cut off still waits to be gone on with
    assert written(tmp_path / "cut/out") == written(tmp_path / "fresh/out")


def test_measures_of_a_tree_by_hand():
    """A base of 20 tokens and an end token, forked at 4, 5 and 10: distances 1, 6 and 5 of 20.

    Texts: fork 4 compares "x" with "x" (cos 1), fork 5 "x" with "y" (cos 0), fork 10 has a sibling without text.
    """
    grown = tree(
        branch(None, 0, 21, 0.0, finish="stop"),
        branch(0, 4, 3, 1.0),
        branch(0, 5, 2, 0.0),
        branch(0, 10, 2, 1.0),
    )
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert [(block.branch, block.start) for block in grown.blocks] == [
        *((0, start) for start in (0, 4, 5, 10)),
        *((1, 4), (2, 5), (3, 10)),
    ]
    row = measures("random", 2, grown, {1: x, 4: x, 2: x, 5: y, 3: x, 6: None})
    assert row == {
        "structure": "random",
        "problem": "p",
        "repeat": 2,
        "leaves": 4,
        "right": 2,
        "tokens": 28,
        "forks": 3,
        "sibling_diversity": pytest.approx((0 + 1) / 2),
        "nnd": pytest.approx((1 + 1 + 5) / 3 / 20),
        "mpd": pytest.approx((1 + 6 + 5) / 3 / 20),
        "wcr5": pytest.approx(1 / 3),
        "wcr10": pytest.approx(1 / 3),
        "length": 20,
    }


def test_localisation_is_a_mean_over_base_rollouts_that_have_two_forks():
    bases = [branch(None, 0, length, 0.0) for length in (10, 20, 30)]
    forks = [branch(0, 2, 1, 0.0), branch(0, 4, 1, 0.0), branch(1, 2, 1, 0.0), branch(1, 12, 1, 0.0)]
    lone = branch(2, 7, 1, 0.0)  # one fork point has no distance to another
    grown = tree(*bases, *forks, lone)
    row = measures("random", 0, grown, dict.fromkeys(range(len(grown.blocks))))
    assert row["mpd"] == row["nnd"] == pytest.approx((2 / 10 + 10 / 20) / 2)
    assert (row["forks"], row["wcr10"], row["length"]) == (5, 0.0, 20)
    assert math.isnan(row["sibling_diversity"])


@pytest.mark.parametrize("name", ["", "..", "a/b", "random"])
def test_names_that_are_no_file_names_are_refused(name):
    entry = {"method": "grpo", "numbers": {"roots": 2, "clip": [0.2, 0.2]}}
    with pytest.raises(InputError, match="structures: name"):
        structures_of([STRUCTURES[0], {"name": name, **entry}])
    with pytest.raises(InputError, match="at least one structure"):
        structures_of([])
