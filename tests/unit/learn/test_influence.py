"""Forward influence against attention weights materialised whole by transformers' own eager attention."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from datpo.learn import influence
from datpo.learn.influence import step_influence, token_influence
from datpo.search.signals import step_numbers
from tests.models import END, FAMILIES, VOCABULARY, small_policy
from tests.trees import branch, tree

BREAK = 9  # tokens up to this one end with a blank line


def spell(tokens, skip_special_tokens=True):
    return "".join("" if t == END else "so.\n\n" if t <= BREAK else "x" for t in tokens)


def readable(policy):
    """The policy with a tokenizer for tests, and attention that differs from head to head and is far from even."""
    with torch.no_grad():
        for layer in policy.model.model.layers:
            attention = layer.self_attn
            getattr(attention, "q_norm", attention.q_proj).weight *= 25
    tokenizer = SimpleNamespace(eos_token_id=END, backend_tokenizer=SimpleNamespace(decode=spell))
    return dataclasses.replace(policy, tokenizer=tokenizer)


def even(policy):
    """The policy with queries of zero: token q gives each of the q + 1 tokens up to itself 1 / (q + 1)."""
    with torch.no_grad():
        for layer in policy.model.model.layers:
            layer.self_attn.q_proj.weight.zero_()
            layer.self_attn.q_proj.bias.zero_()
    return policy


def leaf(tokens, prompt=(11, 12), finish="length"):
    return tree(branch(None, 0, 0, tokens=tokens, finish=finish), prompt=prompt), 0


def some_leaves(seed=0, count=9):
    """Base rollouts of several lengths, in trees of several prompts, most with steps and some with an end token."""
    rng = np.random.default_rng(seed)
    leaves = []
    for number in range(count):
        tokens = rng.integers(BREAK + 1 if number == 1 else 3, VOCABULARY, size=rng.integers(20, 60))
        finish = "stop" if number % 2 else "length"
        tokens = [*tokens, END] if number % 2 else tokens
        leaves.append(leaf(tokens, rng.integers(10, VOCABULARY, size=rng.integers(1, 12)), finish))
    grown = leaves[0][0].grow(leaves[1][0].branches)  # one tree with two base rollouts
    return [(grown, 0), (grown, 1), *leaves[2:]]


def all_weights(policy, grown, index):
    """All attention weights of a rollout's tokens on each other, (layers x heads, T, T) without the prompt."""
    model = policy.model
    ids = torch.as_tensor(np.concatenate([grown.prompt, grown.branches[index].tokens]))[None]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        layers = model(input_ids=ids, use_cache=False, output_attentions=True).attentions
    model.set_attn_implementation("datpo")
    return torch.cat([layer[0] for layer in layers]).double().numpy()[:, len(grown.prompt) :, len(grown.prompt) :]


def plain_step_influence(policy, leaves):
    """The definition, step pair by step pair."""
    found = []
    for grown, index in leaves:
        a = all_weights(policy, grown, index)
        step_T = step_numbers(grown.branches[index], spell)
        members = [np.flatnonzero(step_T == s) for s in range(int(step_T.max()) + 1)]
        influence_T = np.zeros(len(step_T))
        for k, keys in list(enumerate(members))[1:]:
            far = [a[:, queries][:, :, keys].mean((1, 2)) for queries in members[k + 4 :]]
            influence_T[keys] = np.max(np.sum(far, axis=0)) if far else 0.0
        found.append(influence_T)
    return found


def plain_token_influence(policy, leaves):
    """The definition, token by token."""
    weights = [all_weights(policy, *pair).max(0) for pair in leaves]
    return [np.array([a[k + 4 : -1, k].sum() for k in range(len(a))]) for a in weights]


@pytest.mark.parametrize("bound", [2**22, 6000, 300])  # all rows at once; one row in three chunks; a query or two
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("ours", "plain"), [(step_influence, plain_step_influence), (token_influence, plain_token_influence)]
)
def test_equals_the_definition_on_all_weights(ours, plain, family, bound, monkeypatch):
    monkeypatch.setattr(influence, "WEIGHTS", bound)
    leaves = some_leaves()
    found = ours(readable(small_policy(family)), leaves)
    expected = plain(readable(small_policy(family, dtype=torch.float64)), leaves)
    assert [len(x) for x in found] == [len(grown.branches[i].tokens) for grown, i in leaves]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=3e-5, abs=1e-6)


