"""A plan's jobs are those that the workflow plans."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from datpo.config import load_config
from datpo.plan.needs import Job, needs, plan_settings, short
from tests.workflow.test_targets import NEEDS

ROOT = Path(__file__).resolve().parents[2]
# Targets that show what others have sampled, or no model's samples at all.
SHOWN_BY_OTHERS = {"figure10", "figure_gained", "figure_curves"}


@cache
def settings(scale: str) -> dict[str, Any]:
    return json.loads(json.dumps(plan_settings(load_config(ROOT, {"scale": scale}))))


@pytest.mark.parametrize("target", sorted(set(NEEDS) - SHOWN_BY_OTHERS))
def test_a_target_needs_what_snakemake_plans_for_it(target: str) -> None:
    """tests/workflow/test_targets.py holds the same numbers against Snakemake's dry-runs."""
    config = settings("tiny")
    jobs = needs(config)[target]
    trained = Counter(f"train_{job.method}" for job in jobs if job.kind == "train")
    sampled = Counter(
        "explore"
        if job.kind == "explore"
        else "out_of_domain_sample"
        if job.subject in config["out_of_domain"]
        else "sample"
        for job in jobs
        if job.kind in ("sample", "explore")
    )
    assert (dict(trained), dict(sampled)) == NEEDS[target]


def test_shared_trainings_are_one_job() -> None:
    """As many as `snakemake -n` says of all (tests/workflow/test_targets.py and test_plans.py)."""
    jobs = {job for wanted in needs(settings("tiny")).values() for job in wanted}
    assert Counter(job.kind for job in jobs) == {"pretrain": 1, "train": 27, "sample": 69, "explore": 3}
    trained = Counter(job.method for job in jobs if job.kind == "train")
    assert trained == {"grpo": 10, "dr_grpo": 1, "treerl": 2, "attnrl": 2, "datpo": 12}


def test_the_paper_s_scale_trains_the_paper_s_models_and_pre_trains_none() -> None:
    jobs = needs(settings("paper"))
    assert {job.model for job in jobs["table3"]} == {"Qwen2.5-3B-Base"}
    assert Job("sample", "Qwen2.5-3B-Base", "datpo", "datpo_0_to_0", 0, "steps-200", "AIME26") in jobs["figure11"]
    assert Job("train", "Qwen2.5-3B-Instruct", "grpo", "grpo_hard_g16") in jobs["table5"]
    assert Job("sample", "Qwen2.5-3B-Instruct", subject="train") in jobs["table5"]  # tells what is hard
    assert not any(job.kind == "pretrain" for wanted in jobs.values() for job in wanted)


def test_causes_stand_before_what_needs_them() -> None:
    jobs = needs(settings("tiny"))["figure1"]
    assert jobs[0] == Job("pretrain", "tiny")
    trained = [i for i, job in enumerate(jobs) if job.kind == "train"]
    assert jobs.index(Job("sample", "tiny", subject="train")) < min(trained)


def test_seeds_are_jobs_of_their_own() -> None:
    config = {**settings("tiny"), "seeds": [0, 1, 2]}
    assert sum(job.kind == "train" for job in needs(config)["table10"]) == 3


def test_with_several_durations_each_end_is_sampled() -> None:
    jobs = needs(settings("budgets"))
    assert {job.at for job in jobs["budgets"] if job.run == "datpo"} == {"", "steps", "tokens", "updates"}
    assert sum(job.kind == "sample" for job in jobs["budgets"]) == 1 + 3 * 2 * 3 * 5
    assert set(jobs) == {"table2", "budgets", "difficulty"}


def test_settings_fit_into_a_command_line() -> None:
    """128 KiB is the most that Linux gives to one argument."""
    assert max(len(json.dumps(settings(scale))) for scale in ("tiny", "paper")) < 64 * 1024


def test_targets_in_few_letters() -> None:
    assert short(["table2", "table3", "table4", "figure11", "table9", "difficulty", "figure1_updates"]) == (
        "tables 2-4, 9; figure 11; difficulty; figure1_updates"
    )
    assert short(["table5"]) == "table 5"
