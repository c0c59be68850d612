"""The real vLLM beside the engine that samples from the policy itself, on a model of 135 million parameters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from datpo.core.engine import Request
from datpo.core.files import read_jsonl
from datpo.core.problem import Problem, save_problems
from datpo.engines.build import rollout_engine
from datpo.engines.hf import HFEngine
from datpo.engines.vllm import VLLMEngine
from datpo.evaluate.sample import sample_file
from datpo.learn.policy import Policy

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).resolve().parents[2] / "src"
BLOCK = 128  # tokens that vLLM's prefix cache holds together on a CPU
SETTINGS = {
    "engine": "vllm",
    "generation_batch": 16,
    "temperature": 1.0,
    "precision": "float32",
    "token_budget": 2048,
    "logit_budget": 2**24,
}
CHAT = {
    "template": "chat",
    "format": "{problem} Reply with the number alone in \\boxed{}.",
    "max_tokens": 128,
    "stop": [],
    "stop_tokens": [],
}
SUMS = [Problem(f"{a}+{b}", f"What is {a}+{b}?", str(a + b)) for a, b in [(1, 2), (2, 2), (3, 1), (5, 2)]]
TRAINING = {
    "identity": {"scale": "test", "model": "smollm2", "method": "datpo", "run": "datpo", "seed": 0},
    "domain": "math",
    # more than a block of the prefix cache
    "prompt": {
        **CHAT,
        "format": CHAT["format"] + 20 * " Think before you answer.",
        "max_tokens": 256,
    },
    "method": {"roots": 4, "max_forks": 2, "max_siblings": 2, "alpha": [0.2, 0.0], "clip": [0.2, 0.2]},
    "train": {
        **SETTINGS,
        "duration": {"steps": 2},
        "checkpoints": {},
        "problems": None,
        "prompts_per_step": 4,
        "max_new_tokens": 32,
        "length_limit": "branch",
        "truncated": "graded",
        "graded_text": "response",
        "checker": "own",
        "end_token": "trained",
        "epochs": 1,
        "minibatch": "units",
        "minibatch_size": 16,
        "learning_rate": 1e-4,
        "betas": [0.9, 0.999],
        "weight_decay": 50.0,  # half a percent an update: weights move whether or not an answer is right
        "gradient_clip": 1.0,
        "activation_checkpointing": False,
        "embedder": "lexical",
        "state_every": 10,
        "save_trees": [],
        "validate_every": None,
        "validation_samples": 2,
    },
}


@pytest.fixture(scope="module")
def engine(policy: Policy) -> VLLMEngine:
    return rollout_engine(policy, SETTINGS, trains=True)


@pytest.fixture
def prompts(policy: Policy) -> list[np.ndarray]:
    tokens = policy.tokenizer.apply_chat_template
    texts = [CHAT["format"].replace("{problem}", problem.problem) for problem in SUMS]
    texts += ["Tell me of the sea.", "Name three colours."]
    return [
        np.array(tokens([{"role": "user", "content": text}], add_generation_prompt=True)["input_ids"]) for text in texts
    ]


def test_greedy_tokens_are_the_same_in_both_engines(policy, engine, prompts, monkeypatch):
    monkeypatch.setattr(engine, "temperature", 0.0)
    monkeypatch.setattr(engine, "exact", None)
    asked = [Request(prompt, seed, 24) for seed, prompt in enumerate(prompts)]
    ours, theirs = HFEngine(policy, 16, 1e-4).sample(asked), engine.sample(asked)
    assert [each.tokens.tolist() for each in theirs] == [each.tokens.tolist() for each in ours]
    assert [each.finish for each in theirs] == [each.finish for each in ours]


def test_logprobs_are_the_policys_and_vllms_own_are_near(policy, engine, prompts):
    engine.report()
    asked = [Request(prompt, seed, 40) for prompt in prompts for seed in range(4)]
    drawn = engine.sample(asked)
    report = engine.report().row()
    assert report["engine_gap"] < 1e-4 and report["engine_gap_max"] < 1e-2
    assert report["engine_ratio"] == pytest.approx(1, abs=1e-4)
    with torch.no_grad():
        whole = torch.as_tensor(np.concatenate([asked[0].context, drawn[0].tokens]))
        logits = policy.model.lm_head(HFEngine(policy, 1).policy.hidden(*_plain(whole)))[0, len(asked[0].context) - 1 :]
    logp = torch.log_softmax(logits[:-1], -1)
    tokens = torch.as_tensor(drawn[0].tokens)[:, None]
    assert drawn[0].logprobs == pytest.approx(logp.gather(1, tokens)[:, 0].numpy(), abs=1e-3)
    assert drawn[0].entropies == pytest.approx(-(logp.exp() * logp).sum(-1).numpy(), abs=1e-3)


def _plain(token_T):
    """One row with causal attention."""

    def attend(layer, query, key, value, scale):
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)

    return token_T[None], torch.arange(len(token_T))[None], attend


def test_each_request_has_a_draw_of_its_own_seed_and_limit(policy, engine, prompts):
    end = max(policy.end_tokens)
    asked = [Request(prompts[4], seed, limit) for seed, limit in enumerate([1, 2, 7, 30, 30, 30])]
    asked += [Request(prompt, 9, 60) for prompt in prompts[:4]]
    first, again = engine.sample(asked), engine.sample(asked[::-1])[::-1]
    assert [each.tokens.tolist() for each in first] == [each.tokens.tolist() for each in again]
    assert len({tuple(each.tokens.tolist()) for each in first[3:6]}) == 3
    assert len({each.handle for each in [*first, *again]}) == 2 * len(asked)
    for request, each in zip(asked, first, strict=True):
        assert each.finish == ("stop" if each.tokens[-1] == end else "length")
        assert len(each.tokens) == request.max_new_tokens or each.finish == "stop"
        assert end not in each.tokens[:-1]
    assert {each.finish for each in first} == {"stop", "length"}


def test_branches_share_the_prefix_of_their_base(engine, prompts):
    context = np.tile(prompts[4], 12)[:300]
    (base,) = engine.sample([Request(context, 1, 120)])
    engine.report()
    at = [len(base.tokens) // 2, len(base.tokens) - 1]
    forks = [Request(np.concatenate([context, base.tokens[:a]]), s, 4, base.handle) for a in at for s in range(3)]
    engine.sample(forks)
    report = engine.report()
    assert report.context == sum(len(fork.context) for fork in forks)
    assert report.cached >= sum(len(fork.context) // BLOCK * BLOCK for fork in forks)
    engine.forget()
    engine.sample(forks[:1])
    assert engine.report().cached == 0


def test_an_update_reaches_vllm_with_forget_and_goes_not_unnoticed_without(policy, engine, prompts):
    asked = [Request(prompt, seed, 30) for prompt in prompts for seed in range(2)]
    before = engine.sample(asked)
    kept = {name: weight.clone() for name, weight in policy.model.state_dict().items()}
    rng = torch.Generator().manual_seed(0)
    try:
        with torch.no_grad():
            for weight in policy.model.parameters():
                weight += 0.2 * weight.std() * torch.randn(weight.shape, generator=rng)
        with pytest.raises(RuntimeError, match="samples from another policy"):
            engine.sample(asked)
        engine.forget()
        engine.report()
        after = engine.sample(asked)
        assert engine.report().row()["engine_gap"] < 1e-4  # tied embeddings and the packed copy of the head included
        assert [each.tokens.tolist() for each in after] != [each.tokens.tolist() for each in before]
    finally:
        policy.model.load_state_dict(kept)
        engine.forget()
    assert [each.tokens.tolist() for each in engine.sample(asked)] == [each.tokens.tolist() for each in before]


def test_two_steps_of_datpo(checkpoint, tmp_path):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(TRAINING))
    save_problems(tmp_path / "problems.jsonl", SUMS)
    options = {
        "config": tmp_path / "config.yaml",
        "problems": tmp_path / "problems.jsonl",
        "model": checkpoint,
        "work": tmp_path / "work",
        "out": tmp_path / "out",
        "log": tmp_path / "log.jsonl",
    }
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = [sys.executable, "-m", "datpo", "train", *given, "--validation"]
    said = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr[-3000:]
    rows = read_jsonl(options["log"])
    assert [row["step"] for row in rows] == [1, 2]
    assert rows[0]["updates"] > 0
    for row in rows:
        assert row["engine_gap"] < 1e-4 and row["engine_cached"] > 0
        assert row["sampler_gap"] is None or row["sampler_gap"] < 1e-3
    before, after = (load_file(path / "model.safetensors") for path in (checkpoint, options["out"]))
    for name, weight in after.items():
        assert weight.norm() < 0.98 * before[name].norm(), name


def test_a_benchmark_is_sampled(checkpoint, tmp_path):
    settings = {
        "identity": {"scale": "test", "model": "small", "method": "base", "run": "base", "seed": 0},
        "benchmark": "sums",
        "domain": "math",
        "prompt": CHAT,
        "n": 3,
        "max_new_tokens": 24,
        "seed": 0,
        **{key: SETTINGS[key] for key in ("engine", "generation_batch", "temperature")},
        "precision": "bfloat16",
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    save_problems(tmp_path / "problems.jsonl", SUMS)
    sample_file(
        tmp_path / "config.yaml", tmp_path / "problems.jsonl", checkpoint, tmp_path / "work", tmp_path / "out.jsonl"
    )
    header, *rows = read_jsonl(tmp_path / "out.jsonl")
    assert header["engine"] == "vllm" and header["versions"]["vllm"].startswith("0.32")
    assert [(row["problem"], row["sample"]) for row in rows] == [(p.id, i) for p in SUMS for i in range(3)]
    assert len({row["text"] for row in rows}) > 4
    assert all(0 < row["tokens"] <= 24 for row in rows)
