"""Table 2, worked out by hand.

`moves` (k = 4, two problems): Base has 0 and 2 of 4 right: avg@4 (0 + ½)/2 = 25; pass@4 (0 + 1)/2 = 50. Of the
resamples of two problems a quarter each are twice the first and twice the second, so the 2.5 % and 97.5 %
quantiles are the two problems' own values: [0, 50] and [0, 100].
GRPO has (1, 3) and (2, 4): avg 50 and 75, mean 62.5, sd 25/√2 = 17.7, problems 37.5 and 87.5; pass@4 100.

`moves_hard` (k = 2): pass@2 of 1, 2, 3 right of 4 is 1 - 3/6, 1 - 1/6, 1. Base (0, 1): avg 12.5, pass 25.
GRPO (2, 2) and (1, 3): avg 50 and 50; pass 5/6 and 3/4, mean 79.2, sd (1/12)/√2 = 5.9; problems
(5/6 + 1/2)/2 = 66.7 and (5/6 + 1)/2 = 91.7.

Average: Base 18.75 and 37.5; GRPO 56.25 and 89.6, pass sd (91.7 - 87.5)/√2 = 2.9.
GRPO is 37.5 points above Base in avg on every single problem, so there the interval is [37.5, 37.5].
"""

import csv
import re

import numpy as np
import pandas as pd
import pytest

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import Interval, intervals
from datpo.report.paper import load_paper, order_sentences
from datpo.report.runs import load_results
from datpo.report.scores import stratified


def read_csv(path):
    return list(csv.DictReader(path.open()))


