"""The engine against a plain forward pass of the whole sequence."""

import numpy as np
import pytest
import torch
from tests.models import END, FAMILIES, VOCABULARY, small_policy

from datpo.core.engine import Request
from datpo.engines import hf
from datpo.engines.hf import HFEngine, draw, reaches


def plain_logprobs(policy, context, tokens):
    """Log-probabilities and entropies from transformers' own attention, no cache, one sequence."""
    model = policy.model
    ids = torch.as_tensor(np.concatenate([context, tokens]))[None]
    model.set_attn_implementation("sdpa")
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(context) - 1 : -1].float()
    model.set_attn_implementation("datpo")
    logp = torch.log_softmax(logits, -1)
    chosen = logp.gather(1, torch.as_tensor(tokens)[:, None])[:, 0]
    return chosen.numpy(), -(logp.exp() * logp).sum(-1).numpy()


def requests(count=12, seed=0, limit=20):
    rng = np.random.default_rng(seed)
    contexts = [rng.integers(3, VOCABULARY, size=rng.integers(1, 9)) for _ in range(4)]
    return [Request(contexts[i % 4], 1000 + i, int(rng.integers(1, limit))) for i in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_logprobs_are_those_of_a_plain_forward_pass(family):
    policy = small_policy(family)
    asked = requests()
    for request, sampled in zip(asked, HFEngine(policy, batch=5).sample(asked), strict=True):
        logprobs, entropies = plain_logprobs(policy, request.context, sampled.tokens)
        assert sampled.logprobs == pytest.approx(logprobs, abs=1e-4)
        assert sampled.entropies == pytest.approx(entropies, abs=1e-4)
        ended = sampled.tokens[-1] == END
        assert sampled.finish == ("stop" if ended else "length")
        assert ended or len(sampled.tokens) == request.max_new_tokens
        assert END not in sampled.tokens[:-1]


def test_rows_that_attend_apart_draw_what_they_would_together(monkeypatch):
    """Long contexts beside short ones: the groups by reach against one group of all rows."""
    policy, rng = small_policy(), np.random.default_rng(0)
    lengths = rng.integers(2, 120, size=50)
    asked = [Request(rng.integers(3, VOCABULARY, size=n), i, 12) for i, n in enumerate(lengths)]
    apart = HFEngine(policy, batch=64).sample(asked)
    assert len(reaches(np.sort(lengths)[::-1])) > 1
    monkeypatch.setattr(hf, "FEWEST", 1000)
    for ours, theirs in zip(apart, HFEngine(policy, batch=64).sample(asked), strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def test_runs_of_like_reach_cover_every_row_once():
    positions = np.sort(np.random.default_rng(0).integers(0, 500, size=200))[::-1]
    runs = reaches(positions)
    assert [start for start, _, _ in runs[1:]] == [stop for _, stop, _ in runs[:-1]]
    assert (runs[0][0], runs[-1][1]) == (0, 200)
    assert all(keys == positions[start] + 1 for start, _, keys in runs)
    assert all(stop - start >= hf.FEWEST for start, stop, _ in runs[:-1])


@pytest.mark.parametrize("family", FAMILIES)
def test_branches_continue_from_cached_keys_as_from_a_prefill(family):
    policy = small_policy(family)
    engine = HFEngine(policy, batch=64)
    asked = requests(limit=30)
    bases = engine.sample(asked, keep=True)
    forks = []
    for i, (request, base) in enumerate(zip(asked, bases, strict=True)):
        for at in {1, len(base.tokens) // 2, len(base.tokens) - 1} - {0}:
            prefix = np.concatenate([request.context, base.tokens[:at]])
            forks.append(Request(prefix, 5000 + i, 15, source=base.handle))
    cached = engine.sample(forks)
    plain = engine.sample([Request(f.context, f.seed, f.max_new_tokens) for f in forks])
    assert len(forks) > 12
    for ours, theirs in zip(cached, plain, strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def test_branches_of_branches_and_forgetting():
    engine = HFEngine(small_policy(), batch=8)
    context = np.array([5, 6, 7])
    (base,) = engine.sample([Request(context, 1, 12)], keep=True)
    at = len(base.tokens) - 1
    first = np.concatenate([context, base.tokens[:at]])
    (child,) = engine.sample([Request(first, 2, 12, base.handle)], keep=True)
    second = np.concatenate([first, child.tokens[:1]])
    (ours,) = engine.sample([Request(second, 3, 12, child.handle)])
    (plain,) = engine.sample([Request(second, 3, 12)])
    assert ours.tokens.tolist() == plain.tokens.tolist()
    engine.forget()
    with pytest.raises(KeyError):
        engine.sample([Request(second, 3, 12, child.handle)])


def test_a_rows_draw_does_not_depend_on_order_or_batch():
    policy, asked = small_policy(), requests(16)
    alone = [HFEngine(policy, 1).sample([request])[0].tokens.tolist() for request in asked]
    order = np.random.default_rng(1).permutation(16)
    shuffled = HFEngine(policy, 7).sample([asked[i] for i in order])
    assert [c.tokens.tolist() for c in shuffled] == [alone[i] for i in order]


def test_every_declared_end_token_ends_the_text():
    policy = small_policy()
    policy.model.generation_config.eos_token_id = [END, 7, 11]
    engine = HFEngine(policy, 64)
    sampled = engine.sample([Request(np.array([4]), s, 200) for s in range(40)])
    assert {int(c.tokens[-1]) for c in sampled if c.finish == "stop"} >= {7, 11}
    assert all(c.finish == "stop" for c in sampled if c.tokens[-1] in (END, 7, 11))


def test_draws_follow_the_distribution():
    logits = torch.tensor([[2.0, 1.0, 0.0, -30.0]]).expand(20_000, -1)
    uniform = torch.as_tensor(np.random.default_rng(0).random(20_000))
    token, logprob, entropy = draw(logits, uniform)
    p = torch.softmax(logits[0], -1)
    shares = np.bincount(token.numpy(), minlength=4) / 20_000
    assert shares == pytest.approx(p.numpy(), abs=0.01)
    assert logprob.numpy() == pytest.approx(torch.log(p)[token].numpy(), abs=1e-6)
    assert float(entropy[0]) == pytest.approx(float(-(p * p.log()).sum()), abs=1e-6)


def test_a_token_of_probability_zero_is_never_drawn():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf]] * 3)
    token, _, _ = draw(logits, torch.tensor([0.0, 0.5, 1.0 - 2**-53], dtype=torch.float64))
    assert token.tolist() == [1, 1, 1]


def test_temperature_tempers_the_reported_logprobs_too():
    policy = small_policy(scale=1.0)
    request = Request(np.array([3, 4]), 0, 10)
    (warm,), (cold,) = (HFEngine(policy, 4, t).sample([request]) for t in (1.0, 0.25))
    assert cold.entropies.mean() < warm.entropies.mean()


def test_contexts_of_unlike_lengths_are_prefilled_apart(monkeypatch):
    """One long context does not pad the others, and serves what it begins with; each draws what it draws alone."""
    policy, rng, shapes = small_policy(), np.random.default_rng(0), []
    asked = [Request(rng.integers(3, VOCABULARY, size=n), n, 6) for n in (1, 2, 90, 12, 11, 100, 1)]
    asked += [Request(asked[5].context[:n], 1000 + n, 6) for n in (99, 100, 60, 2)]  # forks of the longest
    alone = [HFEngine(policy, 1).sample([request])[0] for request in asked]
    hidden = type(policy).hidden

    def noted(self, token, position, attend):
        shapes.append(tuple(token.shape))
        return hidden(self, token, position, attend)

    monkeypatch.setattr(type(policy), "hidden", noted)
    together = HFEngine(policy, 16).sample(asked)
    assert [shape for shape in shapes if shape[1] > 1] == [(2, 99), (2, 11)]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def test_what_all_contexts_begin_with_is_run_once(monkeypatch):
    """As the words of a chat before every problem: the rest of each stands behind the same keys."""
    policy, rng, shapes = small_policy(), np.random.default_rng(0), []
    begun = rng.integers(3, VOCABULARY, size=hf.SHARED)
    rests = [rng.integers(3, VOCABULARY, size=n) for n in (3, 9, 30, 28, 1, 1)]
    asked = [Request(np.concatenate([begun, rest]), i, 6) for i, rest in enumerate([*rests, rests[2][:7]])]
    alone = [HFEngine(policy, 1).sample([request])[0] for request in asked]
    hidden = type(policy).hidden

    def noted(self, token, position, attend):
        shapes.append(tuple(token.shape))
        return hidden(self, token, position, attend)

    monkeypatch.setattr(type(policy), "hidden", noted)
    together = HFEngine(policy, 16).sample(asked)
    assert [shape for shape in shapes if shape[1] > 1] == [(1, hf.SHARED), (2, 29), (2, 8)]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
