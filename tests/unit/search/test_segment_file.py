"""The verb `segment`: sentences of texts in a file, to standard output."""

import json

import pytest

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.core.files import write_jsonl
from datpo.search.segment_file import segment


def test_spans_tile_each_text_and_rows_keep_their_order(tmp_path, capsys):
    texts = {"b": "So x = 3.5. Then 5! = 120.\r\n\u2028好。Yes\x85", "a": "", "c": "\ud800 "}
    write_rows(tmp_path / "t.jsonl", [{"id": name, "text": text, "level": 3} for name, text in texts.items()])
    assert main(["segment", str(tmp_path / "t.jsonl")]) == 0
    # Printed in ASCII, so no line end that a text holds ends a line.
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == ["b", "a", "c"]
    assert rows[0]["sentences"] == [
        {"start": 0, "end": 12, "text": "So x = 3.5. "},
        {"start": 12, "end": 29, "text": "Then 5! = 120.\r\n\u2028"},
        {"start": 29, "end": 31, "text": "好。"},
        {"start": 31, "end": 35, "text": "Yes\x85"},
    ]
    assert rows[1]["sentences"] == []
    for row in rows:
        spans = [(sentence["start"], sentence["end"]) for sentence in row["sentences"]]
        assert "".join(texts[row["id"]][start:end] for start, end in spans) == texts[row["id"]]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'id': 1}", "line 3 is not JSON"),
        ('"text"', "line 3 is not a JSON object"),
        ('{"id": "x"}', "line 3: key 'text' is missing"),
        ('{"text": "x"}', "line 3: key 'id' is missing"),
        ('{"id": "x", "text": null}', "line 3: 'text' must be a string, not None"),
        ('{"id": "x", "text": ["a"]}', "line 3: 'text' must be a string"),
        ('{"id": null, "text": "a"}', "line 3: 'id' must be a string or a whole number, not None"),
        ('{"id": true, "text": "a"}', "line 3: 'id' must be a string or a whole number, not True"),
    ],
)
def test_a_bad_line_is_named_before_anything_is_printed(tmp_path, capsys, line, message):
    (tmp_path / "t.jsonl").write_text('{"id": 7, "text": "One. Two."}\n\n' + line + "\n")
    assert main(["segment", str(tmp_path / "t.jsonl")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"datpo segment: {tmp_path / 't.jsonl'}: {message}")


def test_whole_numbers_are_ids_too(tmp_path):
    write_jsonl(tmp_path / "t.jsonl", [{"id": 7, "text": "One."}])
    assert next(segment(tmp_path / "t.jsonl"))["id"] == 7


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        segment(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"id": 1, "text": "\xe9"}\n')
    with pytest.raises(InputError, match="not UTF-8"):
        segment(tmp_path / "latin.jsonl")