def md_row(text, *names):
    """The cells of the first Markdown row that begins with these names."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if tuple(cells[: len(names)]) == names:
            return cells[len(names) :]
    raise AssertionError(f"no row {names}")


def test_markdown_cells_are_the_hand_computed_ones(golden, make):
    text = (make(golden) / "table2.md").read_text()
    base, grpo = md_row(text, "small", "Base"), md_row(text, "small", "GRPO")
    assert base[:4] == ["25.0 [0.0, 50.0]", "50.0 [0.0, 100.0]", "12.5 [0.0, 25.0]", "25.0 [0.0, 50.0]"]
    assert base[5].startswith("37.5 [")
    assert grpo[:4] == [
        "**62.5** [37.5, 87.5] ± 17.7",
        "100.0 [100.0, 100.0] ± 0.0",
        "**50.0** [37.5, 62.5] ± 0.0",
        "**79.2** [66.7, 91.7] ± 5.9",
    ]
    assert grpo[4].startswith("**56.2** [")
    assert grpo[5].startswith("**89.6** [")
    assert grpo[5].endswith("± 2.9")


def test_best_is_marked_only_where_the_interval_supports_it(golden, make):
    # GRPO - Base in pass@4 on moves is 1 and 0 on the two problems: +50 [0, 100], which does not exclude 0.
    rows = read_csv(make(golden) / "table2.csv")
    grpo = next(row for row in rows if row["method"] == "grpo")
    assert grpo["moves_pass_best"] == "False"
    assert grpo["moves_avg_best"] == "True"
    assert all(row["moves_avg_best"] == "False" for row in rows if row["method"] == "base")


def test_a_lone_run_is_never_best(folder, make):
    folder.add_metrics([4, 4], method="base")
    assert "**" not in (make(folder) / "table2.md").read_text()


def test_csv_holds_scores_and_budget(golden, make):
    base, grpo = read_csv(make(golden) / "table2.csv")
    assert (base["label"], grpo["label"]) == ("Base", "GRPO")
    assert (base["moves_avg"], base["moves_pass"], base["moves_pass_k"]) == ("25.0", "50.0", "4")
    assert (grpo["moves_hard_pass"], grpo["moves_hard_pass_k"]) == ("79.2", "2")
    assert (grpo["moves_avg_seed_sd"], base["moves_avg_seed_sd"]) == ("17.7", "")
    assert (grpo["average_avg"], grpo["average_pass_k"]) == ("56.2", "")
    # 10 steps: tokens per question 100..190; entropy over the last step of 10; zero-signal ½ and ¼ by turns
    assert [float(grpo[key]) for key in ("seeds", "tokens_per_question", "generated_tokens")] == [2, 145, 10000]
    assert [float(grpo[key]) for key in ("updates", "entropy_at_end", "zero_signal", "seconds")] == [
        20,
        0.1,
        0.375,
        60,
    ]
    assert base["generated_tokens"] == ""


def test_differences_are_paired_by_problem(golden, make):
    rows = read_csv(make(golden) / "table2_differences.csv")
    found = {(row["against"], row["benchmark"], row["metric"]): row for row in rows}
    for benchmark in ("moves", "moves_hard", "Average"):
        row = found["Base", benchmark, "avg"]
        assert [float(row[key]) for key in ("difference", "low", "high")] == [37.5, 37.5, 37.5]
    row = found["Base", "moves", "pass"]
    assert [float(row[key]) for key in ("difference", "low", "high")] == [50, 0, 100]
    assert {row["against"] for row in rows} == {"Base"}


def test_the_average_difference_is_that_of_the_averages(folder, make):
    # Base 0 everywhere; GRPO ½ on both problems of moves and 1 on all four of other, which weighs no more: 75
    for method, moves, other in (("base", [0, 0], [0] * 4), ("grpo", [2, 2], [4] * 4)):
        folder.add_metrics(moves, method=method)
        folder.add_metrics(other, method=method, benchmark="other")
    folder.add_log()
    out = make(folder)
    found = {(r["benchmark"], r["metric"]): r for r in read_csv(out / "table2_differences.csv")}
    assert float(found["Average", "avg"]["difference"]) == 75.0
    assert float(read_csv(out / "table2.csv")[1]["average_avg"]) == 75.0


def test_a_difference_is_of_the_means_over_seeds_and_narrower_than_its_parts(folder, make):
    # by problem: GRPO's seeds ¼ and ¾, ½ and 1 of 4; the Base ¼ below their mean everywhere
    for seed, right in enumerate(([1, 2] * 5, [3, 4] * 5)):
        folder.add_metrics(right, seed=seed)
        folder.add_log(seed=seed)
    folder.add_metrics([1, 2] * 5, method="base")
    out = make(folder)
    (row,) = [r for r in read_csv(out / "table2_differences.csv") if (r["benchmark"], r["metric"]) == ("moves", "avg")]
    assert [float(row[key]) for key in ("difference", "low", "high")] == [25, 25, 25]
    grpo = read_csv(out / "table2.csv")[1]
    assert float(grpo["moves_avg_high"]) - float(grpo["moves_avg_low"]) > 5


def test_others_are_compared_with_grpo_too(golden, make):
    for benchmark, table_k in (("moves", 4), ("moves_hard", 2)):
        golden.add_metrics([4, 4], method="datpo", benchmark=benchmark, table_k=table_k)
    golden.add_log(method="datpo")
    rows = read_csv(make(golden) / "table2_differences.csv")
    pairs = list(dict.fromkeys((row["label"], row["against"]) for row in rows))
    assert pairs == [("GRPO", "Base"), ("DATPO", "Base"), ("DATPO", "GRPO")]
    row = next(r for r in rows if (r["label"], r["against"], r["benchmark"]) == ("DATPO", "GRPO", "moves"))
    assert [float(row[key]) for key in ("difference", "low", "high")] == [37.5, 12.5, 62.5]


def test_rows_stand_in_the_papers_order_and_variants_behind(folder, make):
    for method, run in (
        ("datpo", "wide"),
        ("datpo", "datpo"),
        ("attnrl", "attnrl"),
        ("rloo", "rloo"),
        ("treerl", "treerl"),
        ("dr_grpo", "dr_grpo"),
        ("grpo", "more_updates"),
        ("grpo", "grpo"),
    ):
        folder.add_metrics([1, 2], method=method, run=run)
        folder.add_log(method=method, run=run)
    folder.add_metrics([1, 2], method="base")
    labels = [row["label"] for row in read_csv(make(folder) / "table2.csv")]
    assert labels == [
        *("Base", "GRPO", "Dr.GRPO", "TreeRL", "AttnRL", "DATPO", "rloo"),
        *("GRPO (more_updates)", "DATPO (wide)"),
    ]


def paper_folder(folder, model="Model-A"):
    for method, correct in (("base", [0, 1]), ("grpo", [3, 3]), ("datpo", [2, 2])):
        for benchmark in ("math500", "amc23"):
            folder.add_metrics(correct, model=model, method=method, benchmark=benchmark, scale="paper")
    folder.add_log(model=model)
    folder.add_log(model=model, method="datpo")
    return folder


def test_the_papers_value_and_the_difference_stand_beside_ours_at_its_scale(folder, make):
    out = make(paper_folder(folder))
    cells = md_row((out / "table2.md").read_text(), "Model-A", "DATPO")
    assert cells[0] == "<ins>50.0</ins> [50.0, 50.0]; paper 50.0 (0.0)"
    assert cells[1] == "100.0 [100.0, 100.0]; paper 90.0 (+10.0)"
    assert cells[4] == "<ins>50.0</ins> [50.0, 50.0]; paper 55.0 (−5.0)"
    rows = {row["method"]: row for row in read_csv(out / "table2.csv")}
    assert (rows["grpo"]["math500_avg_paper"], rows["grpo"]["math500_avg_minus_paper"]) == ("30.0", "45.0")
    assert rows["datpo"]["math500_avg_minus_paper"] == "0.0"


def test_the_papers_average_is_left_out_if_it_is_over_other_benchmarks(folder, make):
    folder.add_metrics([1, 1], model="Model-A", method="base", benchmark="math500", scale="paper")
    cells = md_row((make(folder) / "table2.md").read_text(), "Model-A", "Base")
    assert "paper" in cells[0]
    assert "paper" not in cells[2]


def test_no_paper_numbers_at_another_scale(golden, make):
    out = make(golden)
    assert "paper" not in (out / "table2.csv").read_text()
    assert "which is not the paper's" in (out / "table2.md").read_text()


def test_a_changed_order_of_methods_is_told(folder, make):
    # Model-A in the paper: DATPO > GRPO > Base in avg; here GRPO (75) is above DATPO (50).
    text = (make(paper_folder(folder)) / "table2.md").read_text()
    assert "average avg@k differs from the paper's in 1 of 3 pairs: GRPO is above DATPO by 25.0" in text
    assert "(an interval without 0)" in text
    # In pass@k the paper has Base (65) above GRPO (55); here GRPO has 100 and Base 50.
    assert "average pass@k differs from the paper's in 1 of 3 pairs: GRPO is above Base by 50.0" in text


def test_a_reversed_order_that_rounds_to_nothing_is_told_as_such(folder):
    reached = {"base": 10.0, "grpo": 50.01, "datpo": 50.0}
    told = order_sentences(
        load_results(paper_folder(folder).metrics),
        load_paper(folder.published),
        lambda run, column: reached[run.method],
        lambda a, b, column: Interval(0.01, -1.0, 1.0),
    )
    assert "GRPO is above DATPO by less than 0.1 points (an interval that includes 0)" in told[0]


def test_a_model_the_paper_does_not_have_is_held_against_what_its_models_agree_on(folder, make):
    # Model-A and Model-B disagree on DATPO and GRPO in avg, so GRPO above DATPO reverses nothing.
    text = (make(paper_folder(folder, model="other")) / "table2.md").read_text()
    assert "average avg@k agrees with the paper's (as far as its models agree)." in text
    assert "It has no numbers for other." in text


def test_uneven_budgets_are_told(golden, make):
    golden.add_metrics([4, 4], method="datpo")
    golden.add_metrics([4, 4], method="datpo", benchmark="moves_hard", table_k=2)
    golden.add_log(method="datpo", steps=15)
    text = (make(golden) / "table2.md").read_text()
    assert "DATPO generated 50 % more tokens in training than GRPO" in text


def test_latex_is_escaped_balanced_and_rectangular(folder, make):
    for method, run in (("base", "base"), ("grpo", "50%_a&b#1")):
        folder.add_metrics([1, 2], model="m_1", method=method, run=run, benchmark="set_{x}")
    folder.add_log(model="m_1", run="50%_a&b#1")
    text = (make(folder) / "table2.tex").read_text()
    assert r"GRPO (50\%\_a\&b\#1)" in text
    assert r"set\_\{x\}" in text
    assert not re.search(r"(?<!\\)[#&]1|(?<![\\$}])_[a-z0-9]", text)
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 4
    for spec, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                spanned = sum(int(width) - 1 for width in re.findall(r"multicolumn\{(\d+)\}", line))
                assert len(re.findall(r"(?<!\\)&", line)) + 1 + spanned == len(spec), line


def test_markdown_rows_have_one_line_and_one_width(folder, make):
    folder.add_metrics([1, 2], model="a|b*c_d", method="base")
    text = (make(folder) / "table2.md").read_text()
    assert r"a\|b\*c\_d" in text
    for block in text.split("\n\n"):
        if block.startswith("|"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().splitlines()}
            assert len(widths) == 1


def test_notes_name_settings_seeds_and_lost_samples(golden, make):
    text = (make(golden) / "table2.md").read_text()
    assert "moves: 2 problems, n = 4 samples each, k = 4; temperature 1.0, max new tokens 64" in text
    assert "checker moves 1" in text
    assert "Training seeds: 1 for Base; 2 for GRPO." in text
    assert "12.5 % of a run's samples on a benchmark were cut off" in text


def test_the_same_inputs_give_the_same_bytes(golden, make):
    out = make(golden)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    make(golden)
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}
    beside = {"table2_scores.csv", "table2_differences.csv"}
    assert set(before) == beside | {f"table2.{ending}" for ending in ("csv", "md", "tex", "html")}


def test_one_stratum_gives_the_interval_of_the_metrics_file():
    values_P = np.random.default_rng(0).random(37)
    assert stratified([values_P], 500, 7) == pytest.approx(intervals(values_P[:, None], 500, 7)[0])


def test_intervals_are_drawn_as_the_metrics_were(folder, make):
    correct = np.random.default_rng(0).integers(0, 5, 30)
    folder.add_metrics(correct.tolist(), method="base", settings={"bootstrap": 300, "seed": 5})
    frame = pd.read_csv(make(folder) / "table2_scores.csv").set_index(["metric", "k"])
    by_id = np.argsort([f"p{i}" for i in range(30)])
    wanted = intervals(100 * correct[by_id, None] / 4, 300, 5)[0]
    assert frame.loc[("avg", 4), ["value", "low", "high"]].tolist() == pytest.approx(list(wanted), abs=0.006)
    assert list(wanted) != pytest.approx(list(intervals(100 * correct[by_id, None] / 4)[0]), abs=0.1)
    cell = md_row((make(folder) / "table2.md").read_text(), "small", "Base")[0]
    assert cell == f"{wanted.value:.1f} [{wanted.low:.1f}, {wanted.high:.1f}]"


def test_problems_are_drawn_within_their_benchmark():
    # Each benchmark is constant, so nothing can move; drawing from the pooled problems would.
    assert stratified([np.zeros(5), np.ones(20)], 2000, 0) == (0.5, 0.5, 0.5)


def at(folder, unit):
    """The golden folder's GRPO runs, evaluated where they had spent `unit`."""
    for seed in (0, 1):
        folder.add_metrics([1, 3], seed=seed, at=unit)
    folder.add_metrics([0, 2], method="base")
    for seed in (0, 1):
        folder.add_log(seed=seed)
    return folder


