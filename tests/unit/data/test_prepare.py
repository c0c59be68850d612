import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from datpo.config import load_config
from datpo.core.errors import InputError
from datpo.core.files import read_json, read_jsonl
from datpo.core.problem import load_problems, questions_hash
from datpo.data.card import fingerprint
from datpo.data.checks import REASONS
from datpo.data.files import file_hash
from datpo.data.moves import Puzzle
from datpo.data.prepare import prepare_data

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/data.md"
SHARED = ROOT.parent / "shared"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared problem files are not beside the project")
TRAIN = {"set": "train", "domain": "moves", "seed": 3, "problems": {"levels": [2, 3], "count": 40}}
VALIDATION = {**TRAIN, "set": "validation", "problems": {"levels": [2, 3], "count": 10}}
EASY = {**TRAIN, "set": "benchmarks/easy", "problems": {"levels": [2], "count": 10}}
HARD = {**TRAIN, "set": "benchmarks/hard", "problems": {"levels": [7, 8], "count": 10}}


@pytest.fixture
def prepare(tmp_path):
    """Prepare one set after the other, those that are held out apart from the first, and return their problems."""

    def prepare(*sets):
        files = []
        for settings in sets:
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
            out, card, aside = (
                tmp_path / "data" / f"{settings['set']}{ending}" for ending in (".jsonl", ".card.json", ".aside.jsonl")
            )
            prepare_data(tmp_path / "config.yaml", files[:1], out, card, aside)
            files.append(out)
        return [load_problems(file) for file in files]

    return prepare


@pytest.fixture
def card(tmp_path):
    return lambda name: read_json(tmp_path / "data" / f"{name}.card.json")


@pytest.fixture
def aside(tmp_path):
    return lambda name: read_jsonl(tmp_path / "data" / f"{name}.aside.jsonl")


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
    return {"set": "train", "domain": "math", "problems": entry}


def test_move_puzzles(prepare, card):
    sets = prepare(TRAIN, VALIDATION, EASY, HARD)
    identities = [{Puzzle.parse(each.problem).identity for each in problems} for problems in sets]
    assert [len(found) for found in identities] == [40, 10, 10, 10]
    assert len(set.union(*identities)) == 70
    assert Counter(problem.level for problem in sets[3]) == {7: 5, 8: 5}
    assert card("benchmarks/hard") == {
        "kind": "data card",
        "version": 1,
        "set": "benchmarks/hard",
        "domain": "moves",
        "checker": "moves, simulated",
        "source": {"levels": [7, 8], "seed": 3},
        "rows": 10,
        "set_aside": {},
        "in_other_set": 0,
        "problems": 10,
        "levels": {"7": 5, "8": 5},
        "subjects": {"none": 10},
        "fingerprint": fingerprint(sets[3]),
        "questions": questions_hash(sets[3]),
    }


def test_local_files(prepare, write, card, aside):
    a = {"path": write("a.jsonl", *(row(f"a{i}", level=1 + i % 2) for i in range(10))), "count": 10}
    b = {"path": write("b.jsonl", row("b0"), row("b1"), row("b2")), "drop": ["b1"]}
    drawn = {"domain": "math", "problems": a, "from_train": 3, "seed": 0}
    kept, validation, own = prepare(
        {"set": "train", **drawn}, {"set": "validation", **drawn}, {**train(**b), "set": "benchmarks/b"}
    )
    assert (len(kept), len(validation)) == (7, 3)
    assert {problem.id for problem in kept + validation} == {f"a{i}" for i in range(10)}
    assert [problem.id for problem in own] == ["b0", "b2"]
    first, second, third = card("train"), card("validation"), card("benchmarks/b")
    assert first["source"] == second["source"] == {"path": a["path"], "sha256": file_hash(a["path"]), "seed": 0}
    assert (first["rows"], first["in_other_set"], first["problems"]) == (10, 3, 7)
    assert (second["rows"], second["in_other_set"], second["problems"]) == (10, 7, 3)
    assert first["fingerprint"] == second["fingerprint"] == fingerprint(kept + validation)
    assert first["questions"] == questions_hash(kept) != second["questions"]
    assert (third["rows"], third["set_aside"], third["problems"]) == (3, {"dropped": 1}, 2)
    assert aside("benchmarks/b") == [{"id": "b1", "reason": "dropped", "key": "1", "row": 2, "source": b["path"]}]


