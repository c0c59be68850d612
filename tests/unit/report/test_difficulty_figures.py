"""Figures 1, 5 and 7: numbers worked out by hand, read back from their lines."""

import json

import numpy as np
import pytest

from datpo.core.errors import InputError
from datpo.report.difficulty_figures import figure1, figure5, figure7
from tests.unit.report.drawing import assert_drawn, ends, lines, panels, write_study

# Right samples (of 4) of problems p0 and p1 on two benchmarks, by subset and group size.
RIGHT = {
    ("easy", 4): ([1, 3], [0, 2]),
    ("easy", 8): ([4, 4], [0, 0]),
    ("hard", 4): ([0, 0], [0, 0]),
    ("hard", 8): ([2, 2], [1, 0]),
}


def row(subset, size):
    return f"grpo-{subset}-{size}", {"roots": size}, {"subset": subset}


@pytest.fixture
def grid(folder):
    """GRPO with G = 4 and 8 on easy and hard problems, and Base."""
    rows = {f"{subset}, G = {size}": row(subset, size) for subset, size in RIGHT}
    for (subset, size), counts in RIGHT.items():
        for benchmark, correct in zip(("moves", "moves_hard"), counts, strict=True):
            folder.add_metrics(correct, run=row(subset, size)[0], benchmark=benchmark)
    for benchmark in ("moves", "moves_hard"):
        folder.add_metrics([0, 2], method="base", benchmark=benchmark)
    folder.study = write_study(folder, rows, benchmarks=["moves", "moves_hard"])
    return folder


def test_figure1_shows_the_mean_over_benchmarks_for_every_subset_and_size(grid, tmp_path, drawn):
    figure1(grid.study, grid.metrics, tmp_path / "figure1.png")
    average, passed = panels(drawn[0])
    # avg: easy G = 4 is (50 + 25)/2; pass@4 is whether any is right, (100 + 50)/2
    found = {name: [y for _, y in points] for name, points in lines(average).items() if name != "Base"}
    assert found == {"easy": [37.5, 50], "hard": [0, pytest.approx((50 + 12.5) / 2)]}
    found = {name: [y for _, y in points] for name, points in lines(passed).items() if name != "Base"}
    assert found == {"easy": [75, 50], "hard": [0, 75]}
    assert (average.get_title(), passed.get_title()) == ("avg@k", "pass@4")
    for points in (lines(average)["easy"], lines(average)["hard"]):
        assert np.round(np.log2([x for x, _ in points])).tolist() == [2, 3]
    assert {y for _, y in lines(average)["Base"]} == {25}
    # of two problems in each of two benchmarks: all of the worse kind with probability 1/16
    assert ends(average)[0] == [12.5, 62.5]


def test_figure1_names_subsets_scale_and_benchmarks(grid, tmp_path):
    figure1(grid.study, grid.metrics, tmp_path / "figure1.png")
    text = assert_drawn(tmp_path / "figure1.png")
    for word in ("trained on easy problems", "trained on hard problems", "Base", "Scale: tiny", "moves, moves_hard"):
        assert word in text
    assert "after" not in text


@pytest.mark.parametrize(
    ("at", "title"), [("updates", "after equally many updates"), ("updates-1500", "after 1,500 updates")]
)
def test_figures_of_checkpoints_on_the_way_say_so(folder, tmp_path, at, title):
    folder.add_metrics([1, 2], run="grpo-easy-4", at=at)
    folder.add_metrics([1, 2], run="grpo-easy-8", at=at)
    study = write_study(folder, {str(size): row("easy", size) for size in (4, 8)})
    for draw in (figure1, figure7):
        draw(study, folder.metrics, tmp_path / "figure.png")
        assert title in assert_drawn(tmp_path / "figure.png")


def test_figure1_averages_seeds_and_says_which_k_where_they_differ(folder, tmp_path, drawn):
    for seed, right in ((0, [0, 2]), (1, [4, 2])):
        folder.add_metrics(right, run="grpo-all-4", seed=seed)
        folder.add_metrics(right, run="grpo-all-4", seed=seed, benchmark="moves_hard", table_k=2)
    study = write_study(
        folder, {"all": ("grpo-all-4", {"roots": 4}, {})}, benchmarks=["moves", "moves_hard"], seeds=[0, 1]
    )
    figure1(study, folder.metrics, tmp_path / "figure1.png")
    average, passed = panels(drawn[0])
    assert lines(average)["all"] == [[4, 50]]
    # p0: 0 and 1; p1: 1 at k = 4 and 5/6 at k = 2 in both seeds
    assert lines(passed)["all"] == [[4, pytest.approx(100 * (0.75 + (0.5 + 5 / 6) / 2) / 2)]]
    assert "k: 4 on moves, 2 on moves_hard" in assert_drawn(tmp_path / "figure1.png")


def test_figure7_has_a_group_of_panels_for_each_subset_and_a_line_for_each_size(grid, tmp_path, drawn):
    figure7(grid.study, grid.metrics, tmp_path / "figure7.png")
    easy, easy_on_hard, _, hard_on_hard = panels(drawn[0])
    assert list(lines(easy)) == ["G = 4", "G = 8", "Base"]
    # 1 and 3 of 4: pass@2 = 1/2 and 1
    assert lines(easy)["G = 4"] == [[1, 50], [2, pytest.approx(75)], [4, 100]]
    assert lines(easy_on_hard)["G = 8"] == [[1, 0], [2, 0], [4, 0]]
    assert lines(hard_on_hard)["G = 8"] == [[1, 12.5], [2, pytest.approx(25)], [4, 50]]
    text = assert_drawn(tmp_path / "figure7.png")
    assert text.index("trained on easy problems") < text.index("trained on hard problems")


