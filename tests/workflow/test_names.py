"""One name in four places; what every rule has."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from datpo.__main__ import VERBS
from datpo.methods import names as method_modules

PROJECT = Path(__file__).resolve().parents[2]
RULE_FILES = [PROJECT / "Snakefile", *(PROJECT / "rules").rglob("*.smk")]

FIGURES = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11)
FIGURE_VERBS = ("figure-passk", "figure-curves", "figure-gained", *(f"figure{number}" for number in FIGURES))
# The environment of each verb's rule.
VERBS_OF = {
    "data": ("config", "data", "fetch-model", "fetch-embedder", "out-of-domain-questions"),
    "learn": ("unpack-model", "pretrain", "train", "sample", "explore", "segment", "credit", "view", "figure3", "plan"),
    "score": ("score", "metrics", "difficulty", "grade"),
    "evaluate": ("out-of-domain-prompts", "out-of-domain"),
    "report": ("table2", "table", "fork-table", "budgets", "card", "checkers", "theory", "trace", *FIGURE_VERBS),
}


def stems(folder: str, ending: str) -> list[str]:
    return sorted(path.stem for path in (PROJECT / folder).glob(f"*{ending}"))


def test_a_method_is_a_module_a_rule_file_and_a_config_file() -> None:
    assert method_modules() == stems("config/methods", ".yaml")
    assert method_modules() == [name for name in stems("rules/methods", ".smk") if name != "train"]


def test_every_verb_has_one_environment_and_its_rules_name_it() -> None:
    assert sorted(verb for verbs in VERBS_OF.values() for verb in verbs) == sorted(VERBS)
    for file in RULE_FILES:
        for rule in re.findall(r"^rule \w+:\n(?:(?:    .*)?\n)+", file.read_text(), re.MULTILINE):
            verb = re.search(r"python -m datpo ([\w-]+)", rule)
            environment = re.search(r"envs/(\w+)\.yaml|(LEARN)", rule)
            assert verb is None or verb[1] in VERBS_OF[environment[1] or "learn"], rule


def test_rules_that_fetch_are_local_and_no_others_go_to_the_network() -> None:
    """What the jobs see of it: workflow/job.sh."""
    fetching = set()
    for file in RULE_FILES:
        for rule in re.findall(r"^rule \w+:\n(?:(?:    .*)?\n)+", file.read_text(), re.MULTILINE):
            if "online; " in rule:
                assert "localrule: True" in rule, rule
                fetching |= {verb for verb in re.findall(r"python -m datpo ([\w-]+)", rule)}
    assert fetching == {"data", "fetch-model", "unpack-model", "fetch-embedder", "out-of-domain-questions"}


@pytest.mark.parametrize(("words", "offline"), [("", "1 1 1"), ("online; ", "no yes no")])
def test_jobs_are_offline_unless_they_fetch(tmp_path: Path, words: str, offline: str) -> None:
    """Then the hub's settings are what the user made them."""
    seen = "echo $HF_HUB_OFFLINE $HF_DATASETS_OFFLINE $TRANSFORMERS_OFFLINE"
    command = f"source {PROJECT}/workflow/job.sh; {words}logged {tmp_path}/log bash -c '{seen}'"
    own = {"HF_HUB_OFFLINE": "no", "HF_DATASETS_OFFLINE": "yes", "TRANSFORMERS_OFFLINE": "no"}
    subprocess.run(["bash", "-c", command], check=True, capture_output=True, env={**os.environ, **own})
    assert (tmp_path / "log").read_text().strip() == offline


def test_every_job_has_a_log_and_every_job_but_the_small_local_ones_a_benchmark() -> None:
    for file in RULE_FILES:
        for rule in re.findall(r"^rule \w+:\n(?:(?:    .*)?\n)+", file.read_text(), re.MULTILINE):
            if "shell:" in rule:
                assert "    log:" in rule, rule
                assert "    benchmark:" in rule or "datpo config" in rule, rule
