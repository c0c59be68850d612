"""What is planned for each scale, and how a wrong configuration is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.project import Tree, stubbed_project

METHODS = ("grpo", "dr_grpo", "treerl", "attnrl", "datpo")


@pytest.mark.parametrize("scale", ["tiny", "ci"])
def test_a_small_scale_trains_every_method_from_a_pretrained_model(copy: Tree, scale: str) -> None:
    plan = copy.plan("--config", f"scale={scale}")
    assert plan["pretrain"] == 1
    assert {f"train_{method}" for method in METHODS} <= set(plan)
    assert plan["split_by_difficulty"] == 1
    assert not {"fetch_model", "fetch_embedder"} & set(plan)


def test_slurm_profile_plans_the_paper_even_beside_another_config_key(copy: Tree, with_conda: dict[str, str]) -> None:
    said = copy.snakemake("--profile", "slurm", "-n", "--config", "seeds=[1]", **with_conda)
    assert "scale: paper" in said
    assert "results/paper/Qwen2.5-3B-Base/datpo/datpo/seed1/checkpoint" in said
    assert "results/paper/Qwen3-4B-Base/grpo/grpo/seed1/checkpoint" in said
    assert "seed0/checkpoint" not in said.replace("base/base/seed0", "")
    assert "results/tiny" not in said


def test_paper_scale_by_config_is_the_same_plan_as_by_the_profile(copy: Tree, with_conda: dict[str, str]) -> None:
    plan = copy.plan("--config", "scale=paper")
    assert plan == copy.plan("--profile", "slurm", **with_conda)
    assert plan["fetch_model"] == 3
    assert (plan["train_grpo"], plan["train_datpo"]) == (2 + 9, 2 + 4 + 5 + 1 + 1 + 3)
    plan = copy.plan("--config", "scale=paper", "--", "table2")
    assert plan["fetch_model"] == plan["train_grpo"] == plan["train_datpo"] == 2
    assert plan["fetch_embedder"] == 1  # only DATPO measures diversity
    assert plan["sample"] == 2 * 6 * 5


def test_slurm_profile_beside_a_configfile_needs_the_scale_said(copy: Tree, with_conda: dict[str, str]) -> None:
    (copy.root / "mine.yaml").write_text("seeds: [1]\n")
    asked = ("--profile", "slurm", "-n", "--configfile", "mine.yaml")
    said = copy.snakemake(*asked, fails=True, **with_conda)
    assert said.rstrip().endswith("add `scale: paper` to your file, or --config scale=paper")
    assert "scale: paper" in copy.snakemake(*asked, "--config", "scale=paper", **with_conda)
    assert copy.plan("--configfile", "mine.yaml", "-j", "3", "--", "table2")["train_grpo"] == 1


def test_it_can_be_started_from_another_folder(copy: Tree, tmp_path: Path) -> None:
    plan = Tree(tmp_path).plan("-s", str(copy.root / "Snakefile"))
    assert plan == copy.plan()
    assert plan == copy.plan("--directory", str(tmp_path))


def test_numbers_on_the_command_line_are_numbers(copy: Tree) -> None:
    said = copy.snakemake("-np", "--config", "runs={datpo: {numbers: {max_forks: 2, alpha: [0.1, 0.1]}}}")
    assert '"alpha": [0.1, 0.1]' in said
    assert '"max_forks": 2,' in said


def test_every_run_says_its_scale_first(copy: Tree) -> None:
    first, second = copy.snakemake("-n").splitlines()[:2]
    assert first.startswith("Using workflow specific profile")
    assert second == "scale: tiny"


def test_table2_does_not_wait_for_the_difficulty_of_problems(copy: Tree) -> None:
    plan = copy.plan("table2")
    assert plan["table2"] == plan["write_table2"] == 1
    assert not {"split_by_difficulty", "draw_passk"} & set(plan)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy in which the problem sets of scale ci have been made, with stand-ins for the work."""
    tree = stubbed_project(tmp_path_factory.mktemp("made"))
    tree.snakemake("--cores", "2", "--config", "scale=ci", "--", "data")
    return tree