@pytest.mark.parametrize(("unit", "steps"), [("steps", 2), ("tokens", 4), ("updates", 10)])
def test_a_table_at_equal_budgets_counts_what_was_spent_until_then(folder, make, unit, steps):
    out = make(at(folder, unit))
    row = pd.read_csv(out / "table2.csv").set_index("run").loc["grpo"]
    assert row["steps"] == steps
    assert (row["generated_tokens"], row["updates"]) == (1000 * steps, 2 * steps)
    assert (row["trained_tokens"], row["leaves"]) == (1500 * steps, 16)
    assert row["tokens_per_question"] == 100 + 10 * (steps - 1) / 2
    assert f"at equal {unit}" in (out / "table2.md").read_text().splitlines()[0]


def test_checkpoints_at_different_budgets_do_not_stand_in_one_table(folder, make):
    folder.add_metrics([1, 3], seed=0, at="steps")
    folder.add_metrics([1, 3], seed=1, at="tokens")
    with pytest.raises(InputError, match=r"at is 'tokens', but .* has 'steps'"):
        make(folder)


def test_a_log_that_never_reached_its_budget_is_refused(folder, make):
    folder.add_metrics([1, 3], at="tokens")
    folder.add_log(reached=[])
    with pytest.raises(InputError, match="no step of this log says that it reached its tokens"):
        make(folder)


def test_a_variant_is_held_against_grpo_s_of_the_same_suffix(folder, make):
    for method, run in (("grpo", "grpo"), ("grpo", "grpo_few"), ("datpo", "datpo"), ("datpo", "datpo_few")):
        folder.add_metrics([1, 3], method=method, run=run)
        folder.add_log(method=method, run=run)
    folder.add_metrics([1, 3], method="datpo", run="odd")
    folder.add_log(method="datpo", run="odd")
    frame = pd.read_csv(make(folder) / "table2_differences.csv")
    pairs = set(zip(frame["run"], frame["against"], strict=True))
    assert pairs == {("datpo", "GRPO"), ("datpo_few", "GRPO (grpo_few)"), ("odd", "GRPO")}
