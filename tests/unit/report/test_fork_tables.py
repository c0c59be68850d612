"""Tables 1, 6 and 7 of a small exploration whose numbers can be worked out by hand."""

import csv
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import intervals
from datpo.report.forks.comparison import LAYOUTS, uniform_points
from datpo.report.forks.explorations import MEASURED, RULE_LABELS, load_exploration
from datpo.report.forks.tables import fork_table
from datpo.search.localisation import clustering_ratio, mean_pairwise_distance, nearest_neighbour_distance

PUBLISHED = Path(__file__).resolve().parents[3] / "config/published.yaml"
# Right leaves of problems p, q, r in repeats 0 and 1; PassRate by hand: p, q, r -> mean of the two repeats.
RIGHT = {
    "random": [(0, 0), (0, 1), (0, 0)],  # 0, 1/2, 0: 16.7 %
    "sent-entropy": [(2, 1), (3, 5), (0, 1)],  # 1, 1, 1/2: 83.3 %
}
ROW = {"leaves": 17, "right": 0, "tokens": 300, "forks": 4, "sibling_diversity": 0.1, "length": 101}
LOCAL = {"nnd": 0.15, "mpd": 0.3, "wcr5": 0.0, "wcr10": 0.5}


def settings(**changes):
    numbers = {"roots": 1, "max_forks": 4, "max_siblings": 4}
    return {
        "identity": {"scale": "tiny", "model": "small_1", "method": "base", "run": "base", "seed": 0},
        "exploration": "forks",
        "benchmark": "aime26",
        "structures": [
            {"name": name, "method": "datpo", "numbers": {**numbers, "fork_rule": name}} for name in RULE_LABELS
        ],
        "train": {"temperature": 1.0, "max_new_tokens": 64, "length_limit": "branch", "embedder": "lexical"},
        "seed": 3,
        "bootstrap": 500,
        **changes,
    }


def rows(**changes):
    """A row a tree; `changes` are of one structure's trees."""
    for name in RULE_LABELS:
        for problem, right in zip("pqr", RIGHT.get(name, [(0, 0)] * 3), strict=True):
            for repeat in range(2):
                row = {"structure": name, "problem": problem, "repeat": repeat, **ROW, **LOCAL, "right": right[repeat]}
                yield {**row, **changes.get(name, {})}


def write(folder, changed=None, table=None, **changes):
    (folder / "config.yaml").write_text(yaml.safe_dump(settings(**changes), sort_keys=False))
    with open(folder / "rollouts.csv", "w", newline="") as handle:
        writer = csv.DictWriter(handle, ["structure", "problem", "repeat", *MEASURED])
        writer.writeheader()
        writer.writerows(rows(**(changed or {})) if table is None else table)
    return folder / "config.yaml", folder / "rollouts.csv"


def made(folder, name, changed=None, **changes):
    fork_table(*write(folder, changed, **changes), PUBLISHED, name, folder / "out")
    with open(folder / f"out/{name}.csv", newline="") as handle:
        found = {(row["rule"], row["measure"]): row for row in csv.DictReader(handle)}
    return found, {ending: (folder / f"out/{name}.{ending}").read_text() for ending in ("md", "tex", "html")}


def test_pass_rates_are_of_problems_with_their_repeats_averaged_first(tmp_path):
    found, texts = made(tmp_path, "table1")
    assert [rule for rule, measure in found if measure == "PassRate"] == [
        *("random", "fixed-seg", "ATB", "tok-entropy", "sent-entropy")
    ]
    ours, random = found["sent-entropy", "PassRate"], found["random", "PassRate"]
    assert (float(ours["value"]), float(random["value"])) == (pytest.approx(250 / 3, abs=1e-4), pytest.approx(50 / 3))
    assert (ours["problems"], ours["repeats"], ours["leaves"], ours["tokens"]) == ("3", "2", "17.0", "300.0")
    (interval,) = intervals(np.array([[100.0], [100.0], [50.0]]), 500, 3)
    assert (float(ours["low"]), float(ours["high"])) == pytest.approx(interval[1:], abs=1e-4)
    (ahead,) = intervals(np.array([[100.0], [50.0], [50.0]]), 500, 3)  # p, q, r: less 0, 50 and 0
    assert [float(ours[f"minus_random{end}"]) for end in ("", "_low", "_high")] == pytest.approx(ahead, abs=1e-4)
    assert random["minus_random"] == ""
    assert ours["mark"] == "best"
    assert "| small\\_1 | sent-entropy | **83.3** [50.0, 100.0] |" in texts["md"]
    assert r"\textbf{83.3}$_{50.0}^{100.0}$" in texts["tex"]
    assert "<b>83.3</b><br/><small>[50.0, 100.0]</small>" in texts["html"]
    assert "+66.7 [+50.0, +100.0]" in texts["md"]


