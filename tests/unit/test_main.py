"""The command line: one verb per rule, one readable line per mistake."""

import importlib
import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

from datpo.__main__ import VERBS, main
from datpo.core.files import write_jsonl


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_exists_and_says_what_it_does(verb):
    module, name = VERBS[verb].split(":")
    function = getattr(importlib.import_module(module), name)
    assert inspect.getdoc(function)
    assert set(get_type_hints(function).values()) <= {Path, str, list[Path], type(None)}


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, capsys):
    write_jsonl(tmp_path / "samples.jsonl", [{"kind": "poems"}])
    (tmp_path / "c.yaml").write_text("truncated: wrong")
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
