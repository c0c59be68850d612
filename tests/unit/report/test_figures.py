"""Figures: what their lines show, and that both files appear."""

import numpy as np
import pytest

from datpo.core.errors import InputError
from datpo.report.figures import learning_curves, mean_curve, pass_at_k_figure, pass_curve, smoothed
from datpo.report.runs import Run, load_results
from datpo.report.style import looks
from datpo.report.training import load_training
from tests.unit.report.drawing import assert_drawn, lines, panels


def test_pass_curve_averages_seeds_and_does_not_pour_them_together(golden):
    # moves, pass@2 of c of 4: 1 - C(4-c, 2)/6. GRPO (1, 3): ½ and 1; (2, 4): 5/6 and 1. Mean (⅔ + 1)/2.
    # Poured together (3 and 7 of 8) it would be 1 - C(5, 2)/28 = 0.643 for the first problem instead.
    curve = pass_curve(load_results(golden.metrics), Run("small", "grpo", "grpo"), "moves")
    assert list(curve) == [1, 2, 4]
    assert curve[1].value == pytest.approx(62.5)
    assert curve[2].value == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert (curve[2].low, curve[2].high) == pytest.approx((200 / 3, 100))
    assert curve[4].value == pytest.approx(100)


def test_pass_at_k_figure_names_runs_models_and_benchmarks(golden, tmp_path):
    for benchmark, table_k in (("moves", 4), ("moves_hard", 2)):
        golden.add_metrics([1, 2], model="large", method="base", benchmark=benchmark, table_k=table_k)
    pass_at_k_figure(golden.metrics, tmp_path / "figures" / "passk.png")
    text = assert_drawn(tmp_path / "figures" / "passk.png")
    for word in ("Base", "GRPO", "small", "large", "moves_hard", "pass@k", "95 %"):
        assert word in text


def test_pass_at_k_figure_of_one_problem_has_lines_without_bands(folder, tmp_path):
    folder.add_metrics([2], method="base")
    pass_at_k_figure(folder.metrics, tmp_path / "passk.png")
    assert_drawn(tmp_path / "passk.png")


def test_a_figure_over_runs_with_other_k_names_the_missing_one(folder, tmp_path):
    folder.add_metrics([1, 2], method="base")
    folder.add_metrics([1, 2], ks=(1, 4))
    with pytest.raises(InputError, match=r"no pass@2 \(it has k = 1, 4\)"):
        pass_at_k_figure(folder.metrics, tmp_path / "passk.png")
    assert not (tmp_path / "passk.png").exists()


def test_smoothing_is_a_centred_running_mean_over_a_tenth_of_the_steps(folder):
    # 30 steps: a window of 3, so the reward 0.1·step keeps its value inside and is a mean of two at the ends.
    log = load_training([folder.add_log(steps=30)])[0]
    tokens, reward = smoothed(log, "reward")
    assert tokens[0] == 1000
    assert reward[5] == pytest.approx(0.5)
    assert reward[0] == pytest.approx(0.05)


def test_the_mean_of_seeds_goes_as_far_as_all_of_them():
    grid, values = mean_curve(
        [(np.array([0.0, 10.0]), np.array([0.0, 10.0])), (np.array([2.0, 6.0]), np.array([4.0, 4.0]))]
    )
    assert (grid[0], grid[-1]) == (2, 6)
    assert (values[0], values[-1]) == pytest.approx((3, 5))


def test_learning_curves_name_runs_and_quantities(folder, tmp_path):
    for seed in (0, 1):
        folder.add_log(seed=seed, steps=30 + seed)
        folder.add_log(method="datpo", run="wide", seed=seed, steps=20)
    learning_curves(folder.logs, tmp_path / "curves.png")
    text = assert_drawn(tmp_path / "curves.png")
    for word in ("GRPO", "DATPO (wide)", "entropy", "zero-signal", "generated tokens", "Running means over 10 %"):
        assert word in text