def test_notes_tell_sizes_settings_and_noise(tmp_path):
    _, texts = made(tmp_path, "table1", {"atb": {"forks": 3, "leaves": 13}})
    for told in (
        "3 problems, 2 repeats each",
        "101.0 tokens on average, 101 to 101",
        "temperature 1, at most 64 new tokens a branch",
        "random 17.0 and 300; fixed-seg 17.0 and 300; ATB 13.0 and 300",
        "Fewer than 4.0 places to fork were found by ATB (3.0)",
        "a share of 6 trees. Its standard error is 0.0 to 15.2 points",  # sqrt(1/6 * 5/6 / 6), also of 5/6
        "0.0 to 16.7 points clustered by problem",  # 28.9 / sqrt(3)
        "all n/150",
        "2.4 to 3.1 points, and up to 5.5 to 6.9 clustered",
        "not to be compared with the paper's",
    ):
        assert told in texts["html"].replace("&#x27;", "'"), told
    assert math.sqrt(1 / 6 * 5 / 6 / 6) == pytest.approx(0.152, abs=5e-4)


def test_the_paper_stands_beside_ours_at_its_scale_alone(tmp_path):
    found, texts = made(tmp_path, "table7")
    assert "paper" not in next(iter(found.values()))
    assert "17.3" not in texts["md"]
    identity = {**settings()["identity"], "scale": "paper"}
    found, texts = made(tmp_path, "table7", identity=identity)
    row = found["sent-entropy", "PassRate"]
    assert (row["paper"], float(row["minus_paper"])) == ("17.3", pytest.approx(250 / 3 - 17.3, abs=1e-4))
    assert found["tok-entropy, 5% distance", "SibDiv"]["paper"] == "0.1041"
    assert "paper 17.3 (+66.0)" in texts["md"]
    assert found["tok-entropy, 10% distance", "PassRate"]["paper"] == "15.3"


def test_localisation_stands_beside_what_is_expected_of_uniform_points(tmp_path):
    short = {"forks": 2, "length": 5, "nnd": 0.6, "mpd": 0.6}
    found, texts = made(tmp_path, "table6", {"sent-entropy": short})
    assert [rule for rule, measure in found if measure == "NND"] == ["random", "sent-entropy", "tok-entropy"]
    assert {float(found[rule, "MPD"]["uniform"]) for rule in ("random", "sent-entropy")} == {0.33333}
    assert float(found["random", "WCR@5"]["uniform"]) == pytest.approx(100 * 485 / 4950, abs=1e-4)  # 99 + ... + 95
    assert float(found["sent-entropy", "WCR@10"]["uniform"]) == 0  # no two of 5 tokens are half a token apart
    assert float(found["sent-entropy", "NND"]["minus_random"]) == pytest.approx(0.45)
    assert (found["random", "WCR@10"]["value"], found["random", "WCR@10"]["mark"]) == ("50.0", "")
    assert "all n/150" not in texts["md"]
    assert "9.75 and 19" in texts["md"]


def test_what_is_undefined_is_left_out_and_told(tmp_path):
    undefined = {"sent-entropy": {"forks": 1, **dict.fromkeys(LOCAL, "")}}
    found, texts = made(tmp_path, "table6", undefined)
    row = found["sent-entropy", "NND"]
    assert (row["problems"], row["value"], row["uniform"], row["minus_random"]) == ("0", "", "", "")
    assert "NND is undefined for 3 problems of sent-entropy" in texts["html"]
    assert "| small\\_1 | sent-entropy | – | – |" in " ".join(texts["md"].split())


