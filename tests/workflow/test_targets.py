"""Every table and figure of the paper is a target that computes only what it needs."""

from __future__ import annotations

import pytest

from datpo.config import load_config
from datpo.config_slices import explore_settings, explored_settings
from tests.workflow.project import PROJECT, TRAINING, Tree

# What each target trains at the tiny scale (beside the base model), and how often it samples a benchmark, or trees.
GRPO = {"train_grpo": 9}
MAIN = {f"train_{method}": 1 for method in ("grpo", "dr_grpo", "treerl", "attnrl", "datpo")}
TREE = {f"train_{method}": 1 for method in ("treerl", "attnrl", "datpo")}
NEEDS = {
    "table1": ({}, {"explore": 1}),
    "table2": (MAIN, {"sample": 6 * 3}),
    "table3": ({"train_datpo": 5}, {"sample": 5}),
    "table4": ({"train_datpo": 6}, {"sample": 6}),
    "table5": (GRPO, {"sample": 1}),  # the training problems, for their difficulty
    "table6": ({}, {"explore": 1}),
    "table7": ({}, {"explore": 1}),
    "table8": (MAIN, {}),
    "table9": (MAIN | {"train_datpo": 3}, {}),
    "table10": ({"train_datpo": 1}, {}),
    "table11": (MAIN, {"out_of_domain_sample": 6}),
    "table12": ({"train_datpo": 2}, {"sample": 2 * 3}),
    "table13": ({"train_datpo": 2}, {"sample": 2}),
    "table14": (TREE, {"sample": 3}),
    "figure1": (GRPO, {"sample": 1 + 9 + 1}),
    "figure1_updates": (GRPO, {"sample": 1 + 9 + 1}),
    "figure2": ({}, {"explore": 1}),
    "figure3": ({"train_datpo": 1}, {"explore": 1}),
    "figure4": (TREE, {"sample": 1 + 3 * 4}),
    "figure5": (TREE, {}),
    "figure6": (MAIN, {"sample": 6 * 3}),
    "figure7": (GRPO, {"sample": 1 + 9 + 1}),
    "figure8": ({}, {"explore": 1}),
    "figure9": ({}, {"explore": 1}),
    "figure10": ({}, {}),
    "figure11": ({"train_datpo": 2}, {"sample": 1 + 2 * 4}),
    "theory": (GRPO, {"sample": 1 + 9 + 1}),
    "viewer": ({"train_datpo": 1}, {"explore": 1}),
    "figure_gained": (MAIN, {"sample": 6 * 3}),
    "figure_curves": (MAIN, {}),
}
SAMPLING = ("sample", "explore", "out_of_domain_sample")


@pytest.mark.parametrize("target", NEEDS)
def test_a_target_trains_and_samples_what_it_shows_and_nothing_else(copy: Tree, target: str) -> None:
    trained, sampled = NEEDS[target]
    plan = copy.plan(target)
    assert plan[target] == 1
    assert {rule: plan[rule] for rule in TRAINING - {"pretrain"} if rule in plan} == trained
    assert {rule: plan[rule] for rule in SAMPLING if rule in plan} == sampled


def test_all_of_them_share_their_trainings(copy: Tree) -> None:
    plan = copy.plan()
    assert {rule: plan[rule] for rule in TRAINING if rule in plan} == {
        **{"pretrain": 1, "train_grpo": 1 + 9, "train_dr_grpo": 1, "train_treerl": 2, "train_attnrl": 2},
        "train_datpo": 1 + 4 + 5 + 1 + 1,  # Tables 2, 3, 4, 9 and 12; Table 13 has two of these
    }
    assert (plan["write_table"], plan["write_fork_table"], plan["write_table2"]) == (10, 3, 1)
    assert plan["draw_figure"] == 7
    assert plan["explore"] == 3


def test_the_paper_s_scale_plans_all_of_them_on_the_paper_s_models(copy: Tree) -> None:
    said = copy.snakemake("-n", "--config", "scale=paper")
    for path in (
        "Qwen2.5-3B-Instruct/grpo/grpo_hard_g16/seed0/at-updates/metrics/AIME25-256.json",
        "Qwen2.5-3B-Base/datpo/datpo_bge_m3/seed0/metrics/MATH500.json",
        "Qwen2.5-3B-Base/datpo/datpo_0_to_0/seed0/at-steps-200/metrics/AIME26.json",
        "Qwen3-4B-Base/attnrl/attnrl/seed0/metrics/GPQA-Diamond.json",
        "explorations/forks",
        "tables/table14.tex",
        "figures/figure11.svg",
    ):
        assert f"results/paper/{path}" in said, path
    for path in ("Qwen3-4B-Base/datpo/datpo_random", "Qwen2.5-3B-Instruct/datpo", "Qwen3-4B-Base/grpo/grpo_easy_g4"):
        assert f"results/paper/{path}" not in said, path


