"""What the Slurm profile asks for, without a Slurm: plans alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.slurm.site import PROFILE
from tests.workflow.project import Tree, copy_project

TARGET = "results/paper/Qwen2.5-3B-Base/datpo/datpo/seed0/samples/MATH500.jsonl"


@pytest.fixture(scope="module")
def filled_in(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A project whose profile has all the lines of a site."""
    tree = copy_project(tmp_path_factory.mktemp("filled_in"))
    profile = tree.root / PROFILE
    text = re.sub(r"^#  ", "  ", profile.read_text(encoding="utf-8"), flags=re.M)
    profile.write_text(text.replace("runtime: 24h", "runtime: 8h"), encoding="utf-8")
    return tree


def resources(said: str, rule: str) -> dict[str, str]:
    """What a planned job of a rule asks for."""
    (line,) = set(re.findall(rf"^rule {rule}:\n(?:    .*\n)*?    resources: (.*)$", said, re.M))
    return dict(pair.split("=", 1) for pair in line.split(", "))


def test_all_a_user_edits_is_a_comment_at_first() -> None:
    profile = yaml.safe_load(Path(PROFILE).read_text(encoding="utf-8"))
    assert profile["default-resources"] is None
    assert (profile["executor"], profile["software-deployment-method"]) == ("slurm", "conda")
    assert profile["slurm-requeue"]


def test_a_job_asks_for_its_own_needs_within_the_limits_of_the_site(
    filled_in: Tree, with_conda: dict[str, str]
) -> None:
    said = filled_in.snakemake("--profile", "slurm", "-n", "--", TARGET, **with_conda)
    for rule in ("train_datpo", "sample"):
        asked = resources(said, rule)
        assert (asked["gpu"], asked["gpu_model"], asked["slurm_partition"]) == ("1", "a100", "gpu")
        assert asked["constraint"] == "a100_80gb"
        assert (asked["runtime"], asked["mem_mb"]) == ("480", "64000")  # not 96 hours, and less than there is
        assert asked["slurm_extra"] == "--signal=TERM@1200 --mail-type=FAIL"
    said = filled_in.snakemake("--profile", "slurm", "-n", "--", TARGET.replace("samples", "scores"), **with_conda)
    asked = resources(said, "score")
    assert (asked["slurm_partition"], asked["runtime"], asked["slurm_extra"]) == ("cpu", "60", "--mail-type=FAIL")
    assert asked["qos"] == "normal"
    assert not {"gpu", "gpu_model", "constraint"} & set(asked)


def test_a_job_without_a_model_gets_more_of_both_with_each_try(filled_in: Tree, with_conda: dict[str, str]) -> None:
    scores = TARGET.replace("samples", "scores")
    for attempt, runtime, memory in (("2", "120", "8000"), ("9", "480", "36000")):  # not 9 hours
        said = filled_in.snakemake("--profile", "slurm", "-n", "--attempt", attempt, "--", scores, **with_conda)
        asked = resources(said, "score")
        assert (asked["runtime"], asked["mem_mb"]) == (runtime, memory)


def test_slurm_s_own_words_for_times_and_gpus_are_refused_where_they_would_mean_something_else(
    filled_in: Tree, with_conda: dict[str, str]
) -> None:
    profile = filled_in.root / PROFILE
    text = profile.read_text(encoding="utf-8")
    for old, new, says in (
        ("runtime: 8h", "runtime: 4:00:00", "would not be read as hours; write 4h"),
        ("gpu_kind: a100", "gpu_kind: a100-sxm4-80gb", "leave the line out, and say gpu_feature"),
        # Snakemake would take these for Python: 2007, a function, 83; and YAML for true and for a list.
        ("slurm_account: my_account", "slurm_account: 2024-17", """write slurm_account: "'2024-17'\""""),
        ("slurm_partition: cpu", "slurm_partition: all", """write slurm_partition: "'all'\""""),
        ("qos: normal", "qos: 0123", """write qos: "'0123'\""""),
        ("gpu_partition: gpu", "gpu_partition: on", """write gpu_partition: "'on'\""""),
        ("gpu_feature: a100_80gb", "gpu_feature: [a100|h100]", """write gpu_feature: "'[a100|h100]'\""""),
        ("qos: normal", "qos:  ", "nothing follows"),
    ):
        assert old in text
        try:
            profile.write_text(text.replace(old, new), encoding="utf-8")
            said = filled_in.snakemake("--profile", "slurm", "-n", "--", TARGET, fails=True, **with_conda)
        finally:
            profile.write_text(text, encoding="utf-8")
        assert says in said
        assert "Traceback" not in said


