"""Training for real, on a small model: it goes on after any interruption as if there had been none."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from datpo.core.errors import InputError
from datpo.core.files import SEAL, read_jsonl, sealed_folder
from datpo.core.saved import load_graded_trees
from datpo.learn.trainer import train
from tests.conftest import PROMPT

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = {
    "datpo": {"roots": 3, "max_forks": 2, "max_siblings": 2, "alpha": [0.2, 0.0], "clip": [0.2, 0.2]},
    "grpo": {"roots": 6, "clip": [0.2, 0.28]},
    "dr_grpo": {"roots": 6, "clip": [0.2, 0.2]},
    "treerl": {"roots": 3, "forks": 2, "rounds": 2, "siblings": 1, "clip": [0.2, 0.2]},
    "attnrl": {"roots": 4, "max_forks": 2, "siblings": 1, "clip": [0.2, 0.2]},
}


def settings(method, duration, numbers=None, **train_settings):
    return {
        "identity": {"scale": "test", "model": "small", "method": method, "run": method, "seed": 0},
        "domain": "moves",
        "prompt": PROMPT,
        "method": {**NUMBERS[method], **(numbers or {})},
        "train": {
            "duration": duration,
            "checkpoints": {},
            "problems": None,
            "length_limit": "branch",
            "truncated": "graded",
            "graded_text": "response",
            "checker": "own",
            "validate_every": None,
            "validation_samples": 2,
            "end_token": "trained",
            "save_trees": [],
            "prompts_per_step": 4,
            "max_new_tokens": 40,
            "temperature": 1.0,
            "epochs": 2,
            "minibatch": "units",
            "minibatch_size": 16,
            "learning_rate": 1e-3,
            "betas": [0.9, 0.999],
            "weight_decay": 0.0,
            "gradient_clip": 1.0,
            "activation_checkpointing": False,
            "token_budget": 2048,
            "logit_budget": 100_000,
            "engine": "hf",
            "generation_batch": 64,
            "precision": "float32",
            "embedder": "lexical",
            "state_every": 10,
            **train_settings,
        },
    }


class Job:
    """One run in its own folder."""

    def __init__(self, folder, config, problems, model):
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "config.yaml"
        self.config.write_text(yaml.safe_dump(config))
        self.options = {
            "config": self.config,
            "problems": problems,
            "validation": [],
            "model": model,
            "work": folder / "work",
            "out": folder / "checkpoint",
            "log": folder / "metrics.jsonl",
        }

    def run(self):
        train(**self.options)
        return load_file(self.options["out"] / "model.safetensors")

    def start(self):
        """In a process of its own."""
        command = [sys.executable, "-m", "datpo", "train"]
        for name, value in self.options.items():
            command += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    def steps_logged(self):
        logs = list(self.options["work"].glob("*/metrics.jsonl"))
        return logs[0].read_text().count("\n") if logs else 0

    def wait_for_step(self, process, step):
        deadline = time.monotonic() + 120
        while self.steps_logged() < step:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline, "no such step within two minutes"
            time.sleep(0.02)


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


# AttnRL has base rollouts waiting to be forked when it is killed, and a running mean and a number of prompts to keep
@pytest.mark.parametrize(
    ("method", "steps"),
    [
        pytest.param("grpo", 40, marks=pytest.mark.slow),
        pytest.param("datpo", 40, marks=pytest.mark.slow),
        ("attnrl", 20),
    ],
)
def test_half_the_steps_a_kill_and_the_rest_are_the_whole(tmp_path, base_checkpoint, easy_problems, method, steps):
    config = settings(method, {"steps": steps}, state_every=steps // 4)
    whole = Job(tmp_path / "whole", config, easy_problems, base_checkpoint)
    weights = whole.run()
    killed = Job(tmp_path / "killed", config, easy_problems, base_checkpoint)
    process = killed.start()
    killed.wait_for_step(process, steps // 2 + 3)
    process.kill()
    process.communicate()
    assert not killed.options["out"].exists()
    states = sorted(path.name for path in killed.options["work"].glob("*/state-*"))
    assert states == [f"state-{steps // 4:06d}", f"state-{steps // 2:06d}"]
    assert same(weights, killed.run())
    rows, again = (read_jsonl(job.options["log"]) for job in (whole, killed))
    assert [row["step"] for row in again] == list(range(1, steps + 1))
    for row, other in zip(rows, again, strict=True):
        assert {k: v for k, v in row.items() if "seconds" not in k} == {
            k: v for k, v in other.items() if "seconds" not in k
        }
    assert not same(weights, load_file(base_checkpoint / "model.safetensors"))


def test_sigterm_writes_a_state_and_exits_for_a_retry(tmp_path, base_checkpoint, easy_problems):
    config = settings("grpo", {"steps": 12}, state_every=1000)
    weights = Job(tmp_path / "whole", config, easy_problems, base_checkpoint).run()
    job = Job(tmp_path / "ended", config, easy_problems, base_checkpoint)
    process = job.start()
    job.wait_for_step(process, 3)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "stopped by SIGTERM after step" in said
    assert len(list(job.options["work"].glob("*/state-*"))) == 1
    assert same(weights, job.run())


def test_same_seed_same_bits_other_seed_other_bits(tmp_path, base_checkpoint, easy_problems):
    config = settings("datpo", {"steps": 2})
    first, second = (Job(tmp_path / name, config, easy_problems, base_checkpoint).run() for name in ("first", "second"))
    config["identity"]["seed"] = 1
    other = Job(tmp_path / "other", config, easy_problems, base_checkpoint).run()
    assert same(first, second)
    assert not same(first, other)


@pytest.mark.parametrize("duration", [{"tokens": 2000}, {"updates": 5}, {"steps": 2}])
def test_a_run_lasts_as_long_as_it_was_given(tmp_path, base_checkpoint, easy_problems, duration):
    job = Job(tmp_path, settings("datpo", duration), easy_problems, base_checkpoint)
    job.run()
    rows = read_jsonl(job.options["log"])
    ((unit, amount),) = duration.items()
    key = {"tokens": "total_tokens", "updates": "total_updates", "steps": "step"}[unit]
    assert rows[-1][key] >= amount
    assert all(row[key] < amount for row in rows[:-1])


@pytest.mark.parametrize("method", ["grpo", "attnrl"])
def test_of_several_durations_each_leaves_its_checkpoint(tmp_path, base_checkpoint, easy_problems, method):
    duration = {"steps": 3, "tokens": 9000, "updates": 2}
    job = Job(tmp_path, settings(method, duration, minibatch_size=4), easy_problems, base_checkpoint)
    last = job.run()
    rows = read_jsonl(job.options["log"])
    steps = {unit: row["step"] for row in rows for unit in row["reached"]}
    assert set(steps) == set(duration) and max(steps.values()) == len(rows) > 3
    total = {"steps": "step", "tokens": "total_tokens", "updates": "total_updates"}
    for unit, step in steps.items():
        assert rows[step - 1][total[unit]] >= duration[unit]
        assert step == 1 or rows[step - 2][total[unit]] < duration[unit]
    at = {unit: load_file(job.options["out"] / unit / "model.safetensors") for unit in duration}
    latest = max(steps, key=steps.__getitem__)
    assert same(at[latest], last)
    assert not same(at["steps"], last)


@pytest.mark.parametrize("method", ["treerl", "attnrl", "dr_grpo"])
def test_every_method_learns_something_and_logs_its_trees(tmp_path, base_checkpoint, easy_problems, method):
    config = settings(method, {"steps": 8}, save_trees=[2], problems=6, minibatch_size=8)
    job = Job(tmp_path, config, easy_problems, base_checkpoint)
    weights = job.run()
    rows = read_jsonl(job.options["log"])
    assert rows[-1]["total_updates"] > 0
    assert not same(weights, load_file(base_checkpoint / "model.safetensors"))
    saved = load_graded_trees(job.options["work"] / "trees" / "step-000002.jsonl")
    assert len(saved) == rows[1]["prompts"]
    assert sum(s.tree.generated_tokens for s in saved) == pytest.approx(rows[1]["tokens_per_question"] * len(saved))
    assert all(len(s.texts) == len(s.tree.blocks) for s in saved)
    most = {"dr_grpo": 6, "treerl": 3 * (1 + 2 * 1 * 2), "attnrl": 4 * (1 + 2 * 1)}[method]
    assert all(row["leaves"] <= most for row in rows)
    if method != "attnrl":
        assert all(row["prompts"] == 4 for row in rows)
    asked = {s.tree.problem.id for s in saved}
    assert len(asked) <= 6


def test_every_generated_token_is_counted_once_off_policy(tmp_path, base_checkpoint, easy_problems):
    config = settings("attnrl", {"steps": 5}, save_trees=[1, 2, 3, 4, 5])
    job = Job(tmp_path, config, easy_problems, base_checkpoint)
    job.run()
    rows = read_jsonl(job.options["log"])
    of_trees = [row["tokens_per_question"] * row["prompts"] for row in rows]
    # nothing is planted beyond the last step
    assert rows[-1]["total_tokens"] == pytest.approx(sum(of_trees))
    assert rows[0]["total_tokens"] > of_trees[0]


def test_off_policy_base_rollouts_are_one_update_older_than_their_branches(tmp_path, base_checkpoint, easy_problems):
    gaps = {}
    for off in (False, True):
        config = settings("attnrl", {"steps": 12}, {"adaptive": False, "off_policy": off})
        job = Job(tmp_path / str(off), config, easy_problems, base_checkpoint)
        job.run()
        rows = read_jsonl(job.options["log"])
        moved = next(row["step"] for row in rows if row["grad_norm"])
        gaps[off] = [row["sampler_gap"] for row in rows[moved:] if row["sampler_gap"] is not None]
    assert max(gaps[False]) < 1e-4  # on policy the ratio starts at 1
    assert min(gaps[True]) > 1e-4


def test_the_log_says_what_happened(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("datpo", {"steps": 3}), easy_problems, base_checkpoint)
    job.run()
    rows = read_jsonl(job.options["log"])
    for row in rows:
        assert row["sampler_gap"] is None or row["sampler_gap"] < 1e-4
        assert 3 <= row["leaves"] <= 3 * (1 + 2 * 2)
        assert 0 <= row["zero_signal"] <= 1
    assert any(row["updates"] and row["ratio_mean"] for row in rows)
    assert rows[-1]["total_updates"] == sum(row["updates"] for row in rows)
    assert list(job.options["work"].glob("*/tensorboard/events*"))


def test_a_state_is_never_continued_under_other_settings(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("grpo", {"steps": 2}), easy_problems, base_checkpoint)
    job.run()
    changed = settings("grpo", {"steps": 2}, learning_rate=5e-3)
    fresh = Job(tmp_path / "fresh", changed, easy_problems, base_checkpoint).run()
    job.config.write_text(yaml.safe_dump(changed))
    assert same(job.run(), fresh)


@pytest.mark.slow
def test_a_half_written_state_is_not_taken_for_whole(tmp_path, base_checkpoint, easy_problems):
    config = settings("grpo", {"steps": 4}, state_every=2)
    weights = Job(tmp_path / "whole", config, easy_problems, base_checkpoint).run()
    job = Job(tmp_path / "cut", config, easy_problems, base_checkpoint)
    process = job.start()
    job.wait_for_step(process, 3)
    process.kill()
    process.communicate()
    (folder,) = job.options["work"].iterdir()
    partial = folder / ".state-000004.99999.partial"
    partial.mkdir()
    (partial / "weights.safetensors").write_bytes(b"half")
    (folder / "metrics.jsonl").open("a").write('{"step": 4, "rew')
    assert same(weights, job.run())


def test_a_finished_run_leaves_no_state_and_trains_again_when_asked(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("grpo", {"steps": 2, "tokens": 10}), easy_problems, base_checkpoint)
    weights = job.run()
    (folder,) = job.options["work"].iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "tensorboard"]
    before = read_jsonl(job.options["log"])
    assert same(weights, job.run())
    assert [row["step"] for row in read_jsonl(job.options["log"])] == [row["step"] for row in before] == [1, 2]
    assert read_jsonl(job.options["log"])[0]["seconds"] != before[0]["seconds"]  # trained, not fetched from a state


def test_a_state_of_another_model_is_refused(tmp_path, base_checkpoint, easy_problems, monkeypatch):
    monkeypatch.setattr("datpo.learn.trainer.forget_states", lambda *_: None)  # as if it had been killed
    job = Job(tmp_path, settings("grpo", {"steps": 1}), easy_problems, base_checkpoint)
    job.run()
    (state,) = job.options["work"].glob("*/state-*")
    weights = load_file(state / "weights.safetensors")
    weights.pop(sorted(weights)[0])
    with sealed_folder(state) as folder:
        shutil.copytree(state, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(SEAL))
        save_file(weights, folder / "weights.safetensors")
    with pytest.raises(InputError, match="belongs to another model"):
        job.run()


def test_a_training_key_the_checker_cannot_parse_stops_the_run_by_name(tmp_path, base_checkpoint):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"id": "odd", "problem": "Reach the moon.", "answer": "+1"}) + "\n")
    with pytest.raises(InputError, match=r"cannot parse .*: odd$"):
        Job(tmp_path, settings("grpo", {"steps": 1}), path, base_checkpoint).run()


def test_a_run_that_never_updates_ends_with_an_error(tmp_path, base_checkpoint, easy_problems, monkeypatch):
    monkeypatch.setattr("datpo.learn.trainer.IDLE_STEPS", 3)
    # no answer fits into two tokens: every leaf is wrong, and AttnRL drops such problems
    config = settings("attnrl", {"updates": 4}, max_new_tokens=2, save_trees=[1])
    with pytest.raises(InputError, match="train small attnrl seed 0: 3 steps without an update"):
        Job(tmp_path, config, easy_problems, base_checkpoint).run()


def test_trees_of_a_run_with_other_settings_are_not_left_beside_new_ones(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("grpo", {"steps": 2}, save_trees=[2]), easy_problems, base_checkpoint)
    job.run()
    job.config.write_text(yaml.safe_dump(settings("grpo", {"steps": 1}, save_trees=[1])))
    job.run()
    assert [path.name for path in (job.options["work"] / "trees").iterdir()] == ["step-000001.jsonl"]


def test_a_folder_that_is_no_checkpoint_is_named(tmp_path, easy_problems):
    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match=r"model: no checkpoint here"):
        Job(tmp_path / "run", settings("grpo", {"steps": 1}), easy_problems, tmp_path / "model").run()