def test_what_is_set_aside_is_listed_and_told_and_does_not_touch_the_count(prepare, write, card, aside, capsys):
    rows = [
        row("a"),
        row("b", answer=None),
        row("c", "What is a"),
        row("d", answer="see figure"),
        row("e", "Else?", "5"),
    ]
    path = write("a.jsonl", *rows, row("f", "else", "6"), row("g"))
    ((*kept,),) = prepare(train(path=path, count=7))
    assert [problem.id for problem in kept] == ["a", "g"]
    listed = [(each["id"], each["reason"], each["key"], each.get("clashes_with")) for each in aside("train")]
    assert listed == [
        ("b", "empty_key", "", None),
        ("c", "repeated", "1", "a"),
        ("d", "unreadable_key", "see figure", None),
        ("e", "repeated_other_key", "5", "f"),
        ("f", "repeated_other_key", "6", "e"),
    ]
    counts = {"empty_key": 1, "unreadable_key": 1, "repeated": 1, "repeated_other_key": 2}
    assert (card("train")["rows"], card("train")["set_aside"]) == (7, counts)
    said = capsys.readouterr().err
    assert "2 problems of 7 rows; set aside: 1 empty_key, 1 unreadable_key, 1 repeated, 2 repeated_other_key" in said
    assert "train.aside.jsonl" in said and card("train")["fingerprint"] in said


def test_validation_is_drawn_from_what_is_kept(prepare, write):
    path = write("a.jsonl", *(row(f"a{i}", answer="" if i % 2 else "1") for i in range(10)))
    drawn = {"domain": "math", "problems": {"path": path}, "from_train": 2, "seed": 0}
    kept, validation = prepare({"set": "train", **drawn}, {"set": "validation", **drawn})
    assert {problem.id for problem in kept + validation} == {f"a{i}" for i in range(0, 10, 2)}
    with pytest.raises(InputError, match="`from_train: 5`, but there are 5"):
        prepare({"set": "train", **drawn, "from_train": 5})


@pytest.mark.parametrize(
    "changed",
    [
        [row("a"), row("b", answer="2")],
        [row("a"), row("b", "What is B?!", "1"), row("c")],
        [row("a"), row("B", "What is b?")],
        [row("a")],
    ],
)
def test_a_fingerprint_holds_ids_texts_and_keys(prepare, write, card, changed):
    path = write("a.jsonl", row("a"), row("b"))
    prepare(train(path=path))
    pin = card("train")["fingerprint"]
    prepare(train(path=write("b.jsonl", row("b"), row("a"), row("c", answer="")), fingerprint=pin))
    with pytest.raises(InputError, match=f"'train': the . problems that are left have the fingerprint .*, not {pin}"):
        prepare(train(path=write("c.jsonl", *changed), fingerprint=pin))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([row("a")], [row("a", "else")], "'benchmarks/t' shares problems with the training set: a;"),
        ([row("a", "Find $x$.")], [row("b", "find x"), row("c")], "shares problems with the training set: b;"),
        ([row("a")], [row("b", "")], "'benchmarks/t': nothing is left of its 1 rows: 1 empty_text"),
        ([row("a")], [], "no problems in this file"),
    ],
)
def test_what_is_refused(prepare, write, first, second, message):
    test = {**train(path=write("test.jsonl", *second)), "set": "benchmarks/t"}
    with pytest.raises(InputError, match=message):
        prepare(train(path=write("train.jsonl", *first)), test)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "nowhere.jsonl"}, "nowhere.jsonl: no such file"),
        ({"levels": [2]}, "'train': key 'count' is missing"),
        ({"levels": [2], "count": 3, "path": "x"}, r"`levels`, `path`, `url` and `hub`, not \['levels', 'path'\]"),
        ({}, "give one of"),
        ({"from_train": 3}, "give one of"),
    ],
)
def test_entries_that_say_too_little_or_too_much(prepare, entry, message):
    with pytest.raises(InputError, match=message):
        prepare(train(**entry))


@pytest.mark.parametrize("missing", ["set", "domain", "problems"])
def test_settings_that_lack_a_key_are_refused(write, missing):
    settings = {key: value for key, value in TRAIN.items() if key != missing}
    with pytest.raises(InputError, match=f"key '{missing}' is missing"):
        prepare_data(Path(write("config.yaml", settings)), [], *[Path("nowhere")] * 3)


def test_nothing_is_written_when_a_check_fails(prepare, tmp_path):
    prepare(TRAIN)
    copied = tmp_path / "data/train.jsonl"
    with pytest.raises(InputError, match="shares problems with the training set"):
        prepare(TRAIN, {**TRAIN, "set": "benchmarks/copy", "problems": {"path": str(copied)}})
    assert not (tmp_path / "data/benchmarks").exists()


REAL = {
    "math500": 500,
    "aime2024": 30,
    "aime2025": 30,
    "aime2026": 30,
    "amc23": 40,
    "gsm8k_train": 7473,
    "gsm8k_test": 1319,
    "svamp": 1000,
    "mawps_singleop": 389,
}


