import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.core.problem import load_problems
from datpo.data.moves import Puzzle
from datpo.data.prepare import prepare_data
from datpo.data.sources import normalised

SHARED = Path(__file__).resolve().parents[4] / "shared"
TRAIN = {"set": "train", "seed": 3, "problems": {"levels": [2, 3], "count": 40}}
VALIDATION = {"set": "validation", "seed": 3, "problems": {"levels": [2, 3], "count": 10}}
EASY = {"set": "benchmarks/easy", "seed": 3, "problems": {"levels": [2], "count": 10}}
HARD = {"set": "benchmarks/hard", "seed": 3, "problems": {"levels": [7, 8], "count": 10}}


@pytest.fixture
def prepare(tmp_path):
    """Prepare one set after the other, those that are held out apart from the first, and return their problems."""

    def prepare(*sets):
        files = []
        for settings in sets:
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
            out = tmp_path / "data" / f"{settings['set']}.jsonl"
            prepare_data(tmp_path / "config.yaml", files[:1], out)
            files.append(out)
        return [load_problems(file) for file in files]

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


def train(**entry):
    return {"set": "train", "problems": entry}


def test_move_puzzles(prepare):
    sets = prepare(TRAIN, VALIDATION, EASY, HARD)
    identities = [{Puzzle.parse(each.problem).identity for each in problems} for problems in sets]
    assert [len(found) for found in identities] == [40, 10, 10, 10]
    assert len(set.union(*identities)) == 70
    assert Counter(problem.level for problem in sets[3]) == {7: 5, 8: 5}


def test_local_files(prepare, write):
    a = {"path": write("a.jsonl", *(row(f"a{i}", level=1 + i % 2) for i in range(10))), "count": 10}
    b = {"path": write("b.jsonl", row("b0"), row("b1"), row("b2")), "drop": ["b1"]}
    drawn = {"problems": a, "from_train": 3, "seed": 0}
    kept, validation, own = prepare(
        {"set": "train", **drawn}, {"set": "validation", **drawn}, {"set": "benchmarks/b", "problems": b}
    )
    assert (len(kept), len(validation)) == (7, 3)
    assert {problem.id for problem in kept + validation} == {f"a{i}" for i in range(10)}
    assert [problem.id for problem in own] == ["b0", "b2"]


def test_a_data_set_of_the_hub(prepare, write):
    rows = [
        {"unique_id": "t/1", "question": "1+1?", "key": 2, "level": "Level 3", "type": "Algebra"},
        {"unique_id": "t/2", "question": "1+2?", "key": 3, "level": "Level ?", "type": None},
    ]
    local = {"hub": "json", "data_files": write("hub.jsonl", *rows), "fields": {"answer": "key"}, "count": 2}
    ((first, second),) = prepare(train(**local))
    assert (first.id, first.problem, first.answer, first.level, first.subject) == ("t/1", "1+1?", "2", 3, "Algebra")
    assert (second.level, second.subject) == (None, None)

    with pytest.raises(InputError, match=r"'train': no column for 'answer' among \['unique_id', .*'key'"):
        prepare(train(**{**local, "fields": {}}))
    with pytest.raises(InputError, match=r"cannot load 'json'.*check its name, `revision` and `split`"):
        prepare(train(**local, split="nowhere"))


def test_an_empty_key_of_the_hub_can_be_set_aside(prepare, write):
    path = write("hub.jsonl", {"id": "x", "problem": "p", "answer": None}, {"id": "y", "problem": "q", "answer": "1"})
    with pytest.raises(InputError, match="problem 'x': field 'answer' is empty; set it aside with `drop`"):
        prepare(train(hub="json", data_files=path))
    ((kept,),) = prepare(train(hub="json", data_files=path, drop=["x"]))
    assert kept.id == "y"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([row("a")], [row("b", "")], "problem 'b': field 'problem' is missing or empty"),
        ([row("a"), row("a")], [row("b")], "the id occurs twice"),
        ([row("a", "x = 1."), row("c", "X=1")], [row("b")], "'train' holds problems twice: c = a"),
        ([row("a")], [row("a", "else")], "'benchmarks/t' shares problems with the training set: a;"),
        ([row("a", "Find $x$.")], [row("b", "find x"), row("c")], "shares problems with the training set: b;"),
        ([row("a")], [], "no problems in this file"),
    ],
)
def test_what_is_refused(prepare, write, first, second, message):
    test = {"set": "benchmarks/t", "problems": {"path": write("test.jsonl", *second)}}
    with pytest.raises(InputError, match=message):
        prepare(train(path=write("train.jsonl", *first)), test)


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
        prepare(train(**entry))


def test_counts_and_drops_must_fit(prepare, write):
    entry = {"path": write("a.jsonl", row("a"), row("b"))}
    with pytest.raises(InputError, match="'train': 2 problems where `count` says 3"):
        prepare(train(**entry, count=3))
    with pytest.raises(InputError, match="ids under `drop` that are not there: z"):
        prepare(train(**entry, drop=["z"]))
    with pytest.raises(InputError, match="`from_train: 2`, but there are 2"):
        prepare({**train(**entry), "from_train": 2, "seed": 0})
    with pytest.raises(InputError, match="key 'set' is missing"):
        prepare_data(Path(write("config.yaml", {"problems": entry})), [], Path("nowhere"))


def test_nothing_is_written_when_a_check_fails(prepare, tmp_path, write):
    prepare(TRAIN)
    copied = tmp_path / "data/train.jsonl"
    with pytest.raises(InputError, match="shares problems with the training set"):
        prepare(TRAIN, {"set": "benchmarks/copy", "problems": {"path": str(copied)}})
    assert not (tmp_path / "data/benchmarks").exists()


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
    math = {"problems": {"path": str(data / "math_train.jsonl"), "count": 11945}, "from_train": 200, "seed": 0}
    tests = [
        {"set": f"benchmarks/{name}", "problems": {"path": str(data / f"{name}.jsonl")}}
        for name in ("math500", "aime2024", "aime2025", "amc23")
    ]
    kept, validation, math500, *_ = prepare({"set": "train", **math}, {"set": "validation", **math}, *tests)
    assert (len(kept), len(validation)) == (11745, 200)
    assert Counter(problem.level for problem in math500) == {1: 43, 2: 90, 3: 105, 4: 128, 5: 134}
