"""Benchmarks of another domain in the configuration: what is refused, and which keys reach which job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from datpo.config import load_config
from datpo.config_choice import TASKS, choice_settings, question_settings
from datpo.config_slices import sample_settings
from datpo.core.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = {"hub": "a/b", "revision": COMMIT, "split": "test"}


def loaded(entry: dict[str, Any] | None = None, name: str = "own", **overrides: Any) -> dict[str, Any]:
    whole = {"task": "mmlu_pro", "problems": HUB, **(entry or {})}
    return load_config(ROOT, {"scale": "ci", "out_of_domain": {name: whole}, **overrides})


def test_the_tasks_of_the_schema_are_the_task_files() -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    files = sorted(file.stem for file in (ROOT / TASKS).glob("*.yaml"))
    assert schema["$defs"]["out_of_domain"]["properties"]["task"]["enum"] == files


def test_paper_scale_asks_what_the_paper_asks() -> None:
    config = load_config(ROOT, {"scale": "paper"})
    gpqa, mmlu_pro = (config["out_of_domain"][name] for name in ("GPQA-Diamond", "MMLU-Pro"))
    assert (gpqa["count"], gpqa["stratified"], gpqa["samples"]) == (198, None, 8)
    assert (mmlu_pro["count"], mmlu_pro["stratified"], mmlu_pro["samples"]) == (12032, 500, 8)
    assert choice_settings(config, "MMLU-Pro")["k"] == [1, 2, 4, 8]
    assert not load_config(ROOT, {"scale": "budgets"})["out_of_domain"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"task": "mmlu"}, "own.task: must be one of gpqa_diamond, mmlu_pro, not 'mmlu'"),
        ({"task": None}, "own: needs the key 'task'"),
        ({"problems": {}}, "own.problems: needs either `hub` and `revision` (a commit), or `path`"),
        ({"problems": {**HUB, "path": "x"}}, "own.problems: needs either"),
        ({"problems": {"hub": "a/b"}}, "own.problems: `hub` needs `revision`"),
        ({"problems": {"hub": "a/b", "revision": "main"}}, "own.problems.revision: must be a commit"),
        ({"problems": {"path": "x", "split": "test"}}, "own.problems: split has no meaning beside `path`"),
        ({"problems": {"path": "nowhere.csv"}}, "nowhere.csv: no such file"),
        ({"problems": {**HUB, "fields": {}}}, "unknown key 'out_of_domain.own.problems.fields'"),
        ({"count": 500, "stratified": 500}, "own: `stratified: 500` of 500 questions is no subset"),
        ({"samples": 0}, "own.samples"),
    ],
)
def test_a_mistake_is_named(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        loaded(entry)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["moves-hard", "train"])
def test_a_name_is_that_of_one_benchmark_only(name: str) -> None:
    with pytest.raises(InputError, match=f"{name!r} is a benchmark or the training set"):
        loaded(name=name)


def test_taking_away_what_is_not_there_is_a_mistake() -> None:
    with pytest.raises(InputError, match=r"out_of_domain\.GPQA: null takes away nothing.*known: GPQA-Diamond"):
        load_config(ROOT, {"scale": "paper", "out_of_domain": {"GPQA": None}})


def test_a_local_file_takes_the_place_of_the_scale_s_source(tmp_path: Path) -> None:
    (tmp_path / "gpqa.csv").write_text("Record ID\n")
    source = {"problems": {"path": str(tmp_path / "gpqa.csv")}}
    config = load_config(ROOT, {"scale": "paper", "out_of_domain": {"GPQA-Diamond": source}})
    assert set(config["out_of_domain"]["GPQA-Diamond"]["problems"]) == {"path", "sha256"}


def slices(config: dict[str, Any]) -> dict[str, str]:
    """The settings of every kind of job."""
    jobs = {
        "questions": question_settings(config, "own"),
        "sample": sample_settings(config, "ci", "grpo", "grpo", 0, "own"),
        "metrics": choice_settings(config, "own"),
        "other": sample_settings(config, "ci", "grpo", "grpo", 0, "moves-hard"),
    }
    return {name: json.dumps(settings, sort_keys=True) for name, settings in jobs.items()}


@pytest.mark.parametrize(
    ("entry", "overrides", "changed"),
    [
        ({"samples": 4}, {}, {"sample", "metrics"}),
        ({"stratified": 5}, {}, {"questions", "sample"}),
        ({"problems": {**HUB, "drop": ["7"]}}, {}, {"questions", "sample"}),
        ({"task": "gpqa_diamond"}, {}, {"sample"}),
        ({}, {"data": {"seed": 1}}, {"questions", "sample", "other"}),
        ({}, {"evaluation": {"temperature": 0.5}}, {"sample", "other"}),
        ({}, {"evaluation": {"truncated": "graded"}}, {"metrics"}),
        ({}, {"evaluation": {"seed": 1}}, {"sample", "metrics", "other"}),
        ({}, {"prompt": {"max_tokens": 99, "format": "Solve: {problem}"}}, {"other"}),
        ({}, {"prompt": {"template": "chat"}}, {"sample", "other"}),
        ({}, {"jobs": {"threads": 2}}, set()),
    ],
)
def test_a_key_reaches_the_jobs_that_depend_on_it_and_no_others(
    entry: dict[str, Any], overrides: dict[str, Any], changed: set[str]
) -> None:
    before, after = slices(loaded()), slices(loaded(entry, **overrides))
    assert {job for job in before if before[job] != after[job]} == changed


def test_an_edited_task_file_is_noticed_by_the_samples(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "config").symlink_to(ROOT / "config")
    (copy / "workflow/schemas").mkdir(parents=True)
    (copy / "workflow/schemas/config.schema.yaml").symlink_to(ROOT / "workflow/schemas/config.schema.yaml")
    (copy / TASKS).mkdir()
    found = []
    for edited in (None, "_choice_yaml", "mmlu_pro.yaml", "gpqa_diamond.yaml"):
        for file in (ROOT / TASKS).iterdir():
            if file.is_file():
                text = file.read_text() + ("# edited\n" if file.name == edited else "")
                (copy / TASKS / file.name).write_text(text)
        whole = {"task": "mmlu_pro", "problems": HUB}
        found.append(slices(load_config(copy, {"scale": "ci", "out_of_domain": {"own": whole}})))
    changed = [{job for job in each if each[job] != found[0][job]} for each in found]
    assert changed == [set(), {"sample"}, {"sample"}, set()]
