"""Exact log-probabilities of sampled tokens against those of the engine that decodes token by token."""

import numpy as np
import pytest

from datpo.core.engine import Request
from datpo.engines.hf import HFEngine
from datpo.learn.exact import exact, sampled_packs
from tests.models import VOCABULARY, small_policy

LOGITS = 7 * VOCABULARY  # chunks of seven tokens


def branching_requests():
    """Prompts with a common beginning, one within another, and forks of what was sampled behind them."""
    rng = np.random.default_rng(0)
    template, other = rng.integers(3, VOCABULARY, size=6), rng.integers(3, VOCABULARY, size=4)
    prompts = [template, np.r_[template, 7, 8], np.r_[template, 7, 9, 9], other]
    bases = [Request(prompt, 10 * p + i, 25) for p, prompt in enumerate(prompts) for i in range(3)]
    sampled = HFEngine(small_policy(), 64).sample(bases)
    forks = [
        Request(np.concatenate([base.context, done.tokens[:at]]), 1000 + i, 12)
        for i, (base, done) in enumerate(zip(bases, sampled, strict=True))
        for at in (1, len(done.tokens) // 2)
        for _ in range(2)
    ]
    return [*forks, *bases]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("token_budget", [10, 90, 10_000])
def test_they_are_those_of_decoding_token_by_token(token_budget, temperature):
    policy, asked = small_policy(), branching_requests()
    drawn = HFEngine(policy, 64, temperature).sample(asked)
    sampled = [(request.context, each.tokens) for request, each in zip(asked, drawn, strict=True)]
    for (logprobs, entropies), each in zip(
        exact(policy, sampled, token_budget, LOGITS, temperature), drawn, strict=True
    ):
        assert logprobs == pytest.approx(each.logprobs, abs=1e-4)
        assert entropies == pytest.approx(each.entropies, abs=1e-4)


def test_a_shared_prefix_stands_once():
    asked = branching_requests()
    sampled = [(request.context, np.array([3, 4])) for request in asked]
    ((pack, rows),) = sampled_packs(sampled, 10**6)
    prefixes = {tuple(context[: end + 1].tolist()) for context, _ in sampled for end in range(len(context))}
    assert len(pack.token_T) == len(prefixes) + 2 * len(sampled)
    assert sorted(rows) == list(range(len(sampled)))


def test_the_tree_mask_is_that_of_the_chains():
    sampled = [(request.context, np.array([3, 4])) for request in branching_requests()]
    for budget in (60, 10**6):
        for pack, _ in sampled_packs(sampled, budget):
            index = np.arange(len(pack.token_T))
            mask = (index <= index[:, None]) & (index[:, None] < pack.subtree_end_T)
            seen = np.zeros_like(mask)
            for chain in pack.chains:
                for place, query in enumerate(chain.query, start=len(chain.key) - len(chain.query) + 1):
                    seen[query, chain.key[:place]] = True
            assert (mask == seen).all()


def test_packs_keep_to_the_budget():
    sampled = [(request.context, np.array([3] * 9)) for request in branching_requests()]
    packs = list(sampled_packs(sampled, 70))
    assert len(packs) > 3
    assert all(len(pack.token_T) <= 70 for pack, _ in packs)
    assert sorted(row for _, rows in packs for row in rows) == list(range(len(sampled)))
