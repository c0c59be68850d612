"""What is planned for benchmarks of another domain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.project import Tree

ROWS = '{"id": "a", "question": "1 + 1?", "options": ["1", "2"], "answer": "B", "category": "sums"}\n'
METRICS = "results/ci/ci/{run}/seed0/metrics/own.json"


@pytest.fixture
def own(tmp_path: Path) -> tuple[str, ...]:
    """A configuration with one benchmark on a local file."""
    (tmp_path / "rows.jsonl").write_text(ROWS)
    entry = f"{{own: {{task: mmlu_pro, problems: {{path: {tmp_path / 'rows.jsonl'}}}, samples: 2}}}}"
    return "--config", "scale=ci", f"out_of_domain={entry}"


def test_the_target_asks_every_model_and_run(copy: Tree, own: tuple[str, ...]) -> None:
    plan = copy.plan(*own, "seeds=[0,1]", "--", "out_of_domain")
    assert plan["out_of_domain_questions"] == plan["out_of_domain_prompts"] == 2  # the scale's and ours
    assert plan["out_of_domain_sample"] == plan["out_of_domain_metrics"] == 2 * (1 + 2 * 5)
    assert not {"sample", "score", "metrics", "write_table2"} & set(plan)
    said = copy.snakemake("-np", "--cores", "2", *own, "--", METRICS.format(run="grpo/grpo"))
    assert "workflow/out_of_domain/mmlu_pro.yaml" in said
    assert "online; logged" in said


def test_without_entries_there_is_nothing_to_do(copy: Tree) -> None:
    plan = copy.plan("--config", "scale=ci", "out_of_domain={common-knowledge: null}", "--", "all", "out_of_domain")
    assert plan["write_table"] == 9  # all but Table 11
    assert not any(name.startswith("out_of_domain_") for name in plan)


def test_everything_includes_it_where_there_are_entries(copy: Tree) -> None:
    paper = copy.plan("--config", "scale=paper", "out_of_domain={GPQA-Diamond: null}")
    assert paper["out_of_domain_questions"] == paper["out_of_domain_prompts"] == 1
    assert paper["out_of_domain_sample"] == paper["out_of_domain_metrics"] == 2 * 6


def test_an_edit_plans_what_depends_on_it(finished: Tree, tmp_path: Path, own: tuple[str, ...]) -> None:
    tree = finished.copied(tmp_path / "tree")
    target = ("--", METRICS.format(run="base/base"))

    def planned(*more: str) -> set[str]:
        return {name.removeprefix("out_of_domain_") for name in tree.plan(*own, *more, *target)}

    tree.snakemake("--cores", "2", *own, *target)
    (tree.root / "workflow/out_of_domain/_choice_yaml").touch()
    assert planned() == set()
    assert planned("evaluation={truncated: graded}") == {"metrics_config", "metrics"}
    with tree.edited("workflow/out_of_domain/_choice_yaml", "Think step by step", "Think"):
        assert planned() == {"prompts", "sample_config", "sample", "metrics"}
    (tmp_path / "rows.jsonl").write_text(ROWS.replace("1 + 1", "2 + 1"))
    assert planned() == {"config", "questions", "prompts", "sample_config", "sample", "metrics"}
