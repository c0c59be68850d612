import json
from pathlib import Path

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.core.problem import load_problems
from datpo.data.moves import Puzzle
from datpo.data.prepare import prepare_data
from datpo.data.sources import normalised

SHARED = Path(__file__).resolve().parents[4] / "shared"
MOVES = {
    "domain": "moves",
    "seed": 3,
    "train": {"levels": [2, 3], "count": 40},
    "validation": {"levels": [2, 3], "count": 10},
    "benchmarks": {"easy": {"levels": [2], "count": 10}, "hard": {"levels": [7, 8], "count": 10}},
}


@pytest.fixture
def prepare(tmp_path):
    """Prepare the data of some settings, and return the folder."""

    def prepare(settings):
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
        prepare_data(tmp_path / "config.yaml", tmp_path / "data")
        return tmp_path / "data"

    return prepare


@pytest.fixture
def write(tmp_path):
    """Write rows as JSON Lines, and return the path."""

    def write(name, *rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


def row(id, problem=None, answer="1", **more):
    return {"id": id, "problem": f"What is {id}?" if problem is None else problem, "answer": answer, **more}


def test_move_puzzles(prepare):
    out = prepare(MOVES)
    identities = {}
    for name in ("train", "validation", "benchmarks/easy", "benchmarks/hard"):
        problems = load_problems(out / f"{name}.jsonl")
        identities[name] = {Puzzle.parse(problem.problem).identity for problem in problems}
    assert [len(found) for found in identities.values()] == [40, 10, 10, 10]
    assert len(set.union(*identities.values())) == 70
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["sets"]["train"] == {"problems": 40, "levels": {"2": 20, "3": 20}}
    assert manifest["sets"]["benchmarks/hard"] == {"problems": 10, "levels": {"7": 5, "8": 5}}


def test_another_benchmark_changes_no_other_set(prepare):
    before = {path: path.read_bytes() for path in prepare(MOVES).rglob("*.jsonl")}
    prepare({**MOVES, "benchmarks": {"first": {"levels": [2], "count": 30}, **MOVES["benchmarks"]}})
    assert all(path.read_bytes() == content for path, content in before.items())


def test_local_files(prepare, write):
    out = prepare(
        {
            "seed": 0,
            "train": {"path": write("a.jsonl", *(row(f"a{i}", level=1 + i % 2) for i in range(10))), "count": 10},
            "validation": {"from_train": 3},
            "benchmarks": {"b": {"path": write("b.jsonl", row("b0"), row("b1"), row("b2")), "drop": ["b1"]}},
        }
    )
    train, validation = load_problems(out / "train.jsonl"), load_problems(out / "validation.jsonl")
    assert (len(train), len(validation)) == (7, 3)
    assert {problem.id for problem in train + validation} == {f"a{i}" for i in range(10)}
    assert [problem.id for problem in load_problems(out / "benchmarks/b.jsonl")] == ["b0", "b2"]


def test_a_data_set_of_the_hub(prepare, write):
    rows = [
        {"unique_id": "t/1", "question": "1+1?", "key": 2, "level": "Level 3", "type": "Algebra"},
        {"unique_id": "t/2", "question": "1+2?", "key": 3, "level": "Level ?", "type": None},
    ]
    local = {"hub": "json", "data_files": write("hub.jsonl", *rows), "fields": {"answer": "key"}, "count": 2}
    other = {"path": write("a.jsonl", row("a0"))}
    out = prepare({"seed": 0, "train": local, "validation": other, "benchmarks": {}})
    first, second = load_problems(out / "train.jsonl")
    assert (first.id, first.problem, first.answer, first.level, first.subject) == ("t/1", "1+1?", "2", 3, "Algebra")
    assert (second.level, second.subject) == (None, None)

    with pytest.raises(InputError, match=r"'train': no column for 'answer' among \['unique_id', .*'key'"):
        prepare({"seed": 0, "train": {**local, "fields": {}}, "validation": other, "benchmarks": {}})
    with pytest.raises(InputError, match=r"cannot load 'json'.*check its name, `revision` and `split`"):
        prepare({"seed": 0, "train": {**local, "split": "nowhere"}, "validation": other, "benchmarks": {}})


def test_an_empty_key_of_the_hub_can_be_set_aside(prepare, write):
    path = write("hub.jsonl", {"id": "x", "problem": "p", "answer": None}, {"id": "y", "problem": "q", "answer": "1"})
    settings = {
        "seed": 0,
        "train": {"hub": "json", "data_files": path},
        "validation": {"path": write("a.jsonl", row("a0"))},
        "benchmarks": {},
    }
    with pytest.raises(InputError, match="problem 'x': field 'answer' is empty; set it aside with `drop`"):
        prepare(settings)
    settings["train"]["drop"] = ["x"]
    assert [problem.id for problem in load_problems(prepare(settings) / "train.jsonl")] == ["y"]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([row("a")], [row("b", "")], "problem 'b': field 'problem' is missing or empty"),
        ([row("a"), row("a")], [row("b")], "the id occurs twice"),
        ([row("a", "x = 1."), row("c", "X=1")], [row("b")], "'train' holds problems twice: c = a"),
        ([row("a")], [row("a", "else")], "'benchmarks/t' shares problems with the training set: a;"),
        ([row("a", "Find $x$.")], [row("b", "find x"), row("c")], "shares problems with the training set: b;"),
        ([row("a")], [], "no problems in this file"),
    ],
)
def test_what_is_refused(prepare, write, train, test, message):
    settings = {
        "seed": 0,
        "train": {"path": write("train.jsonl", *train)},
        "validation": {"path": write("validation.jsonl", row("v"))},
        "benchmarks": {"t": {"path": write("test.jsonl", *test)}},
    }
    with pytest.raises(InputError, match=message):
        prepare(settings)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "nowhere.jsonl"}, "nowhere.jsonl: no such file"),
        ({"levels": [2]}, "'train': key 'count' is missing"),
        ({"levels": [2], "count": 3, "path": "x"}, r"give one of `levels`, `path` and `hub`, not \['levels', 'path'\]"),
        ({}, "give one of"),
        ({"from_train": 3}, "give one of"),
    ],
)
def test_entries_that_say_too_little_or_too_much(prepare, entry, message):
    with pytest.raises(InputError, match=message):
        prepare({**MOVES, "train": entry})


