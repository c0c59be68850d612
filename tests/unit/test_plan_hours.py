"""Steps, tokens and hours of jobs, by the paper and by what has been measured."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from datpo.config import load_config
from datpo.core.errors import InputError
from datpo.plan.estimates import Estimate, Plan, make_plan, total
from datpo.plan.hours import PARAMETERS, read_paper
from datpo.plan.known import Known
from datpo.plan.measured import file_of
from datpo.plan.needs import Job, plan_settings
from datpo.plan.ranges import Range
from datpo.plan.sizes import PRETRAINED, size_of
from datpo.plan.training import training_work

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("table2", "table4", "table5", "table9", "table14", "figure1")  # those with hours, and whose runs they show
BASE, FOUR = "Qwen2.5-3B-Base", "Qwen3-4B-Base"


@cache
def settings(scale: str) -> dict[str, Any]:
    return plan_settings(load_config(ROOT, {"scale": scale}))


def small(scale: str, **changed: Any) -> dict[str, Any]:
    """A scale without what is of no matter here."""
    config = deepcopy(settings(scale))
    studies = {name: config["studies"][name] for name in STUDIES}
    return {**config, "studies": studies, "explorations": {}, "out_of_domain": {}, **changed}


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return make_plan(small("paper"), tmp_path_factory.mktemp("none"), ROOT / "config")


def one(plan: Plan, **wanted: Any) -> Estimate:
    (found,) = [each for each in plan.estimates if wanted.items() <= vars(each.job).items()]
    return found


def trained(plan: Plan, run: str, model: str = BASE) -> Estimate:
    return one(plan, kind="train", run=run, model=model)


def looks(count: int) -> float:
    """Hours of so many looks at 100 problems, 4 samples of 547 tokens each, at 952 tokens a second."""
    return count * 100 * 4 * (8755.7 / 16) / (16 * 8952.4 / 150.44) / 3600


def test_a_training_of_the_paper_takes_its_hours(paper: Plan) -> None:
    grpo = trained(paper, "grpo")
    assert grpo.work.questions == 12_000
    assert grpo.work.updates == 750 * 8
    assert grpo.work.generated == Range.exactly(8755.7 * 12_000)
    assert grpo.paper is not None
    assert grpo.paper.mid == pytest.approx(26.3 + looks(15), rel=1e-3)
    assert grpo.paper.low == pytest.approx(0.5 * 26.3 + 0.15 * 0.85 * looks(15), rel=1e-3)
    assert grpo.source == "its row of Table 9"
    assert trained(paper, "datpo").paper.mid == pytest.approx(60.3 + looks(15), rel=1e-3)  # type: ignore[union-attr]


def test_another_model_takes_longer_in_proportion_to_its_parameters(paper: Plan) -> None:
    ours, theirs = (trained(paper, "treerl", model).paper for model in (FOUR, BASE))
    assert ours is not None
    assert theirs is not None
    assert ours.mid / theirs.mid == pytest.approx(4_022_468_096 / PARAMETERS)
    assert ours.low < theirs.low * 1.01  # at best as fast


def test_other_numbers_of_a_method_take_longer_by_their_tokens(paper: Plan) -> None:
    wider = trained(paper, "treerl_wider")
    assert wider.work.generated.mid == pytest.approx(17766 * 12_000)
    assert wider.source == "TreeRL in Table 9, by tokens"
    assert wider.paper is not None
    assert wider.paper.mid == pytest.approx(56.2 * 17766 / 11029.9 + looks(15), rel=1e-3)


def test_groups_by_difficulty_take_the_hours_of_table_5(paper: Plan) -> None:
    hard = one(paper, kind="train", run="grpo_hard_g16")
    assert hard.work.updates == 438  # 5 passes over 1,400 problems, 16 a step
    assert hard.paper is not None
    assert hard.paper.mid == pytest.approx(17.5 * 438 * 16 / 7000 + looks(9), rel=1e-3)


def test_samples_are_drawn_as_fast_as_in_table_10(paper: Plan) -> None:
    samples = one(paper, kind="sample", run="datpo", model=BASE, subject="MATH500")
    tokens = 500 * 24 * 0.35 * 2048
    assert samples.work.sampled.mid == pytest.approx(tokens)
    assert samples.paper is not None
    assert samples.paper.mid == pytest.approx(tokens / (16 * 8952.4 / 150.44) / 3600)


def test_the_sum_of_a_table_counts_each_job_once(paper: Plan) -> None:
    mine = paper.of("table9")
    named = [each.job.run for each in mine]
    assert len(named) == len(set(named)) == 7
    hours = 26.3 + 27.1 + 56.2 + 55.5 + 56.0 + 60.3 + 60.0
    assert total(mine).mid == pytest.approx(hours, rel=0.06)  # and AttnRL's growing steps, and looks
    assert total(paper.estimates).mid < sum(total(paper.of(target)).mid for target in paper.targets)


@pytest.mark.parametrize(
    ("duration", "steps"),
    [
        ({"steps": 3}, 3),
        ({"updates": 17}, 3),
        ({"tokens": 1}, 1),
        ({"passes": 2}, 6),
        ({"steps": 2, "updates": 40}, 5),
    ],
)
def test_a_training_lasts_until_all_is_spent(duration: dict[str, int], steps: int) -> None:
    """GRPO at the scale `ci`: 16 problems a step of 48, of which none is kept for validation; 8 updates a step."""
    config = deepcopy(settings("ci"))
    config["trainings"]["grpo"]["train"]["duration"] = duration
    sizes = {"ci": size_of({**PRETRAINED, **config["models"]["ci"]["pretrain"]["model"]}, "ci")}
    work = training_work(Job("train", "ci", "grpo", "grpo"), config, Known(sizes, {}, {}, {}, {}, {}))
    assert work.questions == 16 * steps
    assert work.updates == 8 * steps


def write_log(folder: Path, job: Job, rows: list[dict[str, Any]]) -> Path:
    file = file_of(folder, job)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


ROW = {"prompts": 16, "reward": 0.25, "tokens_per_question": 320.0, "response_length": 20.0, "seconds": 36.0}


def test_what_is_measured_goes_before_everything(tmp_path: Path) -> None:
    config = small("ci")
    before = make_plan(config, tmp_path, ROOT / "config")
    assert {each.hours for each in before.estimates} == {None}  # of CPUs the paper says nothing
    write_log(tmp_path, Job("train", "ci", "grpo", "grpo"), [ROW, {**ROW, "seconds": 72.0}])
    tsv = file_of(tmp_path, Job("sample", "ci", "grpo", "grpo", subject="moves-easy"))
    tsv.parent.mkdir(parents=True)
    tsv.write_text("s\th:m:s\tmax_rss\n18.0\t0:00:18\t400\n")
    plan = make_plan(config, tmp_path, ROOT / "config")
    grpo, datpo = trained(plan, "grpo", "ci"), trained(plan, "datpo", "ci")
    assert (grpo.measured, grpo.done) == (72 / 3600, True)
    assert grpo.work.generated == Range.exactly(2 * 16 * 320)
    assert datpo.work.generated.mid == pytest.approx(2 * 16 * 4 * 20 * (1 + 0.59 * 8.5), rel=0.2)  # at a reward of 1/4
    assert not datpo.done
    ratio = datpo.work.all_operations / grpo.work.all_operations
    assert datpo.measured == pytest.approx(72 / 3600 * ratio)
    samples = one(plan, kind="sample", run="datpo", subject="moves-easy", model="ci")
    assert (samples.measured, samples.done) == (18 / 3600, False)


def test_a_log_that_is_not_as_it_should_be_is_named_with_its_key(tmp_path: Path) -> None:
    job = Job("train", "ci", "grpo", "grpo")
    file = write_log(tmp_path, job, [{**ROW, "seconds": "long"}])
    with pytest.raises(InputError, match=rf"{file}: line 1: 'seconds' must be a finite number"):
        make_plan(small("ci"), tmp_path, ROOT / "config")
    write_log(tmp_path, job, [])
    with pytest.raises(InputError, match="no steps in this log"):
        make_plan(small("ci"), tmp_path, ROOT / "config")
    file.unlink()
    tsv = file_of(tmp_path, Job("pretrain", "ci"))
    tsv.parent.mkdir(parents=True)
    tsv.write_text("h:m:s\n0:00:01\n")
    with pytest.raises(InputError, match="no number in its column `s`"):
        make_plan(small("ci"), tmp_path, ROOT / "config")


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (("benchmarks", "MATH500", "problems"), "config: the plan needs benchmarks.MATH500.problems.count"),
        (("data", "train"), "config: the plan needs data.train.count, how many problems there are"),
    ],
)
def test_a_number_of_problems_that_nobody_says_is_asked_for(tmp_path: Path, at: tuple[str, ...], said: str) -> None:
    config = small("paper")
    place = config
    for key in at:
        place = place[key]
    del place["count"]
    with pytest.raises(InputError) as refused:
        make_plan(config, tmp_path, ROOT / "config")
    assert str(refused.value).startswith(said)


def test_a_method_of_one_s_own_is_planned_too(tmp_path: Path) -> None:
    config = small("paper")
    published = read_paper(ROOT / "config/published.yaml", config)
    assert published.hours["grpo", False] == 26.3
    assert published.hours["grpo_easy_g4", True] == 5.0
    assert published.sampled == pytest.approx(952.1, abs=0.1)
    config["trainings"]["mine"] = {**config["trainings"]["grpo"], "numbers": {"roots": 8, "clip": "none"}}
    config["runs"]["mine"] = config["runs"]["grpo"]
    found = trained(make_plan(config, tmp_path, ROOT / "config"), "mine")
    assert found.source == "GRPO in Table 9, by tokens"
    assert found.work.generated.mid == pytest.approx(8755.7 / 2 * 12_000, rel=0.05)
    assert found.work.updates == 750 * 4
