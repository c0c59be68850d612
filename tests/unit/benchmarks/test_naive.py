"""The plain sides of the benchmarks do the same work as ours: same loss, same gradient, same tokens."""

from dataclasses import replace

import benchmarks.step
import numpy as np
import pytest
import torch
from benchmarks import made, naive
from benchmarks.generation import Branches
from benchmarks.step import DatpoStep
from benchmarks.update import Update

from datpo.core.engine import Request
from datpo.credit.diversity import lexical
from datpo.engines.hf import HFEngine
from datpo.evaluate.verify import grade_all
from datpo.learn.minibatch import units_of
from datpo.search.budget import Progress

SMALL = made.Size("small", 32, 2, 4, 2, 48, 64)


def gradients(policy):
    found = [p.grad.clone() for p in policy.model.parameters()]
    policy.model.zero_grad(set_to_none=False)
    return found


@pytest.mark.parametrize("name", ["datpo", "treerl", "grpo"])
def test_packed_and_plain_have_one_loss_and_one_gradient(name):
    method, rng = made.methods()[name], np.random.default_rng(0)
    shape = (3, 0, 0) if name == "grpo" else (2, 2, 2)
    trees = made.with_credit(method, [made.tree(*shape, 9, (12, 20), rng, SMALL.vocabulary) for _ in range(3)], rng)
    units = units_of(trees)
    chosen = [units[i] for i in rng.permutation(len(units))[: len(units) // 2]]
    it = Update(SMALL, method, trees, chosen)
    it.settings = replace(it.settings, token_budget=60)
    ours, packed = it.packed(), gradients(it.policy)
    theirs = naive.accumulate(it.policy, method, it.flat, 60, 64 * 7)
    assert ours == pytest.approx(theirs, rel=1e-5)
    for one, other in zip(packed, gradients(it.policy), strict=True):
        assert one.abs().max() > 0
        assert torch.allclose(one, other, atol=1e-6 * float(other.abs().max()) + 1e-7, rtol=1e-3)


def sharp_policy():
    """A model so sure of each token that the draw does not matter."""
    policy = made.policy(SMALL)
    with torch.no_grad():
        policy.model.model.norm.weight *= 3000
    return policy


def test_every_way_of_sampling_continues_a_context_alike():
    policy, rng = sharp_policy(), np.random.default_rng(0)
    requests = [Request(rng.integers(3, 64, n), i, 6 + i) for i, n in enumerate((5, 5, 9, 14))]
    ours = HFEngine(policy, 8).sample(requests)
    for engine in (naive.Static(policy, 8), naive.PrefilledAgain(policy, 8)):
        for one, other in zip(ours, engine.sample(requests), strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
    for others in (naive.released_generation(policy, requests), naive.generate(policy, requests)):
        for one, other in zip(ours, others, strict=True):
            assert one.tokens.tolist() == other[: len(one.tokens)].tolist()


def test_a_made_tree_has_its_shape():
    tree = made.tree(4, 3, 4, 120, (300, 400), np.random.default_rng(0), 1000)
    assert len(tree.branches) == 52
    assert len(tree.blocks) == 64
    assert {len(tree.response(leaf)) for leaf in range(52)} <= set(range(300, 401))


def test_the_step_samples_what_the_trees_hold():
    step = DatpoStep()
    bases, branches = step.requests[0]
    tree = step.credits[0].tree
    assert sum(request.max_new_tokens for request in [*bases, *(r for _, r in branches)]) == tree.generated_tokens


def test_the_step_does_what_lies_between_sampling_and_update(monkeypatch):
    step, verdicts, texts = DatpoStep(), [], []

    def seen_grades(domain, pairs):
        verdicts.extend(verdict.verdict for verdict in grade_all(domain, pairs))

    def seen_texts(given):
        texts.append(set(given))
        return lexical(given)

    monkeypatch.setattr(benchmarks.step, "grade_all", seen_grades)
    monkeypatch.setattr(benchmarks.step, "lexical", seen_texts)
    for credited, again in zip(step.between(), step.between(), strict=True):
        assert credited.advantages == pytest.approx(step.method.credit(credited.tree, Progress(), 0.0), abs=0.2)
        assert len(credited.units) == len(again.units) == 64
    assert len(verdicts) == 2 * 16 * 52
    assert set(verdicts) == {"right", "wrong"}
    first, second = texts
    assert len(first - second) > 0.9 * len(first) > 700  # nothing is remembered


def test_branches_fork_from_caches():
    requests = Branches(1, SMALL).requests
    assert len(requests) == 48
    assert all(request.source is not None for request in requests)
