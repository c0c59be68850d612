"""`table2_scores.csv`: a row says all there is to know about a score."""

import json

import pandas as pd
import pytest

from datpo.core.errors import InputError
from datpo.report.runs import load_results
from datpo.report.score_rows import rate_rows, score_rows


def test_every_score_has_a_row(golden, make):
    frame = pd.read_csv(make(golden) / "table2_scores.csv")
    # two runs on two benchmarks: avg, and pass and maj at three k; and the averages of avg and pass
    assert len(frame) == 2 * 2 * (1 + 3 + 3) + 2 * 2
    averages, frame = frame[frame.benchmark == "Average"], frame[frame.benchmark != "Average"]
    grpo = frame[(frame.method == "grpo") & (frame.benchmark == "moves")].set_index(["metric", "k"])
    assert grpo.loc[("avg", 4), ["value", "low", "high", "seed_sd"]].tolist() == [62.5, 37.5, 87.5, 17.68]
    assert grpo.loc[("pass", 4), "value"] == 100
    # votes of seed 0: p1 only (3 of 4); of seed 1: p1 (4 of 4), p0 has half of them
    assert grpo.loc[("maj", 4), ["value", "low", "high"]].tolist() == [50, 0, 100]
    assert set(frame[frame.method == "base"].seed_sd.isna()) == {True}
    assert set(frame.n) == {4} and set(frame.problems) == {2}
    assert set(grpo.seeds) == set(averages[averages.method == "grpo"].seeds) == {"0 1"}
    wide = pd.read_csv(make(golden) / "table2.csv").set_index("method")
    for row in averages.itertuples():
        wanted = [wide.loc[row.method, f"average_{row.metric}{end}"] for end in ("", "_low", "_high")]
        assert [row.value, row.low, row.high] == pytest.approx(wanted, abs=0.051)
    assert len(averages.iloc[-1].files.split()) == 2 * 2


def test_a_row_says_how_its_score_was_made(folder):
    header = {
        "prompt": {"template": "plain", "format": "{problem}", "stop": []},
        "engine": "hf",
        "checker": "moves, simulated",
    }
    for seed in (0, 1):
        folder.add_metrics(
            [1, 2], seed=seed, checkpoint=f"abc{seed}", samples_sha256=f"{seed}d", versions={"torch": "2"}, **header
        )
    row = score_rows(load_results(folder.metrics)).iloc[0]
    assert (row.missing, row.bootstrap, row.bootstrap_seed, row.domain) == ("exclude", 2000, 0, "fake")
    assert len(row.questions) == len(row.keys_sha256) == 64
    assert row.engine == "hf" and row.checker == "moves, simulated" and row.temperature == "1.0"
    assert json.loads(row.prompt) == header["prompt"]
    assert (row.checkpoint, row.samples_sha256, row.versions) == ("abc0 abc1", "0d 1d", '{"torch":"2"} {"torch":"2"}')
    assert row.files.split() == [str(path) for path in folder.metrics]
    assert row.rate_truncated == 12.5


def test_the_spread_between_evaluation_runs(folder):
    runs = {"avg": [0.5, 0.25], "pass": {"1": [0.5, 0.25]}, "maj": {"1": [0.0, 0.0]}}
    path = folder.add_metrics([1, 2], settings={"runs": 2}, runs=runs)
    frame = score_rows(load_results([path])).set_index(["metric", "k"])
    assert frame.loc[("avg", 4), "evaluation_sd"] == 17.68  # 25 / sqrt 2
    assert frame.loc[("maj", 1), "evaluation_sd"] == 0
    assert pd.isna(frame.loc[("pass", 4), "evaluation_sd"])  # no run has four samples
    assert set(frame.evaluation_runs) == {2}


def test_rates_stand_beside_the_scores(golden, make):
    text = (make(golden) / "table2.md").read_text()
    assert "## Samples cut off / without an answer / that repeat another" in text
    assert list(rate_rows(load_results(golden.metrics)).values()) == [["12.5 / 0.0 / 0.0"] * 2] * 2
    assert text.count("12.5 / 0.0 / 0.0") == 4


def test_metrics_of_an_older_version(folder):
    path = folder.add_metrics([1, 2])
    path.write_text(path.read_text().replace('"maj"', '"majority"'))
    with pytest.raises(InputError, match="key 'maj' is missing; was the file made by an older version"):
        score_rows(load_results([path]))
