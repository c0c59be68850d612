"""Figures 4 and 11: numbers worked out by hand, read back from their lines."""

import json

import pytest

from datpo.core.errors import InputError
from datpo.report.curve_figures import figure4, figure11, spread_of
from datpo.report.runs import Run, load_results
from datpo.report.studies.data import Point
from tests.unit.report.drawing import assert_drawn, ends, lines, panels, write_study

AT = {"tokens": [2500, 5000]}


def add_run(folder, *points, run="datpo", seed=0, tokens=1000):
    """A training with checkpoints at 2,500 and 5,000 tokens: its log, and metrics there and at its end.

    It spends `tokens` in each of its 10 steps.
    """
    for at, metrics in zip(({"at": "tokens-2500"}, {"at": "tokens-5000"}, {}), points, strict=True):
        folder.add_metrics(method="datpo", run=run, seed=seed, **at, **metrics)
    path = folder.add_log(method="datpo", run=run, seed=seed)
    rows = [json.loads(line) | {"total_tokens": tokens * (step + 1)} for step, line in enumerate(path.open())]
    for amount in AT["tokens"]:
        next(row for row in rows if row["total_tokens"] >= amount)["reached"].append(f"tokens-{amount}")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def of_four(*right):
    """Settings of metrics of 4 samples a problem."""
    return {"correct": list(right)}


@pytest.fixture
def trained(folder):
    """Base with 1 and 1 of 4 right; DATPO with (1, 3), (2, 4) and (4, 4) along 10 steps of 1,000 tokens."""
    folder.add_metrics([1, 1], method="base")
    add_run(folder, of_four(1, 3), of_four(2, 4), of_four(4, 4))
    folder.study = write_study(folder, {"ours": "datpo"}, checkpoints=AT)
    return folder


def test_figure4_goes_from_the_untrained_model_to_the_end(trained, tmp_path, drawn):
    figure4(trained.study, trained.metrics, trained.logs, tmp_path / "figure4.png")
    (panel,) = panels(drawn[0])
    # 2,500 tokens were spent at the end of step 3, 5,000 in step 5
    assert lines(panel) == {"ours": [[0, 25], [3000, 50], [5000, 75], [10_000, 100]]}
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("generated tokens", "avg@k (%)")
    # the band: of (1, 3) two problems of one kind are drawn in one case of four
    (band,) = panel.collections
    assert {25, 75} <= set(band.get_paths()[0].vertices[:, 1].tolist())
    assert "At 0: the untrained model" in assert_drawn(tmp_path / "figure4.png")


def test_figure4_averages_seeds_in_both_directions(trained, tmp_path, drawn):
    add_run(trained, of_four(1, 1), of_four(2, 2), of_four(0, 0), seed=1, tokens=2000)
    study = write_study(trained, {"ours": "datpo"}, checkpoints=AT, seeds=[0, 1])
    figure4(study, trained.metrics, trained.logs, tmp_path / "figure4.png")
    # seed 1 is at 4,000, 6,000 and 20,000 tokens, with 25, 50 and 0 %
    assert lines(panels(drawn[0])[0])["ours"] == [[0, 25], [3500, 37.5], [5500, 62.5], [15_000, 50]]


def test_figure4_has_a_panel_for_each_benchmark_and_unit(trained, tmp_path, drawn):
    for at in ("tokens-2500", "tokens-5000", "steps-1", None):
        where = {"at": at} if at else {}
        trained.add_metrics([2, 2], method="datpo", benchmark="moves_hard", **where)
    trained.add_metrics([3, 3], method="datpo", at="steps-1")
    trained.add_metrics([0, 0], method="base", benchmark="moves_hard")
    path = trained.logs[0]
    path.write_text(path.read_text().replace('"reached": ["steps"]', '"reached": ["steps-1"]'))
    study = write_study(
        trained, {"ours": "datpo"}, checkpoints={**AT, "steps": [1]}, benchmarks=["moves", "moves_hard"]
    )
    figure4(study, trained.metrics, trained.logs, tmp_path / "figure4.png")
    shown = panels(drawn[0])
    assert [panel.get_xlabel() for panel in shown] == ["generated tokens", "steps"] * 2
    assert lines(shown[1])["ours"] == [[0, 25], [1, 75], [9, 100]]
    assert lines(shown[2])["ours"] == [[0, 0], [3000, 50], [5000, 50], [10_000, 50]]


