"""Layers that are computed again in the backward pass: the same numbers, less memory; and what precision is where."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch.autograd.graph import saved_tensors_hooks

from datpo.core.engine import Request
from datpo.engines.hf import HFEngine
from datpo.learn.minibatch import gather, units_of
from datpo.learn.pack import packs
from datpo.learn.update import Learner
from tests.models import small_policy
from tests.unit.learn.test_packed_equals_plain import LONGEST, method, numbers, some_trees

FAMILIES = ["qwen2", "qwen3", "llama"]


def made(family="qwen2", dtype=torch.float64, recomputed=False):
    policy = small_policy(family, dtype=dtype)
    if recomputed:
        policy.recompute_layers()
    return policy


def loss_and_gradients(policy):
    how = method("blocks", "token_mean")
    trees = some_trees(made(), how)
    learner = Learner(policy, torch.optim.AdamW(policy.model.parameters()), Accelerator(cpu=True))
    loss, _ = learner.accumulate(
        how, gather(how, trees, units_of(trees), LONGEST), numbers(1, "units", 64, 1.0, 60, 60)
    )
    return loss, [p.grad for p in policy.model.parameters()]


def bytes_kept(policy, autocast=False):
    """What a pack's forward pass keeps for the backward pass, weights left out."""
    how = method("blocks", "token_mean")
    trees = some_trees(made(), how)
    (pack,) = packs(gather(how, trees, units_of(trees), LONGEST).shares, 1000)
    own, kept = {p.data_ptr() for p in policy.model.parameters()}, {}

    def keep(tensor):
        if tensor.data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor  # held, so that no address is used twice
        return tensor

    with (
        torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False),
        saved_tensors_hooks(keep, lambda x: x),
    ):
        policy.pack_logprobs(pack, 10**6, 1.0)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()), len(pack.token_T)


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_are_the_same_bits(family):
    loss, gradients = loss_and_gradients(made(family))
    again, others = loss_and_gradients(made(family, recomputed=True))
    assert loss == again
    assert all(torch.equal(a, b) for a, b in zip(gradients, others, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_keeps_its_input_alone(family):
    plain, tokens = bytes_kept(made(family))
    recomputed, _ = bytes_kept(made(family, recomputed=True))
    layers, width, number = 2, 32, 8
    # inputs of the layers, and what the last norm and the head keep: some more of the same width
    assert layers * tokens * width * number <= recomputed <= (layers + 7) * tokens * width * number
    assert plain > 4 * recomputed


def test_sampling_keeps_and_recomputes_nothing():
    plain, recomputed = (made(recomputed=r) for r in (False, True))
    requests = [Request(np.array([3, 4, 5]), seed, 6) for seed in range(4)]
    ours, theirs = (HFEngine(policy, 4).sample(requests) for policy in (recomputed, plain))
    assert all(np.array_equal(a.tokens, b.tokens) for a, b in zip(ours, theirs, strict=True))
    hidden = recomputed.model.model.embed_tokens(torch.tensor([3]))
    assert hidden.grad_fn is not None and not recomputed.model.training
    with torch.no_grad():
        assert not recomputed.model.model.embed_tokens(torch.tensor([3])).requires_grad


@pytest.fixture
def bfloat16():
    """Accelerate keeps the precision of a process for good; another one needs a clean slate."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield Accelerator(cpu=True, mixed_precision="bf16")
    AcceleratorState._reset_state(reset_partial_state=True)


def test_in_bfloat16_products_alone_are_so(bfloat16):
    """Weights, gradients, moments and what the loss is made of are float32; nothing is rounded on the way to AdamW."""
    policy = made(dtype=torch.float32, recomputed=True)
    seen = {}

    def watch(name):
        def hook(module, inputs, output):
            seen[name] = (inputs[0].dtype, output.dtype)

        return hook

    policy.model.model.layers[0].mlp.up_proj.register_forward_hook(watch("product"))
    policy.model.model.norm.register_forward_hook(watch("residual stream"))
    policy.model.lm_head.register_forward_hook(watch("head"))
    how = method("blocks", "token_mean")
    trees = some_trees(made(), how)
    learner = Learner(policy, torch.optim.AdamW(policy.model.parameters()), bfloat16)
    batch = gather(how, trees, units_of(trees), LONGEST)
    with learner.accelerator.autocast():
        assert policy.pack_logprobs(packs(batch.shares, 1000)[0], 60, 1.0).dtype == torch.float32
    learner.clear_gradients()
    learner.accumulate(how, batch, numbers(1, "units", 64, 1.0, 1000, 60))
    learner.optimizer.step()
    assert seen["product"][1] == seen["head"][1] == torch.bfloat16
    assert seen["residual stream"] == (torch.float32, torch.float32)
    moments = [m for state in learner.optimizer.state.values() for m in (state["exp_avg"], state["exp_avg_sq"])]
    gradients = [p.grad for p in policy.model.parameters()]
    assert {t.dtype for t in (*policy.model.parameters(), *gradients, *moments)} == {torch.float32}


def test_no_copy_of_a_layer_s_weights_outlives_its_turn():
    """In bfloat16 each product keeps its copy for the backward pass, unless that makes it again."""
    weights = sum(p.numel() for p in made().model.model.layers.parameters() if p.ndim == 2)
    for recomputed, least, most in ((False, 2 * weights, None), (True, 0, 2 * weights)):
        policy = made(dtype=torch.float32, recomputed=recomputed)
        copies = []

        def keep(tensor, copies=copies):
            if tensor.dtype == torch.bfloat16 and tensor.ndim == 2 and min(tensor.shape) >= 16:
                copies.append(tensor)
            return tensor

        token = torch.tensor([[3, 4, 5]])
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False), saved_tensors_hooks(keep, lambda x: x):
            policy.model.train(recomputed)
            policy.hidden(token, torch.arange(3)[None], _causal)
        held = sum(2 * tensor.numel() for tensor in copies)
        assert held >= least and (most is None or held < most)


def _causal(layer, query, key, value, scale):
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scale, enable_gqa=query.shape[1] != key.shape[1]
    )


def test_gradients_are_there_during_an_update_alone():
    policy = made(dtype=torch.float32)
    how = method("blocks", "token_mean")
    trees = some_trees(made(), how)
    learner = Learner(policy, torch.optim.AdamW(policy.model.parameters()), Accelerator(cpu=True))
    assert learner.update(how, trees, numbers(1, "units", 8, 1.0, 60, 60), 0, 0).updates > 1
    assert all(p.grad is None for p in policy.model.parameters())