def test_counts_and_drops_must_fit(prepare, write):
    entry = {"path": write("a.jsonl", row("a"), row("b"))}
    with pytest.raises(InputError, match="'train': 2 problems where `count` says 3"):
        prepare({**MOVES, "train": {**entry, "count": 3}})
    with pytest.raises(InputError, match="ids under `drop` that are not there: z"):
        prepare({**MOVES, "train": {**entry, "drop": ["z"]}})
    with pytest.raises(InputError, match="`from_train: 2`, but there are 2"):
        prepare({**MOVES, "train": entry, "validation": {"from_train": 2}})


def test_nothing_is_written_when_a_check_fails(prepare, tmp_path):
    with pytest.raises(InputError):
        prepare({**MOVES, "benchmarks": {"easy": {"levels": [2], "count": 10}, "broken": {}}})
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"\dfrac{1}{2} of $x$", r"\frac12 of x", True),
        (r"\left( a, b \right)", "(a,b)", True),
        ("It costs 1.5 dollars.", "It costs 15 dollars.", False),
        ("What is 2+3?", "What is 2-3?", False),
        (r"\leftarrow x", r"arrow x", False),
    ],
)
def test_normalised_text(one, other, same):
    assert (normalised(one) == normalised(other)) is same


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared problem files are not beside the project")
def test_real_problem_sets_pass_the_checks(prepare):
    data = SHARED / "data"
    out = prepare(
        {
            "seed": 0,
            "train": {"path": str(data / "math_train.jsonl"), "count": 11945},
            "validation": {"from_train": 200},
            "benchmarks": {
                name: {"path": str(data / f"{name}.jsonl")} for name in ("math500", "aime2024", "aime2025", "amc23")
            },
        }
    )
    manifest = json.loads((out / "manifest.json").read_text())["sets"]
    assert manifest["train"]["problems"] == 11745
    assert manifest["benchmarks/math500"]["levels"] == {"1": 43, "2": 90, "3": 105, "4": 128, "5": 134}
