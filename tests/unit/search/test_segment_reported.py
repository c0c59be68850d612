"""Sentence and token cases distilled from public bug reports of comparable tools."""

import json
import time
from pathlib import Path

import pytest

from datpo.search.segment import offsets_of, sentences, token_groups

CASES = Path(__file__).resolve().parents[3] / ".." / "shared" / "cases" / "reported.jsonl"


def cases(area):
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the case file is not here"))]
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in rows if row["area"] == area]


def long_text(rule):
    """The texts of the two rules in the case file, written out."""
    return {
        "'Wait. ' * 4000": "Wait. " * 4000,
        "'N = 0.' + '142857'*300 + '. Done.'": "N = 0." + "142857" * 300 + ". Done.",
    }[rule]


CHECKED = {
    *("all_text_kept", "spans_ordered_disjoint", "no_cut_inside", "sentence_starts_at", "sentences", "distinct_spans"),
    *("max_seconds", "groups", "each_token_once", "groups_refer_to", "sentence_2_starts_at_token_of"),
}


@pytest.mark.parametrize("case", [*cases("e-sentence"), *cases("e-tokens")])
def test_every_expectation_of_a_case_is_checked_below(case):
    assert set(case["expected"]) <= CHECKED


@pytest.mark.parametrize("case", cases("e-sentence"))
def test_sentences(case):
    given, expected = case["input"], case["expected"]
    text = given["text"] if "text" in given else long_text(given["text_rule"])
    began = time.perf_counter()
    spans = sentences(text)
    assert time.perf_counter() - began < expected["max_seconds"]
    assert "".join(text[start:stop] for start, stop in spans) == text
    starts = [start for start, _ in spans]
    assert starts == sorted(set(starts))
    for whole in expected.get("no_cut_inside", []):
        at = text.index(whole)
        assert not [start for start in starts if at < start < at + len(whole)]
    for begin in expected.get("sentence_starts_at", []):
        assert any(text.startswith(begin, start) for start in starts), [text[a:b] for a, b in spans]
    if "sentences" in expected:
        assert len(spans) == expected["sentences"]
    if "distinct_spans" in expected:
        assert len(set(spans)) == expected["distinct_spans"]


def vocabulary_of(pieces):
    """Ids and a decoder for the given byte pieces, one id for each place."""
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return list(range(len(pieces))), lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace")


def pieces_of(case):
    """The tokens of a case; two of them are described in words only."""
    given = case["input"]
    if "tokens" in given:
        return given["tokens"]
    if "note" in given:
        pi, approx = "π".encode(), "≈".encode()
        return [pi[:1], pi[1:], " ", approx[:1], approx[1:2], approx[2:], " ", "3", ".", "14", ".", " Done", "."]
    return ["So", " ", "1", "2", ".", " Then", " ", "3", "."]


@pytest.mark.parametrize("case", cases("e-tokens"))
def test_tokens(case):
    text, expected = case["input"]["text"], case["expected"]
    pieces = pieces_of(case)
    ids, decode = vocabulary_of(pieces)
    assert decode(ids) == text
    groups = token_groups(text, offsets_of(decode, ids))
    assert len(groups) == len(pieces)
    if "groups" in expected:
        assert [[i for i in ids if groups[i] == g] for g in sorted(set(groups))] == expected["groups"]
    begins = expected.get("sentence_2_starts_at_token_of")
    if begins:
        second = list(groups).index(1)
        assert pieces[second].strip() == begins.strip()
        assert set(groups) == {0, 1}