@pytest.mark.parametrize(("against", "end"), [("steps", 9), ("tokens", 10_000), ("hours", 1 / 60)])
def test_learning_curves_end_where_training_did(folder, tmp_path, drawn, against, end):
    # 10 steps of 1,000 tokens and 6 s: the log's last step is 9, at 60 s.
    folder.add_log()
    learning_curves(folder.logs, tmp_path / "curves.png", against)
    for panel in panels(drawn[0]):
        assert lines(panel)["GRPO"][-1][0] == pytest.approx(end)


def test_learning_curves_show_what_all_logs_have_and_some_a_number_of(folder, tmp_path, drawn):
    folder.add_log(grad_norm=2.5, ratio_mean=None, sampler_gap=0.5)
    folder.add_log(method="datpo", grad_norm=1.5, ratio_mean=None)
    learning_curves(folder.logs, tmp_path / "curves.png")
    shown = {panel.get_title(): panel for panel in panels(drawn[0])}
    assert "mean ratio" not in shown and "gap to the sampler (nats)" not in shown
    assert {name: points[0][1] for name, points in lines(shown["gradient norm"]).items()} == {"GRPO": 2.5, "DATPO": 1.5}


def test_learning_curves_against_something_else_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="steps, tokens, hours, not 'days'"):
        learning_curves([folder.add_log()], tmp_path / "curves.png", "days")


def test_learning_curves_need_the_log_of_a_trained_run(folder, tmp_path):
    with pytest.raises(InputError, match="no training logs"):
        learning_curves([folder.add_log(method="base")], tmp_path / "curves.png")


def test_a_log_at_another_kind_of_place_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("{}\n")
    with pytest.raises(InputError, match="MODEL/METHOD/RUN/seedN"):
        learning_curves([path], tmp_path / "curves.png")


def test_pass_at_k_figure_draws_the_curves(golden, tmp_path, drawn):
    pass_at_k_figure(golden.metrics, tmp_path / "passk.png")
    moves, hard = panels(drawn[0])
    # see above; base has 0 and 2 of 4: pass@2 of the latter is 1 - 1/6
    assert lines(moves)["GRPO"] == [[1, pytest.approx(62.5)], [2, pytest.approx(250 / 3)], [4, pytest.approx(100)]]
    assert lines(moves)["Base"] == [[1, pytest.approx(25)], [2, pytest.approx(125 / 3)], [4, pytest.approx(50)]]
    assert lines(hard)["Base"][0] == [1, pytest.approx(12.5)]


def test_a_legend_of_ten_long_names_lies_above_the_panels(folder, tmp_path, drawn):
    for number in range(9):
        folder.add_metrics([1, 2], method="datpo", run=f"datpo_of_a_name_that_is_long_and_longer_still_{number}")
    folder.add_metrics([0, 1], method="base")
    pass_at_k_figure(folder.metrics, tmp_path / "passk.png")
    (legend,) = drawn[0].legends
    (panel,) = panels(drawn[0])
    box = legend.get_window_extent()
    assert len(legend.get_texts()) == 10
    assert box.y0 > panel.get_tightbbox().y1 and panel.get_tightbbox().height > box.height / 4
    assert box.x0 > 0 and box.x1 < drawn[0].bbox.x1 and box.y1 < drawn[0].bbox.y1 + 1


def test_equal_figures_are_equal_files(golden, tmp_path):
    for name in ("a", "b"):
        pass_at_k_figure(golden.metrics, tmp_path / f"{name}.png")
    for suffix in (".png", ".svg"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_runs_differ_in_dash_and_marker_and_look_alike_across_models():
    runs = [Run(model, method, method) for model in ("a", "b") for method in ("base", "grpo", "dr_grpo", "datpo")]
    runs += [Run("a", "datpo", f"variant{i}") for i in range(6)]
    look = looks(runs)
    of_a = [(str(look[run]["linestyle"]), look[run]["marker"]) for run in runs if run.model == "a"]
    assert len(set(of_a)) == len(of_a)
    assert look[Run("a", "grpo", "grpo")] == look[Run("b", "grpo", "grpo")]
