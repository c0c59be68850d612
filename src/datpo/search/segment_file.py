"""The sentences of texts in a file, to see where a trained policy's responses may be forked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import Row, located_rows
from datpo.search.segment import sentences


def segment(file: Path, /) -> Iterator[Row]:
    """Print the sentences of each text in a JSON Lines file, one line a text.

    The spans of a text tile it: half-open character positions, the first from 0, the last to its end, none empty.
    An empty text has no sentence.

    Args:
        file: rows with the keys `id`, a string or a whole number, and `text`; other keys are passed over.

    Returns:
        Rows `{"id", "sentences": [{"start", "end", "text"}]}` in the order of the file.

    Raises:
        InputError: the file is missing, or a line is not JSON, lacks a key or holds something else in it; the
            file and the line are named.
    """
    texts = []
    for place, row in located_rows(file):
        for key, kinds, wanted in (("id", (str, int), "a string or a whole number"), ("text", (str,), "a string")):
            if key not in row:
                raise InputError(f"{place}: key {key!r} is missing")
            if type(row[key]) not in kinds:
                raise InputError(f"{place}: {key!r} must be {wanted}, not {row[key]!r}")
        texts.append((row["id"], row["text"]))
    return ({"id": name, "sentences": _rows(text)} for name, text in texts)


def _rows(text: str) -> list[Row]:
    return [{"start": start, "end": end, "text": text[start:end]} for start, end in sentences(text)]