@pytest.mark.parametrize("target", ["table2", "cards"])
def test_a_problem_set_to_be_made_anew_hides_nothing_of_a_target(made: Tree, target: str) -> None:
    """Data first, then another size of it: the order in which data cards are read and their numbers written down."""
    plan = made.plan("--config", "scale=ci", "data={train: {count: 40}}", "--", target)
    assert plan["problems"] >= 1
    assert plan["sample"] >= 1
    assert plan[target] == 1


def test_equal_budgets_are_a_table_for_each_unit_of_three_seeds_and_two_regimes(copy: Tree) -> None:
    said = copy.snakemake("-n", "--config", "scale=budgets", "--", "budgets")
    plan = copy.plan("--config", "scale=budgets", "--", "budgets")
    assert {plan[f"train_{method}"] for method in METHODS} == {2 * 3}
    assert plan["write_table2_at"] == 3
    assert plan["sample"] == 1 + 3 * 2 * 3 * len(METHODS)
    assert "results/budgets/tiny/datpo/datpo_repeated/seed2/at-updates/samples/moves.jsonl" in said
    assert "write_table2" not in plan


def test_with_one_duration_there_is_no_table_of_equal_budgets(copy: Tree) -> None:
    assert "write_table2_at" not in copy.plan()
    said = copy.snakemake("-n", "budgets", fails=True)
    assert "several durations" in said


def test_several_seeds_train_each_run_as_often(copy: Tree) -> None:
    plan = copy.plan("--config", "seeds=[0,1,2]", "--", "table2")
    assert plan["train_grpo"] == plan["train_datpo"] == 3
    assert plan["pretrain"] == 1


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ("sacle=ci", "unknown key 'sacle'; did you mean 'scale'?"),
        ("scale=huge", "scale 'huge' has no file config/scales/huge.yaml"),
        ("runs={x: {method: psychic}}", "run 'x': method 'psychic' has no file config/methods/psychic.yaml"),
        ("runs={datpo: {numbers: {forks: 3}}}", "config: run 'datpo': method 'datpo' has no number 'forks'"),
        ("runs={datpo: {numbers: {max_forks: 2.5}}}", "'datpo': max_forks must be a whole number, 0 or more, not 2.5"),
        ("train=3", "config: train: must be a map, e.g. {key: value}, not 3"),
        ("runs={gpro: null}", "runs.gpro: null takes away nothing"),
        ("runs={grpo: null, dr_grpo: null, treerl: null, attnrl: null, datpo: null}", "runs: nothing is listed"),
        ("benchmarks={moves-hard: {k: [1, 999]}}", "benchmarks.moves-hard: k = 999 is above its"),
    ],
)
def test_a_wrong_configuration_ends_in_one_readable_error(copy: Tree, overrides: str, named: str) -> None:
    said = copy.snakemake("-n", "--config", overrides, fails=True)
    assert named in said
    assert said.rstrip().splitlines()[-1].startswith("config: ")  # and nothing after it
    assert "Traceback" not in said
    assert "Building DAG" not in said


def test_a_method_without_module_or_without_rule_file_is_named(copy: Tree) -> None:
    numbers = copy.root / "config/methods/psychic.yaml"
    numbers.write_text("roots: 4\n")
    try:
        said = copy.snakemake("-n", "--config", "runs={x: {method: psychic}}", fails=True)
        assert "method 'psychic' has no module src/datpo/methods/psychic.py" in said
        module = copy.root / "src/datpo/methods/psychic.py"
        module.write_text("from datpo.methods.grpo import build\n__all__ = ['build']\n")
        numbers.write_text("roots: 4\nclip: [0.2, 0.2]\n")
        said = copy.snakemake("-n", "--config", "runs={x: {method: psychic}}", fails=True)
        assert "method 'psychic' has no rule file rules/methods/psychic.smk" in said
        rule = copy.root / "rules/methods/psychic.smk"
        rule.write_text('use rule train as train_psychic with:\n    wildcard_constraints:\n        method="psychic",\n')
        assert copy.plan("--config", "runs={x: {method: psychic}}")["train_psychic"] == 1
    finally:
        for file in ("config/methods/psychic.yaml", "src/datpo/methods/psychic.py", "rules/methods/psychic.smk"):
            (copy.root / file).unlink(missing_ok=True)
