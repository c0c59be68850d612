import errno
import json
import os
import subprocess
from dataclasses import replace

import pytest
from tests.trees import PROBLEM

from datpo.core.errors import InputError
from datpo.core.files import (
    is_sealed,
    read_json,
    read_jsonl,
    sealed_folder,
    whole_file,
    whole_folder,
    write_json,
    write_jsonl,
)
from datpo.core.problem import load_problems, questions_hash, save_problems
from datpo.core.seeds import seed


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a.json") as handle:
        handle.write("half")
        raise RuntimeError
    assert read_json(tmp_path / "a.json") == {"x": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_disk_that_fills_leaves_the_old_file_and_no_new_one(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "a.jsonl", [{"x": 1}])

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_jsonl(tmp_path / "a.jsonl", [{"x": 2}])
    assert read_jsonl(tmp_path / "a.jsonl") == [{"x": 1}]
    with pytest.raises(OSError, match="No space left"), whole_folder(tmp_path / "b") as folder:
        (folder / "weights").write_text("0")
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_os_error_whatever_a_library_makes_of_it(tmp_path, code):
    """torch raises an error of its own over Python's, and libraries in Rust have their words for it."""

    def over_pythons():
        try:
            raise OSError(code, os.strerror(code))
        except OSError:
            raise RuntimeError("unexpected pos 640704 vs 640656")  # noqa: B904

    def in_words():
        raise ValueError(f"Error while serializing: I/O error: so it is (os error {code})")

    for write in (over_pythons, in_words):
        for whole in (whole_file, whole_folder, sealed_folder):
            with pytest.raises(OSError, match=os.strerror(code)) as raised, whole(tmp_path / "a"):
                write()
            assert (raised.value.errno, raised.value.filename) == (code, str(tmp_path / "a"))
    with pytest.raises(RuntimeError, match="another"), whole_folder(tmp_path / "a"):
        raise RuntimeError("another")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_replaces_the_old_one_whole(tmp_path):
    for content in ("old", "new"):
        with whole_folder(tmp_path / "out") as folder:
            (folder / content).write_text(content)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["new"]


def test_a_sealed_folder_is_whole_as_long_as_nothing_in_it_changes(tmp_path):
    folder = tmp_path / "a"
    assert not is_sealed(folder)
    with sealed_folder(folder) as target:
        (target / "x.jsonl").write_text("1\n2\n")
        (target / "in").mkdir()
        (target / "in/y").write_bytes(b"\0" * 9)
    assert is_sealed(folder)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    for change in (
        lambda: (folder / "x.jsonl").write_text("1\n"),
        lambda: (folder / "more").write_text(""),
        lambda: (folder / "in/y").unlink(),
        lambda: (folder / "SHA256SUMS").write_bytes(b"\xff"),
        lambda: (folder / "SHA256SUMS").unlink(),
    ):
        with sealed_folder(folder) as target:
            (target / "x.jsonl").write_text("1\n2\n")
            (target / "in").mkdir()
            (target / "in/y").write_bytes(b"\0" * 9)
        assert is_sealed(folder)
        change()
        assert not is_sealed(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": ', "line 2 is not JSON"),
        ('{"a": 1}\n[1]\n', "line 2 is not a JSON object"),
        ('{"a": 1, "a": 2}\n', "line 1: the key 'a' stands twice"),
        ('{"a": %s}\n' % ("9" * 5000), "line 1 holds a number of more than 4,300 digits"),
        ("[" * 200_000, "line 1 is nested too deeply"),
    ],
)
def test_damaged_lines_are_named(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_jsonl(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.jsonl: no such file"):
        read_jsonl(tmp_path / "a.jsonl")


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert read_jsonl(tmp_path / "a.jsonl") == [{"a": 1}]
    assert read_json(tmp_path / "a.jsonl") == {"a": 1}


@pytest.mark.parametrize("read", [read_json, read_jsonl])
def test_what_cannot_be_read_is_named(tmp_path, read):
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"cannot be read \(.*null"):
        read("a\0b")
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(InputError, match="latin: not UTF-8 text"):
        read(tmp_path / "latin")


def test_half_a_surrogate_pair_survives(tmp_path):
    row = {"text": "é\ud800", "plain": "é"}
    write_jsonl(tmp_path / "a.jsonl", [row, {"plain": "é"}])
    write_json(tmp_path / "a.json", row)
    assert read_jsonl(tmp_path / "a.jsonl")[0] == read_json(tmp_path / "a.json") == row
    assert (tmp_path / "a.jsonl").read_text("utf-8").splitlines()[1] == '{"plain": "é"}'


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no problems"),
        ([{"id": "a", "problem": "?", "answer": "1"}] * 2, "'a': the id occurs twice"),
        ([{"id": "a", "problem": " ", "answer": "1"}], "'a': field 'problem' is missing or empty"),
        ([{"id": "a", "problem": "?"}], "'a': field 'answer' is missing or empty"),
        ([{"problem": "?", "answer": "1"}], "'in row 1': field 'id' is missing"),
    ],
)
def test_bad_problem_files_are_refused_by_name(tmp_path, rows, message):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=message):
        load_problems(path)


def test_problems_round_trip(tmp_path):
    save_problems(tmp_path / "p.jsonl", [PROBLEM])
    assert load_problems(tmp_path / "p.jsonl") == [PROBLEM]


def test_zero_is_an_answer_and_an_id(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": 0, "problem": "?", "answer": 0}\n')
    (problem,) = load_problems(tmp_path / "p.jsonl")
    assert (problem.id, problem.answer) == ("0", "0")


def test_the_hash_of_what_is_asked_ignores_order_and_keys():
    asked = [PROBLEM, replace(PROBLEM, id="q", problem="?")]
    same = [replace(asked[1], answer="another key"), asked[0]]
    assert questions_hash(asked) == questions_hash(same)
    assert questions_hash(asked) != questions_hash([asked[0], replace(asked[1], problem="??")])


def test_seeds_depend_on_every_name_and_their_borders():
    seeds = [seed(0), seed(1), seed(0, "a"), seed(0, "a", 1), seed(0, "a1"), seed(0, "a", 1, ""), seed(0, 1, "a")]
    assert len(set(seeds)) == len(seeds)
    assert seed(3, "rollout", "p", 2) == seed(3, "rollout", "p", 2) < 2**63
