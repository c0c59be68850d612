"""Figure 6, and the problems gained and lost: numbers worked out by hand, read back from what is drawn."""

import json

import numpy as np
import pytest

from datpo.core.errors import InputError
from datpo.report.coverage_figures import coverage, figure6, gained_figure
from datpo.report.runs import Run, load_results
from tests.unit.report.drawing import assert_drawn, ends, lines, panels, write_study

GRPO = Run("small", "grpo", "grpo")


def set_votes(path, votes):
    document = json.loads(path.read_text())
    for row, vote in zip(document["per_problem"], votes, strict=True):
        row["maj"] = dict.fromkeys(row["maj"], vote)
    document["maj"] = {k: {"value": float(np.mean(votes)), "low": 0.0, "high": 1.0} for k in document["maj"]}
    path.write_text(json.dumps(document))


def test_figure6_shows_votes_and_their_paired_gain(folder, tmp_path, drawn):
    set_votes(folder.add_metrics([1, 3], method="base"), [0.0, 1.0])
    set_votes(folder.add_metrics([2, 4]), [0.5, 1.0])
    set_votes(folder.add_metrics([0, 0], benchmark="moves_hard"), [0.5, 0.5])
    set_votes(folder.add_metrics([4, 4], method="base", benchmark="moves_hard"), [1.0, 1.0])
    name = "a label that is much too long to stand beside a panel in one line"
    study = write_study(folder, {"Base": "base", name: "grpo"}, benchmarks=["moves", "moves_hard"])
    figure6(study, folder.metrics, tmp_path / "figure6.png")
    votes, gains = panels(drawn[0])
    assert lines(votes) == {"Base": [[75, 0]], name: [[62.5, 1]]}
    # moves: votes - share right is (-25, 25) and (0, 0); moves_hard: 0 and 50 for both problems
    assert lines(gains) == {"Base": [[0, 0]], name: [[25, 1]]}
    horizontal = [
        segment[:, 0].tolist() for bars in gains.collections for segment in bars.get_segments() if len(segment) == 2
    ]
    assert horizontal == [[-12.5, 12.5], [25, 25]]
    assert (votes.get_xlabel(), gains.get_xlabel()) == ("maj@4 (%)", "maj@4 - avg@k (points)")
    assert [label.get_text().replace("\n", " ") for label in votes.get_yticklabels()] == ["Base", name]
    assert "Means over moves, moves_hard" in assert_drawn(tmp_path / "figure6.png")


def test_figure6_averages_seeds_and_stacks_models(folder, tmp_path, drawn):
    for model in ("small", "large"):
        for seed, votes in ((0, [0.0, 1.0]), (1, [1.0, 1.0])):
            set_votes(folder.add_metrics([1, 3], model=model, seed=seed), votes)
    study = write_study(folder, {"GRPO": "grpo"}, models=["small", "large"], seeds=[0, 1])
    figure6(study, folder.metrics, tmp_path / "figure6.png")
    assert [lines(panel)["GRPO"][0][0] for panel in panels(drawn[0])] == [75, 25] * 2
    text = assert_drawn(tmp_path / "figure6.png")
    assert text.index("small") < text.index("large")


def test_figure6_names_a_row_without_metrics(folder, tmp_path):
    folder.add_metrics([1, 3])
    with pytest.raises(InputError, match="no metrics of small/datpo/datpo seed 0"):
        figure6(write_study(folder, {"GRPO": "grpo", "ours": "datpo"}), folder.metrics, tmp_path / "figure6.png")


def test_coverage_counts_problems_solved_at_least_once(folder):
    folder.add_metrics([0, 2, 1, 0], method="base")
    folder.add_metrics([1, 2, 0, 0])
    found = coverage(load_results(folder.metrics), GRPO, "moves")
    assert found[:4] == (1, 1, 1, 1)
    # One right sample of 8 is dealt to either side with probability 1/2; of four, all to one side in C(4,4)/C(8,4).
    assert found.lost_by_chance == found.gained_by_chance == pytest.approx(0.5 + 1 / 70 + 0.5)


def test_chance_knows_how_many_samples_each_side_has(folder):
    folder.add_metrics([0, 1], method="base", ks=(1,))
    path = folder.add_metrics([1, 1], ks=(1,))
    document = json.loads(path.read_text())
    document["per_problem"][0]["n"] = 1  # three of the four samples were lost
    document["avg"]["value"] = document["pass"]["1"]["value"] = (1 + 1 / 4) / 2
    path.write_text(json.dumps(document))
    found = coverage(load_results(folder.metrics), GRPO, "moves")
    # p0: one right of 4 + 1 is the trained one's in 1/5; p1: two right of 4 + 4 are both one side's in 6/28
    assert found.gained_by_chance == pytest.approx(1 / 5 + 6 / 28)
    assert found.lost_by_chance == pytest.approx(4 / 5 + 6 / 28)


def test_coverage_is_the_mean_over_seeds(folder):
    folder.add_metrics([0, 4], method="base")
    folder.add_metrics([1, 4], seed=0)
    folder.add_metrics([0, 0], seed=1)
    assert coverage(load_results(folder.metrics), GRPO, "moves")[:4] == (0.5, 0.5, 0.5, 0.5)


def test_the_figure_of_gained_problems_draws_them(folder, tmp_path, drawn):
    folder.add_metrics([0, 2, 1, 0], method="base")
    folder.add_metrics([1, 2, 0, 0])
    folder.add_metrics([4, 4, 1, 0], method="datpo")
    gained_figure(folder.metrics, tmp_path / "gained.png")
    bars, changes = panels(drawn[0])
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in bars.patches] == [
        (0, -1), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    assert [label.get_text() for label in bars.get_yticklabels()] == [
        "GRPO\nboth 1, neither 1",
        "DATPO\nboth 2, neither 1",
    ]
    # changes of the share of right samples, sorted: GRPO (25, 0, -25, 0), DATPO (100, 50, 0, 0)
    assert lines(changes)["GRPO"] == [[12.5, 25], [37.5, 0], [62.5, 0], [87.5, -25]]
    assert [y for _, y in lines(changes)["DATPO"]] == [100, 50, 0, 0]
    assert "as many as chance would give" in assert_drawn(tmp_path / "gained.png")


def test_the_figure_of_gained_problems_needs_both_sides(folder, tmp_path):
    folder.add_metrics([1, 2])
    with pytest.raises(InputError, match=r"small/grpo/grpo: no metrics of its untrained model, small/base/base"):
        gained_figure(folder.metrics, tmp_path / "gained.png")
    with pytest.raises(InputError, match="no metrics of a trained run"):
        gained_figure([folder.add_metrics([1, 2], method="base")], tmp_path / "gained.png")


def test_a_gained_figure_has_two_panels_for_each_model_and_benchmark(golden, tmp_path, drawn):
    for benchmark, table_k in (("moves", 4), ("moves_hard", 2)):
        for method in ("base", "grpo"):
            golden.add_metrics([1, 2], model="large", method=method, benchmark=benchmark, table_k=table_k)
    gained_figure(golden.metrics, tmp_path / "gained.png")
    assert len(panels(drawn[0])) == 8
    assert "large, moves_hard" in assert_drawn(tmp_path / "gained.png")
    assert ends(panels(drawn[0])[1]) == []
