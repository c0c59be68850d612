"""Training for real, on a small model: it goes on after any interruption as if there had been none."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.learn.trainer import train
from tests.conftest import PROMPT

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = {
    "datpo": {"roots": 3, "max_forks": 2, "max_siblings": 2, "alpha": [0.2, 0.0], "clip": [0.2, 0.2]},
    "grpo": {"roots": 6, "clip": [0.2, 0.28]},
}


def settings(method, duration, **train_settings):
    return {
        "identity": {"scale": "test", "model": "small", "method": method, "run": method, "seed": 0},
        "domain": "moves",
        "prompt": PROMPT,
        "method": NUMBERS[method],
        "train": {
            "duration": duration,
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
            "token_budget": 2048,
            "logit_chunk": 512,
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
        for name, path in self.options.items():
            command += [f"--{name}", str(path)]
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


@pytest.mark.parametrize("method", [pytest.param("grpo", marks=pytest.mark.slow), "datpo"])
def test_forty_steps_are_twenty_a_kill_and_twenty_more(tmp_path, base_checkpoint, easy_problems, method):
    config = settings(method, {"steps": 40})
    whole = Job(tmp_path / "whole", config, easy_problems, base_checkpoint)
    weights = whole.run()
    killed = Job(tmp_path / "killed", config, easy_problems, base_checkpoint)
    process = killed.start()
    killed.wait_for_step(process, 23)
    process.kill()
    process.communicate()
    assert not killed.options["out"].exists()
    states = sorted(path.name for path in killed.options["work"].glob("*/state-*"))
    assert states == ["state-000010", "state-000020"]
    assert same(weights, killed.run())
    rows, again = (read_jsonl(job.options["log"]) for job in (whole, killed))
    assert [row["step"] for row in again] == list(range(1, 41))
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


def test_a_state_of_another_model_is_refused(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("grpo", {"steps": 1}), easy_problems, base_checkpoint)
    job.run()
    (state,) = job.options["work"].glob("*/state-*")
    weights = load_file(state / "weights.safetensors")
    weights.pop(sorted(weights)[0])
    from safetensors.torch import save_file

    save_file(weights, state / "weights.safetensors")
    with pytest.raises(InputError, match="belongs to another model"):
        job.run()


def test_a_training_key_the_checker_cannot_parse_stops_the_run_by_name(tmp_path, base_checkpoint):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"id": "odd", "problem": "Reach the moon.", "answer": "+1"}) + "\n")
    with pytest.raises(InputError, match=r"cannot parse .*: odd$"):
        Job(tmp_path, settings("grpo", {"steps": 1}), path, base_checkpoint).run()


def test_a_folder_that_is_no_checkpoint_is_named(tmp_path, easy_problems):
    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match=r"model: no checkpoint here"):
        Job(tmp_path / "run", settings("grpo", {"steps": 1}), easy_problems, tmp_path / "model").run()