class Largest(TorchDispatchMode):
    """The numbers in the largest tensor made while it is on."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.numel())
        return made


@pytest.mark.parametrize("bound", [5_000, 20_000, 100_000])
@pytest.mark.parametrize("ours", [step_influence, token_influence])
def test_no_tensor_of_weights_or_pairs_is_larger_than_the_bound(ours, bound, monkeypatch):
    leaves = [leaf(np.random.default_rng(i).integers(BREAK + 1, VOCABULARY, size=18 + 4 * i)) for i in range(12)]
    policy = readable(small_policy())
    largest = Largest()
    attend, chunks = influence._WatchedAttention.__call__, []

    def measured(*args):  # attention only, since hidden states are larger than weights in a model this small
        with largest:
            return attend(*args)

    def counted(query, key, weights=influence._causal_weights):
        chunks.append(query.shape[2])
        return weights(query, key)

    monkeypatch.setattr(influence._WatchedAttention, "__call__", measured)
    monkeypatch.setattr(influence, "_causal_weights", counted)
    monkeypatch.setattr(influence, "WEIGHTS", bound)
    ours(policy, leaves)
    # every token is a step: all heads on all pairs of steps, or of tokens, would be up to 4 x 62 x 62 = 15,376 a row
    assert bound / 2 < largest.size <= bound
    assert max(chunks) < 60


@pytest.mark.parametrize("ours", [step_influence, token_influence])
def test_a_rollout_does_not_depend_on_its_neighbours(ours):
    policy, leaves = readable(small_policy()), some_leaves(seed=1)
    together = ours(policy, leaves)
    for index in (0, 1, 4, 8):
        (alone,) = ours(policy, [leaves[index]])
        assert alone == pytest.approx(together[index], rel=3e-5, abs=1e-6)


def test_tokens_by_hand():
    # two prompt tokens, so response token t asks 1 / (t + 3) of each token up to itself
    expected = [1 / 7 + 1 / 8, 1 / 8, 0, 0, 0, 0, 0]
    policy = even(readable(small_policy()))
    for tokens, finish in (([20] * 7, "length"), ([20] * 6 + [END], "stop")):  # the last token does not ask
        (found,) = token_influence(policy, [leaf(tokens, finish=finish)])
        assert found == pytest.approx(expected, rel=1e-6)


def test_steps_by_hand():
    # step:   0 0 1 1 2 3 4 5 5 6 none, behind a prompt of two: token t asks 1 / (t + 3)
    tokens = [20, 5, 20, 5, 5, 5, 5, 20, 5, 20, END]
    # step 1 is asked by step 5 (mean of 1/10 and 1/11) and step 6 (1/12), step 2 by step 6; nothing by the end token,
    # which would be at distance 4 of step 3 if it were a step, nor is the first step of any account
    y_1, y_2 = (1 / 10 + 1 / 11) / 2 + 1 / 12, 1 / 12
    (found,) = step_influence(even(readable(small_policy())), [leaf(tokens, finish="stop")])
    assert found == pytest.approx([0, 0, y_1, y_1, y_2, 0, 0, 0, 0, 0, 0], rel=1e-6)


def test_heads_are_summed_before_the_largest_is_taken_for_steps_and_after_it_for_tokens():
    policy = readable(small_policy())
    leaves = [leaf([*range(20, 40), END], finish="stop")]  # every token but the last is a step
    (steps,), (tokens,) = step_influence(policy, leaves), token_influence(policy, leaves)
    assert (steps[1:16] <= tokens[1:16] + 1e-6).all()
    assert steps[1:16].sum() < 0.95 * tokens[1:16].sum()


@pytest.mark.parametrize(
    ("tokens", "finish", "nonzero"),
    [
        ([20], "length", []),  # one token, one step
        ([END], "stop", []),  # the end token alone
        ([20, 20, 5], "length", []),  # one step
        ([5] * 5, "length", []),  # five steps: the last is only three behind the second
        ([5] * 5 + [END], "stop", []),
        ([5] * 6, "length", [1]),  # the first of six is seen by the last two but never counts
        ([20] * 6, "length", [1]),  # without line breaks every token is a step
    ],
)
def test_short_responses(tokens, finish, nonzero):
    policy = readable(small_policy())
    short = leaf(tokens, finish=finish)
    for leaves in ([short], [*some_leaves(), short]):  # alone, and padded to a long neighbour
        found = step_influence(policy, leaves)[-1]
        assert found.shape == (len(tokens),)
        assert np.flatnonzero(found).tolist() == nonzero
        found = token_influence(policy, leaves)[-1]
        assert found.shape == (len(tokens),)
        assert np.flatnonzero(found).tolist() == list(range(len(tokens) - 5))


def test_no_leaves():
    assert step_influence(small_policy(), []) == token_influence(small_policy(), []) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_stay_float32_under_autocast(family):
    policy = small_policy(family)
    policy = even(readable(policy)) if family == "qwen2" else readable(policy)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = token_influence(policy, [leaf([20] * 8)])
    if family == "qwen2":  # rounded to bfloat16, 1/7 would be off by up to 0.2 %
        assert found[0] == pytest.approx(1 / 7 + 1 / 8 + 1 / 9, rel=1e-6)
    assert found[:3].min() > 0


def test_they_are_rollout_signals_without_gradients():
    policy, leaves = readable(small_policy()), some_leaves()
    for signal in (partial(step_influence, policy), partial(token_influence, policy)):
        assert all(isinstance(x, np.ndarray) and x.dtype == float for x in signal(leaves))
    assert all(p.grad is None for p in policy.model.parameters())