def test_figure7_titles_every_model(folder, tmp_path, drawn):
    for model in ("small", "large"):
        folder.add_metrics([1, 2], model=model, run="grpo-easy-4")
    study = write_study(folder, {"one": row("easy", 4)}, models=["small", "large"])
    figure7(study, folder.metrics, tmp_path / "figure7.png")
    text = assert_drawn(tmp_path / "figure7.png")
    assert "small, trained on easy problems" in text and "large, trained on easy problems" in text


@pytest.mark.parametrize(
    ("rows", "changed", "message"),
    [
        ({"a": ("grpo-easy-4", {}, {})}, {}, "row 'a' has no group size"),
        (
            {"a": row("easy", 4), "b": ("grpo-hard-4", {"roots": 4}, {"subset": "easy"})},
            {},
            "'a' and 'b' both train on",
        ),
        ({"a": row("easy", 4), "b": row("easy", 16)}, {}, "no metrics of small/grpo/grpo-easy-16 seed 0"),
        ({"a": row("easy", 4)}, {"seeds": [0, 3]}, "no metrics of small/grpo/grpo-easy-4 seed 3"),
        ({"a": row("easy", 4)}, {"models": ["small", "large"]}, "no metrics of large/grpo/grpo-easy-4 seed 0"),
        ({"a": row("easy", 4)}, {"benchmarks": ["other"]}, "no metrics on benchmark 'other'"),
        ({"a": row("easy", 4)}, {"scale": "paper"}, "its scale is 'paper', that of the metrics 'tiny'"),
        ({"a": "base"}, {}, "no row is a training"),
    ],
)
def test_figure1_names_what_is_missing_or_odd(grid, tmp_path, rows, changed, message):
    with pytest.raises(InputError, match=message):
        figure1(write_study(grid, rows, **changed), grid.metrics, tmp_path / "figure1.png")
    assert not (tmp_path / "figure1.png").exists()


def test_an_untrained_model_that_is_a_row_needs_its_metrics(folder, tmp_path):
    folder.add_metrics([1, 2], run="grpo-easy-4")
    with pytest.raises(InputError, match="no metrics of small/base/base"):
        figure1(write_study(folder, {"a": row("easy", 4), "Base": "base"}), folder.metrics, tmp_path / "f.png")


def write_levels(path, by_step):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    named = [
        {level: dict(zip(("problems", "leaves", "solved"), counts, strict=True)) for level, counts in step.items()}
        for step in by_step
    ]
    path.write_text(
        "".join(json.dumps(row | {"levels": levels}) + "\n" for row, levels in zip(rows, named, strict=True))
    )


# Four steps: problems, leaves and solved problems by level. Level 10 comes after 2; problems without a level are last.
STEPS = [
    {"2": (2, 16, 0), "none": (1, 8, 1)},
    {"2": (2, 16, 1)},
    {"2": (1, 24, 1), "10": (1, 30, 0)},
    {"2": (3, 40, 3), "10": (3, 90, 1)},
]


def test_figure5_sums_over_the_steps_and_over_the_last_half(folder, tmp_path, drawn):
    write_levels(folder.add_log(method="datpo", steps=4), STEPS)
    figure5(write_study(folder, {"ours": "datpo"}), folder.logs, tmp_path / "figure5.png")
    leaves, leaves_late, solved, solved_late = panels(drawn[0])
    assert [label.get_text() for label in leaves.get_xticklabels()] == ["2", "10", "none"]
    assert lines(leaves)["ours"] == [[0, 96 / 8], [1, 30], [2, 8]]
    assert lines(leaves_late)["ours"] == [[0, 64 / 4], [1, 30]]
    assert lines(solved)["ours"] == [[0, 100 * 5 / 8], [1, 25], [2, 100]]
    assert lines(solved_late)["ours"] == [[0, 100], [1, 25]]
    assert "PassRate" in assert_drawn(tmp_path / "figure5.png")


def test_figure5_shows_seeds_and_their_mean(folder, tmp_path, drawn):
    for seed, solved in ((0, 1), (1, 3)):
        write_levels(folder.add_log(seed=seed, steps=1), [{"2": (4, 64, solved)}])
    write_levels(folder.add_log(method="datpo", run="datpo-x", seed=0, steps=1), [{"3": (1, 5, 1)}])
    write_levels(folder.add_log(method="datpo", run="datpo-x", seed=1, steps=1), [{"3": (1, 7, 1)}])
    study = write_study(folder, {"GRPO": "grpo", "x": "datpo-x"}, seeds=[0, 1])
    figure5(study, folder.logs, tmp_path / "figure5.png")
    leaves, _, solved, _ = panels(drawn[0])
    assert lines(solved)["GRPO"][0] == [0, 50]
    assert lines(leaves)["x"][1] == [1, 6]
    assert sorted(line.get_ydata()[0] for line in solved.get_lines() if line.get_linewidth() < 1)[:2] == [25, 75]


def test_figure5_needs_logs_that_say_what_was_rolled_out_by_level(folder, tmp_path):
    study = write_study(folder, {"ours": "datpo"})
    with pytest.raises(InputError, match="no training log of small/datpo/datpo seed 0"):
        figure5(study, [folder.add_log()], tmp_path / "figure5.png")
    path = folder.add_log(method="datpo", steps=4)
    with pytest.raises(InputError, match=r"datpo/seed0/metrics.jsonl: step 0: key 'levels' is missing"):
        figure5(study, folder.logs, tmp_path / "figure5.png")
    write_levels(path, STEPS)
    path.write_text(path.read_text().replace('"solved": 1', '"solved": "1"', 1))
    with pytest.raises(InputError, match="level none: 'solved' must be a whole number"):
        figure5(study, folder.logs, tmp_path / "figure5.png")