def test_texts_that_look_like_python_arrive_as_they_are_in_two_pairs_of_quotes(
    filled_in: Tree, with_conda: dict[str, str]
) -> None:
    profile = filled_in.root / PROFILE
    text = profile.read_text(encoding="utf-8")
    quoted = text
    for line, value in (
        ("slurm_account: my_account", "2024-17"),
        ("slurm_partition: cpu", "all"),
        ("gpu_partition: gpu", "gpu-a100"),
        ("gpu_feature: a100_80gb", "[a100|h100]"),
    ):
        assert line in text
        quoted = quoted.replace(line, f"""{line.split(":")[0]}: "'{value}'\"""")
    quoted = quoted.replace("qos: normal", "qos: 17")
    try:
        profile.write_text(quoted, encoding="utf-8")
        said = filled_in.snakemake("--profile", "slurm", "-n", "--", TARGET.replace("samples", "scores"), **with_conda)
    finally:
        profile.write_text(text, encoding="utf-8")
    score, train = resources(said, "score"), resources(said, "train_datpo")
    assert (score["slurm_account"], score["slurm_partition"], score["qos"]) == ("2024-17", "all", "17")
    assert (train["slurm_partition"], train["constraint"]) == ("gpu-a100", "[a100|h100]")


def test_a_site_with_short_limits_leaves_most_of_them(filled_in: Tree, with_conda: dict[str, str]) -> None:
    said = filled_in.snakemake("--profile", "slurm", "-n", "--resources", "runtime=40", "--", TARGET, **with_conda)
    assert resources(said, "train_datpo")["slurm_extra"].startswith("--signal=TERM@600 ")


def test_one_default_resource_on_the_command_line_keeps_the_others(filled_in: Tree, with_conda: dict[str, str]) -> None:
    said = filled_in.snakemake(
        *("--profile=slurm", "-n", "--default-resources", "slurm_account=other", "--", TARGET), **with_conda
    )
    asked = resources(said, "train_datpo")
    assert (asked["slurm_account"], asked["slurm_partition"], asked["gpu_model"]) == ("other", "gpu", "a100")
    assert asked["slurm_extra"] == "--signal=TERM@1200 --mail-type=FAIL"


def test_profile_and_data_are_found_from_another_folder(
    filled_in: Tree, with_conda: dict[str, str], tmp_path: Path
) -> None:
    elsewhere = Tree(tmp_path)
    here = filled_in.plan("--profile", "slurm", "--", TARGET, **with_conda)
    asked = ("-s", str(filled_in.root / "Snakefile"), "--profile", str(filled_in.root / "slurm"), "--", TARGET)
    assert elsewhere.plan(*asked, **with_conda) == here
    assert filled_in.plan("--profile", "slurm", "--directory", str(tmp_path), "--", TARGET, **with_conda) == here


SUBMITS = """
class Resources(dict):
    __getattr__ = dict.get

class Job:
    threads, resources = 1, Resources()

PARAMS = dict.fromkeys(["run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"], "x")
print(SLURM.get_submit_command(Job, PARAMS, settings=None, failed_nodes={"None assigned", "node1"}))
"""


def test_what_accounting_says_of_a_job_without_a_node_is_not_taken_for_a_node(
    filled_in: Tree, with_conda: dict[str, str]
) -> None:
    with filled_in.edited("rules/plan.smk", "\n\nrule plan:", f"{SUBMITS}\nrule plan:"):
        said = filled_in.snakemake("--profile", "slurm", "-n", "--", TARGET, **with_conda)
    (line,) = (line for line in said.splitlines() if line.startswith("sbatch "))
    assert "--exclude=node1 " in line
    assert "None" not in line