def real(name, of, **more):
    return {"set": of, "domain": "math", "problems": {"path": str(SHARED / f"data/{name}.jsonl"), **more}}


@needs_data
def test_every_real_benchmark_is_kept_whole(prepare, card):
    sets = prepare(*(real(name, f"benchmarks/{name}", count=count) for name, count in REAL.items()))
    assert [len(problems) for problems in sets] == list(REAL.values())
    assert all(card(f"benchmarks/{name}")["set_aside"] == {} for name in REAL)
    assert card("benchmarks/math500")["levels"] == {"1": 43, "2": 90, "3": 105, "4": 128, "5": 134}


@needs_data
def test_the_page_s_example_takes_every_set_from_a_file(tmp_path, monkeypatch):
    (example,) = re.findall(r"```yaml\n(# local_data.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "problems").symlink_to(SHARED / "data")
    monkeypatch.chdir(tmp_path)
    config = load_config(ROOT, yaml.safe_load(example))
    entries = [config["data"]["train"], *(each["problems"] for each in config["benchmarks"].values())]
    assert len(entries) == 12
    assert all(len(entry["sha256"]) == 64 and "hub" not in entry for entry in entries)


def test_the_page_names_every_reason_and_every_commit_of_the_paper_s_scale():
    page = PAGE.read_text(encoding="utf-8")
    told = page.split("### What is set aside")[1].split("## Another benchmark")[0]
    assert re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE) == list(REASONS)
    config = yaml.safe_load((ROOT / "config/scales/paper.yaml").read_text(encoding="utf-8"))
    entries = [config["data"]["train"], *(each["problems"] for each in config["benchmarks"].values())]
    named = {re.search(r"\b[0-9a-f]{40}\b", entry.get("url") or entry["revision"])[0] for entry in entries}
    assert named == set(re.findall(r"\b[0-9a-f]{40}\b", page))


@needs_data
@pytest.mark.slow
def test_the_real_training_set_is_apart_from_every_benchmark_and_soon_made(prepare, card, aside):
    began = time.process_time()
    kept, *_ = prepare(real("math_train", "train", count=11945), *(real(name, f"benchmarks/{name}") for name in REAL))
    assert time.process_time() - began < 60
    assert len(kept) == 11944
    (lost,) = aside("train")
    assert (lost["id"], lost["reason"]) == ("math/test/number_theory/122", "box_in_text")
    assert card("train")["levels"] == {"1": 956, "2": 2144, "3": 2604, "4": 2765, "5": 3473, "none": 2}


def test_some_levels_and_so_many_of_their_problems(prepare, write, card):
    rows = [row(f"a{i}", level=1 + i % 3) for i in range(30)]
    path = write("a.jsonl", *rows, row("none"))
    entry = {"path": path, "count": 31, "of_levels": [1, 3], "drop": ["a0"]}
    drawn = {"domain": "math", "problems": {**entry, "take": 12}, "from_train": 4, "seed": 0}
    kept, validation = prepare({"set": "train", **drawn}, {"set": "validation", **drawn})
    assert (len(kept), len(validation)) == (8, 4)
    assert {problem.level for problem in kept + validation} == {1, 3}
    ids = [int(problem.id[1:]) for problem in kept]
    assert ids == sorted(ids) and ids != list(range(8))
    counts = {key: card("train")[key] for key in ("rows", "of_other_levels", "not_taken", "in_other_set", "problems")}
    assert counts == {"rows": 31, "of_other_levels": 11, "not_taken": 7, "in_other_set": 4, "problems": 8}
    assert card("train")["source"]["seed"] == 0

    # What is taken changes nothing of what is pinned.
    (whole,) = prepare(train(**entry))
    assert card("train")["fingerprint"] == fingerprint(whole)
    pinned = {**entry, "take": 3, "fingerprint": fingerprint(whole)}
    taken = [[problem.id for problem in prepare({**train(**pinned), "seed": seed})[0]] for seed in (0, 0, 1)]
    assert taken[0] == taken[1] != taken[2]


def test_more_than_there_is_cannot_be_taken_nor_a_level_that_is_not_there(prepare, write):
    path = write("a.jsonl", row("a", level=1), row("b", level=4))
    with pytest.raises(InputError, match=r"data set 'train': `take: 3`, but there are 2 problems"):
        prepare({**train(path=path, take=3), "seed": 0})
    with pytest.raises(InputError, match=r"no row is of the levels \[2, 3\] \(`of_levels`\); there are \[1, 4\]"):
        prepare(train(path=path, of_levels=[2, 3]))
