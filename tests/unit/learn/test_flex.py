"""The tree mask as blocks, against the dense mask and PyTorch's own way to make blocks; on a CPU, so forward only."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.nn.attention.flex_attention import create_block_mask, create_mask, flex_attention

from datpo.learn import flex, policy
from datpo.learn.attention import DenseTreeAttention
from datpo.learn.flex import BLOCK, FlexTreeAttention
from datpo.learn.pack import Share, packs
from tests.models import VOCABULARY, small_policy
from tests.trees import branch, tree

CPU = torch.device("cpu")
SHAPES = {
    "two trees over many blocks": [
        tree(branch(None, 0, 400, 1), branch(0, 200, 190, 0), branch(1, 290, 40, 1), branch(0, 10, 150, 0)),
        tree(branch(None, 0, 130, 1), branch(None, 0, 260, 0), branch(1, 129, 1, 1)),
    ],
    "exactly two blocks": [tree(branch(None, 0, 254, 1), prompt=(1, 2))],
    "less than one block": [tree(branch(None, 0, 9, 1), branch(0, 4, 5, 0))],
    "many short ones": [tree(branch(None, 0, 20, 1), branch(0, 7, 30, 0)) for _ in range(9)],
}


@pytest.fixture(params=SHAPES)
def pack(request):
    shares = [Share(t, np.ones(len(t.blocks)), np.zeros(len(t.blocks))) for t in SHAPES[request.param]]
    (made,) = packs(shares, 10_000)
    return made


@pytest.fixture
def eager(monkeypatch):
    """The kernel in plain operations, as it runs on a CPU."""
    monkeypatch.setattr(flex, "fused", lambda: flex_attention)


def listed(count, order):
    """Which blocks are chosen, as a table."""
    chosen = torch.zeros(order.shape[-2:], dtype=torch.bool)
    for row, (n, indices) in enumerate(zip(count[0, 0], order[0, 0], strict=True)):
        chosen[row, indices[:n].long()] = True
    return chosen


def test_blocks_are_those_of_the_whole_table(pack):
    mask = FlexTreeAttention(pack, CPU).mask
    theirs = create_block_mask(mask.mask_mod, None, None, *mask.seq_lengths, device="cpu", BLOCK_SIZE=BLOCK)
    for count, order in (
        ("kv_num_blocks", "kv_indices"),
        ("full_kv_num_blocks", "full_kv_indices"),
        ("q_num_blocks", "q_indices"),
        ("full_q_num_blocks", "full_q_indices"),
    ):
        ours, expected = (listed(getattr(m, count), getattr(m, order)) for m in (mask, theirs))
        assert torch.equal(ours, expected), count
    assert mask.seq_lengths == (FlexTreeAttention(pack, CPU).length,) * 2


def test_the_mask_is_the_dense_one_and_fillers_see_themselves_alone(pack):
    ours = FlexTreeAttention(pack, CPU)
    tokens = len(pack.token_T)
    assert ours.length % BLOCK == 0 and ours.length >= max(tokens, 2 * BLOCK)
    table = create_mask(ours.mask.mask_mod, None, None, ours.length, ours.length, device="cpu")[0, 0]
    assert torch.equal(table[:tokens, :tokens], DenseTreeAttention(pack, CPU).mask)
    assert not table[:tokens, tokens:].any() and not table[tokens:, :tokens].any()
    assert torch.equal(table[tokens:, tokens:], torch.eye(ours.length - tokens, dtype=torch.bool))


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_attended_as_under_the_dense_mask(eager, pack, groups):
    ours, tokens = FlexTreeAttention(pack, CPU), len(pack.token_T)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, h, ours.length, 16, dtype=torch.float64) for h in (4, groups, groups))
    expected = DenseTreeAttention(pack, CPU)(0, *(x[:, :, :tokens] for x in (q, k, v)), 0.3)
    assert torch.allclose(ours(0, q, k, v, 0.3)[:, :, :tokens], expected, atol=1e-12)


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_model_s_logprobs_are_those_of_chains(eager, monkeypatch, pack, family, bfloat16):
    made = small_policy(family, scale=2.0)
    made.model.requires_grad_(False)

    def logprobs():
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            return made.pack_logprobs(replace(pack, token_T=pack.token_T % VOCABULARY), 5_000, 1.0)

    by_chains = logprobs()
    monkeypatch.setattr(policy, "ChainAttention", FlexTreeAttention)
    assert torch.allclose(logprobs(), by_chains, atol=0.1 if bfloat16 else 1e-5)


def test_packs_of_all_lengths_take_two_compilations(monkeypatch):
    """Each with a mask of its own. What the graphs are compiled to, Triton's kernels, takes a GPU."""
    counter = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter))
    flex.fused.cache_clear()
    torch.compiler.reset()
    for length in (300, 90, 500, 700, 1100, 250, 2000):
        share = Share(tree(branch(None, 0, length, 1), branch(0, length // 2, 40, 0)), np.ones(3), np.zeros(3))
        (made,) = packs([share], 10_000)
        ours, tokens = FlexTreeAttention(made, CPU), len(made.token_T)
        q, k, v = (torch.randn(1, h, ours.length, 16) for h in (4, 2, 2))
        expected = DenseTreeAttention(made, CPU)(0, *(x[:, :, :tokens] for x in (q, k, v)), 0.25)
        assert torch.allclose(ours(0, q, k, v, 0.25)[:, :, :tokens], expected, atol=1e-5)
    flex.fused.cache_clear()
    assert counter.frame_count == 2
