"""The command line: one verb per rule, one readable line per mistake."""

import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

from datpo.__main__ import KINDS, VERBS, main
from datpo.core.files import Row, write_jsonl

SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_exists_and_says_what_it_does(verb):
    module, name = VERBS[verb].split(":")
    function = getattr(importlib.import_module(module), name)
    assert inspect.getdoc(function)
    assert set(get_type_hints(function).values()) <= {*KINDS, Iterator[Row], type(None)}


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, capsys):
    write_jsonl(tmp_path / "samples.jsonl", [{"kind": "poems"}])
    (tmp_path / "c.yaml").write_text("truncated: wrong\nchecker: own")
    arguments = [
        "--config",
        tmp_path / "c.yaml",
        "--samples",
        tmp_path / "samples.jsonl",
        "--problems",
        tmp_path / "p.jsonl",
        "--out",
        tmp_path / "o",
    ]
    assert main(["score", *map(str, arguments)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("datpo score: ")
    assert "samples.jsonl" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_unknown_verbs_are_answered_with_the_known_ones(capsys):
    assert main(["trian"]) == 2
    assert "train" in capsys.readouterr().err
    assert main(["--help"]) == 0


def report(file: Path, other: Path, /, name: str, set: list[str], more: list[Path], word: str | None = None):
    """Print what it was given."""
    yield {"file": file.name, "other": other.name, "name": name, "set": set, "more": len(more), "word": word}
    yield {"text": "two\nlines\u2028é"}


def test_a_command_line_is_made_from_the_signature(monkeypatch, capsys):
    monkeypatch.setitem(VERBS, "report", f"{__name__}:report")
    assert main(["report", "a", "--set", "x=1", "--name", "n", "b", "--more", "c", "d", "--set", "y=-1"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    given = {"file": "a", "other": "b", "name": "n", "set": ["x=1", "y=-1"], "more": 2, "word": None}
    assert json.loads(first) == given
    assert json.loads(second) == {"text": "two\nlines\u2028é"}
    assert main(["report", "a", "b", "--name", "n", "--more", "--word", "w"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["set"] == []


@pytest.mark.parametrize("arguments", [["a", "--name", "n", "--more"], ["a", "b", "--more"], ["a", "b", "--name", "n"]])
def test_what_has_no_default_must_be_given(monkeypatch, capsys, arguments):
    monkeypatch.setitem(VERBS, "report", f"{__name__}:report")
    with pytest.raises(SystemExit) as end:
        main(["report", *arguments])
    assert end.value.code == 2
    assert "required: " in capsys.readouterr().err


def test_a_pipe_that_is_closed_early_ends_it_quietly(tmp_path):
    write_jsonl(tmp_path / "t.jsonl", ({"id": number, "text": "One. " * 5} for number in range(5_000)))
    command = [sys.executable, "-m", "datpo", "segment", str(tmp_path / "t.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline())["id"] == 0
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