def test_what_is_taken_away_is_left_out_where_it_is_shown_and_said(copy: Tree) -> None:
    plan = copy.plan("--config", "runs={treerl: null}", "--", "table9")
    assert "train_treerl" not in plan
    assert plan["train_datpo"] == 3
    said = copy.snakemake("-n", "--config", "runs={treerl: null}", "--", "table9")
    assert "table9: among its rows is 'treerl', which is not there; known: " in said


def test_a_study_of_which_nothing_is_left_is_no_part_of_all_and_refused_by_name(copy: Tree) -> None:
    benchmarks = "benchmarks={moves-medium: null}"
    assert copy.plan("--config", benchmarks)["write_table"] == 10 - 4  # Tables 3, 4, 13 and 14
    said = copy.snakemake("-n", "--config", benchmarks, "--", "table3", fails=True)
    assert "table3: no model, benchmark or row is left of it" in said
    said = copy.snakemake("-n", "--config", "studies={figure5: null}", "--", "figure5", fails=True)
    assert "figure5: this scale, or --config, sets it to null" in said


def test_a_table_of_one_s_own_is_a_file(copy: Tree) -> None:
    file = copy.root / "config/studies/table_mine.yaml"
    file.write_text("runs: {grpo_wide: {method: grpo, numbers: {roots: 32}}}\nrows: {32: grpo_wide, 16: grpo}\n")
    try:
        plan = copy.plan("table_mine")
    finally:
        file.unlink()
    assert plan["train_grpo"] == 2
    assert plan["write_table"] == 1


def test_a_checkpoint_on_the_way_is_kept_by_the_trainings_whose_figure_shows_it(copy: Tree) -> None:
    said = copy.snakemake("-np", "--", "table4")
    assert said.count('"checkpoints": {"tokens": [100000, 200000, 300000]}') >= 2  # datpo and datpo_0_to_0
    assert '"checkpoints": {}' in said


def test_a_figure_along_trainings_that_have_no_checkpoint_there_is_left_out(copy: Tree) -> None:
    duration = "train={duration: {steps: 5}}"
    plan = copy.plan("--config", duration)
    assert plan["draw_figure"] == 7 - 2  # Figures 4 and 11, whose checkpoints are at tokens
    said = copy.snakemake("-n", "--config", duration, "--", "figure4", fails=True)
    assert "figure4: none of its checkpoints lies within the duration of all its trainings" in said


def test_equal_updates_need_a_duration_that_names_them(copy: Tree) -> None:
    duration = "studies={figure1: {train: {duration: {steps: 3, updates: null, passes: null}}}}"
    assert copy.plan("--config", duration)["draw_figure"] == 7 - 1
    said = copy.snakemake("-n", "--config", duration, "--", "figure1_updates", fails=True)
    assert "figure1_updates: some training's duration does not name `updates` beside another unit" in said


def test_as_many_pages_are_shown_as_there_are_trees(copy: Tree) -> None:
    said = copy.snakemake("-n", "--config", "explorations={trees: {problems: 2}}", "--", "viewer")
    assert "tree-0001.html" in said
    assert "tree-0002.html" not in said


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ("studies={table3: {rows: {again: datpo}}}", "studies.table3.rows: 'datpo' stands in two rows"),
        ("studies={table3: {columns: []}}", "studies.table3.columns: is empty, so there is nothing to show"),
        ("studies={figure4: {checkpoints: {passes: [1]}}}", "studies.figure4.checkpoints.passes: logs count no passes"),
        ("studies={table3: {benchmarks: []}}", "studies.table3.benchmarks: is empty"),
        ("studies={table2: null}", "studies.table2: cannot be taken away"),
        (
            "studies={table6: {rows: {a: datpo}}}",
            "studies.table6: names begin with table or figure, and table1",
        ),
        (
            "studies={table9: {runs: {datpo_random: {method: datpo, numbers: {fork_rule: atb}}}}}",
            "studies.table9.runs.datpo_random: is defined otherwise in studies.",
        ),
    ],
)
def test_a_contradiction_in_a_study_is_told_before_anything_runs(copy: Tree, overrides: str, said: str) -> None:
    told = copy.snakemake("-n", "--config", overrides, fails=True)
    assert said in told or said.replace("table9.runs", "table3.runs") in told


def test_another_bootstrap_explores_nothing_again() -> None:
    config = load_config(PROJECT, {"scale": "tiny"})
    other = load_config(PROJECT, {"scale": "tiny", "evaluation": {"bootstrap": 50}})
    assert explore_settings(config, "forks") == explore_settings(other, "forks")
    assert explored_settings(config, "forks") != explored_settings(other, "forks")
