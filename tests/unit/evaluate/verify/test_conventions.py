"""The table of conventions in docs/checker.md is what the checker does."""

import re
from pathlib import Path

import pytest

from datpo.evaluate.verify.compare import judge

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "checker.md"


def examples():
    """(kind, key, answer, whether they are one answer) for each example: the first of a group is the key."""
    table = DOCUMENT.read_text(encoding="utf-8").split("## What is one answer")[1].split("\n## ")[0]
    for row in re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \| .*\|$", table, re.MULTILINE)[1:]:
        for cell, same in ((row[1], True), (row[2], False)):
            for group in re.split(r";(?=[^`]*(?:`[^`]*`[^`]*)*$)", cell):
                key, *answers = [*re.findall("`([^`]+)`", group), ""]
                yield from ((row[0], key, answer, same) for answer in answers if answer)


@pytest.mark.parametrize(("kind", "key", "answer", "same"), [*examples()])
def test_the_table_of_conventions(kind, key, answer, same):
    assert (judge(key, answer) == "right") == same