def three_runs(right, passed):
    """Settings of metrics of 6 samples a problem in three evaluation runs of two; `passed` is their pass@2."""
    means = {"avg": [0.5] * 3, "pass": {"1": [0.5] * 3, "2": passed}, "maj": {"1": [0.5] * 3, "2": [0.5] * 3}}
    return {"correct": right, "n": 6, "ks": (1, 2), "settings": {"runs": 3}, "runs": means}


def test_figure11_shows_pass_and_how_evaluation_runs_scatter(folder, tmp_path, drawn):
    folder.add_metrics(method="base", **three_runs([0, 3], [0.5, 0.5, 0.5]))
    for run, passed in (("datpo", [0.5, 1.0, 0.75]), ("datpo-0", [0.25, 0.25, 0.25])):
        add_run(folder, *[three_runs([3, 6], passed)] * 2, three_runs([0, 6], [0.5] * 3), run=run)
    study = write_study(folder, {"alpha 0": "datpo-0", "alpha 0.2->0": "datpo"}, checkpoints=AT)
    figure11(study, folder.metrics, folder.logs, tmp_path / "figure11.png")
    (panel,) = panels(drawn[0])
    # 3 of 6: pass@2 = 1 - C(3,2)/C(6,2) = 0.8; base (0 + 0.8)/2
    assert lines(panel)["alpha 0.2->0"] == [
        [0, pytest.approx(40)],
        [3000, pytest.approx(90)],
        [5000, pytest.approx(90)],
        [10_000, pytest.approx(50)],
    ]
    assert panel.get_ylabel() == "pass@2 (%)"
    # bars of the second run at the checkpoints: 75 +- 25
    assert ends(panel)[4:] == [[50, 50], [50, 100], [50, 100], [50, 50]]


def test_figure11_of_one_evaluation_run_has_bands_alone(trained, tmp_path, drawn):
    figure11(trained.study, trained.metrics, trained.logs, tmp_path / "figure11.png")
    (panel,) = panels(drawn[0])
    assert lines(panel)["ours"] == [[0, 100], [3000, 100], [5000, 100], [10_000, 100]]
    assert ends(panel) == []


def test_spread_is_that_within_a_seed(folder):
    folder.add_metrics(seed=0, **three_runs([0, 3], [0.5, 1.0, 0.75]))
    folder.add_metrics(seed=1, **three_runs([0, 3], [0.25, 0.25, 0.25]))
    results = load_results(folder.metrics)
    spread = spread_of(Point(0, results, Run("small", "grpo", "grpo")), "moves")
    # means 75 and 25; variances 625 and 0
    assert spread == (pytest.approx(50), pytest.approx((625 / 2) ** 0.5))


def test_figure4_names_what_is_missing(trained, tmp_path):
    def draw(metrics=trained.metrics, logs=trained.logs, **changed):
        study = write_study(trained, {"ours": "datpo"}, **{"checkpoints": AT, **changed})
        figure4(study, metrics, logs, tmp_path / "figure4.png")

    without = {word: [path for path in trained.metrics if word not in str(path)] for word in ("/base/", "5000")}
    with pytest.raises(InputError, match="it names no `checkpoints`"):
        draw(checkpoints={})
    with pytest.raises(InputError, match="no metrics of checkpoints at tokens-5000"):
        draw(without["5000"])
    with pytest.raises(InputError, match="no metrics of small/base/base, where the curves begin"):
        draw(without["/base/"])
    with pytest.raises(InputError, match="no training log of small/datpo/datpo seed 0"):
        draw(logs=[])
    path = trained.logs[0]
    path.write_text(path.read_text().replace('"tokens-5000"', '"tokens-5001"'))
    with pytest.raises(InputError, match="says that it reached its tokens-5000"):
        draw()
    with pytest.raises(InputError, match="counts 'passes'"):
        draw(
            [*trained.metrics, trained.add_metrics([1, 1], method="datpo", at="passes-1")], checkpoints={"passes": [1]}
        )
    assert not (tmp_path / "figure4.png").exists()


def test_checkpoints_are_held_against_the_untrained_model(trained, tmp_path):
    path = trained.add_metrics([1, 2, 3], method="datpo", at="tokens-2500")
    with pytest.raises(InputError, match=str(path)):
        figure4(trained.study, list(dict.fromkeys(trained.metrics)), trained.logs, tmp_path / "figure4.png")
