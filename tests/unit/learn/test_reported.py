"""Cases from public bug reports of comparable tools: advantages, losses, ratios, trees, prompts."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from datpo.core.engine import Request
from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.credit.advantages import group_normalised
from datpo.engines.hf import HFEngine, draw
from datpo.evaluate.verify import grade_all
from datpo.learn.loss import clipped_loss
from datpo.learn.prompts import cut_at_stop, prompt_tokens
from datpo.search.budget import Progress, difficulty_adaptive
from datpo.search.rollout import Origin, Rollouts, under_way
from tests.models import small_policy
from tests.trees import PROBLEM, branch, tree

CASES = Path(__file__).resolve().parents[3] / ".." / "shared" / "cases" / "reported.jsonl"


def case(name):
    if not CASES.exists():
        pytest.skip("the case file is not here")
    rows = {row["id"]: row for row in map(json.loads, CASES.read_text(encoding="utf-8").splitlines())}
    return rows[name]["input"], rows[name]["expected"]


@pytest.mark.parametrize("name", ["C001", "C003"])
def test_grpo_advantages(name):
    given, expected = case(name)
    ours = group_normalised(np.array(given["rewards"], dtype=float), sample_std="std" in given)
    assert ours == pytest.approx(expected["advantages"], abs=expected.get("tol", 0))


def test_centred_advantages_need_no_std():
    given, expected = case("C004")
    rewards = np.array(given["rewards"], dtype=float)
    assert rewards - rewards.mean() == pytest.approx(expected["advantages"])


def test_token_mean_over_micro_batches_and_an_empty_one():
    given, expected = case("C006")
    losses = [torch.tensor(row, dtype=torch.float64) for row in given["token_losses"]]
    normaliser = sum(len(row) for row in losses)
    ones = [torch.zeros_like(row) for row in losses]
    packs = [
        clipped_loss(zero, zero, torch.zeros_like(row), row, (0.2, 0.2), normaliser)[0]
        for zero, row in zip(ones, losses, strict=True)
    ]
    assert float(sum(packs)) == pytest.approx(expected["token_mean"], abs=expected["tol"])
    given, expected = case("C007")
    mask = torch.tensor(given["mask"], dtype=torch.float64).flatten()
    loss, _ = clipped_loss(mask, mask, mask, mask, (0.2, 0.2), 4.0)
    assert float(loss) == expected["loss"]


def test_sampler_and_trainer_see_the_same_distribution():
    """There is no top-p here, so the sampler's log-probabilities are the trainer's (the case warns of the bias)."""
    given, expected = case("C009")
    logits = torch.tensor([given["logits"]], dtype=torch.float32)
    token, logprob, _ = draw(logits, torch.tensor([0.0]))
    assert int(token) == given["token"]
    assert float(logprob) == pytest.approx(expected["trainer_logprob"], abs=1e-5)


@pytest.mark.parametrize("name", ["C010", "C012"])
def test_budgets(name):
    given, expected = case(name)
    grown = tree(*(branch(None, 0, 5, reward) for reward in given["root_rewards"]))
    plan = difficulty_adaptive(given["bp_max"], given["bn_max"])(grown, Progress(), np.random.default_rng(0))
    assert (plan.forks, plan.siblings) == (expected["bp"], expected["bn"])


def test_tokens_of_a_tree():
    given, expected = case("C013")
    forks = [branch(0, given["fork_at"], length) for length in given["branches"]]
    grown = tree(branch(None, 0, given["root_tokens"]), *forks)
    assert grown.generated_tokens == expected["generated_tokens"]
    assert len(grown.branches) == expected["leaves"]
    assert max(b.stop for b in grown.branches) == expected["longest_path_tokens"]


def test_new_tokens_are_reduced_and_the_prompt_never_cut():
    given, expected = case("B025")
    rollouts = Rollouts(None, None, {}, given["max_new_tokens"], given["max_model_len"])
    (prompted,) = under_way([tree(prompt=np.arange(given["prompt_tokens"]))], 0)
    request = rollouts._request(prompted, Origin(None, 0), 0)
    assert request.max_new_tokens == expected["error_or_reduced_to"]
    assert len(request.context) == given["prompt_tokens"]


def test_only_the_response_is_searched():
    given, expected = case("B027")
    (verdict,) = grade_all("math", [(Problem("p", given["prompt"], given["gold"]), given["response"])])
    assert (verdict.verdict == "right") == expected["correct"]


def test_texts_are_cut_at_stop_strings():
    given, expected = case("B028")
    used = cut_at_stop(given["response"], given["stop"])
    assert used.endswith(expected["text_used_ends_with"])
    assert grade_all("math", [(Problem("p", "?", given["gold"]), used)])[0].verdict == "right"


def test_a_base_model_without_chat_template():
    given, _ = case("B030")
    settings = {"template": given["template"], "format": "{problem}"}
    with pytest.raises(InputError, match=r"template: plain.*explicit"):
        prompt_tokens(PROBLEM, settings, SimpleNamespace(chat_template=None))


def test_every_declared_end_token_ends_the_text():
    given, expected = case("B031")
    policy = small_policy()
    first, second = 7, 11  # in the place of the case's ids, which this vocabulary does not reach
    policy.model.generation_config.eos_token_id = [first, second]
    policy.tokenizer.eos_token_id = first
    sampled = HFEngine(policy, 64).sample([Request(np.array([4]), s, 200) for s in range(60)])
    last = second if given["last_token"] != given["tokenizer_eos"] else first
    ended = [c for c in sampled if c.tokens[-1] == last]
    assert ended
    assert all((c.finish == "length") == expected["truncated"] for c in ended)