@pytest.mark.parametrize(("points", "length"), [(2, 5), (3, 9), (4, 12), (5, 8), (4, 5)])
def test_uniform_points_equal_an_enumeration(points, length):
    sets = [np.array(places) for places in combinations(range(1, length), points)]
    expected = {
        "nnd": np.mean([nearest_neighbour_distance(places, length) for places in sets]),
        "mpd": np.mean([mean_pairwise_distance(places, length) for places in sets]),
        "wcr5": np.mean([clustering_ratio(places, length, 5) for places in sets]),
        "wcr10": np.mean([clustering_ratio(places, length, 10) for places in sets]),
    }
    assert uniform_points(points, length) == pytest.approx(expected)


def test_uniform_points_on_a_long_trajectory_are_the_known_values():
    found = uniform_points(4, 20_000)
    assert found == pytest.approx({"nnd": 0.15, "mpd": 1 / 3, "wcr5": 0.0975, "wcr10": 0.19}, abs=2e-4)


def test_marks_need_paired_intervals(tmp_path):
    """As far ahead on average, but on one problem alone: nothing is marked, and no second without a best."""
    found, _ = made(tmp_path, "table1", {"sent-entropy": {"right": 0}})
    assert {row["mark"] for row in found.values()} == {""}
    ahead = {"sent-entropy": {"sibling_diversity": 0.3}, "tok-entropy": {"sibling_diversity": 0.2}}
    found, texts = made(tmp_path, "table1", ahead)
    assert {rule: row["mark"] for (rule, measure), row in found.items() if measure == "SibDiv" and row["mark"]} == {
        "sent-entropy": "best",
        "tok-entropy": "second",
    }
    assert r"\underline{0.2000}" in texts["tex"]


def test_repeats_count_once_a_problem(tmp_path):
    exploration = load_exploration(*write(tmp_path))
    (chosen,) = (each for each in exploration.structures if each.name == "random")
    assert exploration.values(chosen, "solved") == {"p": 0.0, "q": 0.5, "r": 0.0}
    assert (exploration.problems, exploration.repeats) == (3, 2)


def refused(tmp_path, match, name="table1", **given):
    with pytest.raises(InputError, match=match):
        fork_table(*write(tmp_path, **given), PUBLISHED, name, tmp_path / "out")


def test_mistakes_are_named(tmp_path):
    refused(tmp_path, "--table must be one of table1, table6, table7", name="table2")
    refused(tmp_path, "0 structures with roots: 1 and fork_rule: random", structures=settings()["structures"][1:])
    twice = settings()["structures"][0]
    refused(tmp_path, "2 structures", structures=[*settings()["structures"], {**twice, "name": "fixed-seg"}])
    refused(tmp_path, "'atb' has not just one tree", table=[row for row in rows() if row["structure"] != "atb"])
    refused(tmp_path, "'tok-entropy' has not just one tree", table=[*rows(), list(rows())[18]])
    refused(tmp_path, "no table of rollouts", table=[{**row, "leaves": "many"} for row in rows()])
    config, rollouts = write(tmp_path)
    text = rollouts.read_text().replace("length", "long")
    rollouts.write_text(text)
    with pytest.raises(InputError, match="no column 'length'"):
        fork_table(config, rollouts, PUBLISHED, "table1", tmp_path / "out")
    with pytest.raises(InputError, match="no such file"):
        fork_table(config, tmp_path / "none.csv", PUBLISHED, "table1", tmp_path / "out")
    config, rollouts = write(tmp_path)
    (tmp_path / "published.yaml").write_text("table1: {rows: {random: [1.0]}}\ncautions: []\n")
    with pytest.raises(InputError, match="section 'table1' is missing or not as expected"):
        fork_table(config, rollouts, tmp_path / "published.yaml", "table1", tmp_path / "out")


def test_hostile_names_stay_text(tmp_path):
    identity = {**settings()["identity"], "model": "<script>a|b</script>$"}
    _, texts = made(tmp_path, "table1", identity=identity)
    assert "<script>" not in texts["html"]
    assert r"\textless{}script\textgreater{}a\textbar{}b" in texts["tex"]


def test_layouts_are_the_papers():
    published = yaml.safe_load(PUBLISHED.read_text())
    for name, layout in LAYOUTS.items():
        assert {RULE_LABELS[rule] for rule in layout.rules} == set(published[name]["rows"])
        assert [measure.title for measure in layout.measures] == published[name]["columns"]
