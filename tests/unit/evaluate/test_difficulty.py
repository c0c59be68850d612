import csv
import json

import pytest

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.evaluate.difficulty import split_by_difficulty

from .files import write_problems, write_scores

# Paper, Figure 1.
PAPER = {
    "samples": 12,
    "bands": {"easy": [9, 11], "medium": [5, 8], "hard": [1, 4]},
    "subset_size": None,
    "seed": 0,
}


@pytest.fixture
def split(tmp_path):
    def run(right, n=12, **changes):
        """`right`: problem -> number of right samples, or None for a problem that lost a sample."""
        verdicts = {
            name: ["missing"] + ["right"] * (n - 1) if c is None else ["right"] * c + ["wrong"] * (n - c)
            for name, c in right.items()
        }
        (tmp_path / "config.yaml").write_text(json.dumps({**PAPER, **changes}))
        problems = write_problems(tmp_path / "problems.jsonl", dict.fromkeys(right, "0"))
        scores = write_scores(tmp_path / "scores.jsonl", verdicts)
        split_by_difficulty(tmp_path / "config.yaml", problems, scores, tmp_path / "out")
        subsets = {file.stem: [row["id"] for row in read_jsonl(file)] for file in (tmp_path / "out").glob("*.jsonl")}
        with open(tmp_path / "out" / "counts.csv", newline="") as handle:
            counts = {row["subset"]: row for row in csv.DictReader(handle)}
        return subsets, counts

    return run


def test_the_bands_of_the_paper(split):
    right = {f"p{c}": c for c in range(13)} | {"lost": None}
    subsets, counts = split(right)
    # pools: easy 9-11 (3), medium 5-8 (4), hard 1-4 (4); all cut to 3
    assert subsets["easy"] == ["p9", "p10", "p11"]
    assert set(subsets["medium"]) < {"p5", "p6", "p7", "p8"}
    assert set(subsets["hard"]) < {"p1", "p2", "p3", "p4"}
    assert [len(ids) for ids in subsets.values()] == [3, 3, 3]
    assert {name: (row["pool"], row["size"]) for name, row in counts.items()} == {
        "easy": ("3", "3"),
        "medium": ("4", "3"),
        "hard": ("4", "3"),
        "none_right": ("1", "0"),
        "all_right": ("1", "0"),
        "between_bands": ("0", "0"),
        "incomplete": ("1", "0"),
    }
    assert (counts["medium"]["fewest"], counts["medium"]["most"]) == ("5", "8")


def test_the_draw_is_seeded_and_keeps_the_order_of_the_file(split):
    right = {f"p{i:02}": 2 for i in range(40)} | {"e": 9, "m": 6}
    first, _ = split(right, bands={"hard": [1, 4]}, subset_size=10)
    again, _ = split(right, bands={"hard": [1, 4]}, subset_size=10)
    other, _ = split(right, bands={"hard": [1, 4]}, subset_size=10, seed=1)
    assert first == again != other
    assert first["hard"] == sorted(first["hard"])
    assert len(set(first["hard"])) == 10


def test_an_empty_pool_gives_an_empty_file(split):
    subsets, counts = split({"a": 2, "b": 3, "c": 6})
    assert subsets["easy"] == []
    assert (len(subsets["medium"]), len(subsets["hard"])) == (1, 1)
    assert counts["easy"]["pool"] == "0"


def test_too_small_a_pool_for_the_size_asked(split, tmp_path):
    with pytest.raises(InputError, match="easy has 0, medium has 1"):
        split({"a": 2, "b": 3, "c": 6}, subset_size=2)
    assert not (tmp_path / "out").exists()


def test_other_bands(split):
    subsets, counts = split({"a": 1, "b": 2, "c": 3, "d": 4}, n=4, samples=4, bands={"low": [1, 1], "high": [3, 3]})
    assert subsets == {"low": ["a"], "high": ["c"]}
    assert counts["between_bands"]["pool"] == "1"
    assert counts["all_right"]["pool"] == "1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 13}, "12 samples a problem"),
        ({"bands": {"a": [1, 5], "b": [5, 8]}}, "a .* and b .* overlap"),
        ({"bands": {"a": [5, 1]}}, "within 1 to 11"),
        ({"bands": {"a": [5, 12]}}, "within 1 to 11"),
        ({"bands": {"a": [0, 4]}}, "within 1 to 11"),
        ({"bands": {"a": 5}}, "'bands' must be"),
        ({"bands": {"a": [1, 2, 3]}}, "'bands' must be"),
        ({"bands": []}, "'bands' must be"),
        ({"bands": {}}, "'bands' is empty"),
        ({"subset_size": 0}, "'subset_size' must be"),
        ({"size": 5}, "unknown key 'size'"),
        ({"seed": "x"}, "'seed' must be"),
    ],
)
def test_bad_settings(split, changes, message):
    with pytest.raises(InputError, match=message):
        split({"a": 2}, **changes)
