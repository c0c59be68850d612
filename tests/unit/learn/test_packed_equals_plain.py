"""Packed training equals plain flattened training: same loss, same gradients, same weights after several updates."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datpo.config import read_settings
from datpo.core.seeds import generator
from datpo.learn.attention import ChainAttention, DenseTreeAttention
from datpo.learn.loss import clipped_loss
from datpo.learn.minibatch import credited, gather, split, units_of
from datpo.learn.pack import Share, packs
from datpo.learn.update import Learner, UpdateSettings
from datpo.methods import load
from datpo.methods.base import Method, every_branch
from datpo.search.budget import Progress
from tests.models import small_policy
from tests.plain import plain_loss, sequence_logprobs, unit_rows
from tests.trees import branch, random_trees, tree, tree_a, tree_b

ROOT = Path(__file__).resolve().parents[3]
AGGREGATES = ("token_mean", "sequence_mean", "tree_mean", "constant")
LONGEST = 32  # what the constant divides by
KINDS = [(u, g) for u in ("blocks", "leaves") for g in ("units", "trees")]


def method(unit, aggregate, clip=(0.2, 0.28)):
    return Method(1, lambda *_: None, clip, unit=unit, aggregate=aggregate)


def trained(how, grown, advantages, keep=every_branch):
    return credited(dataclasses.replace(how, credit=lambda *_: advantages, keep=keep), grown, Progress(), None)


def some_branches(tree):
    """All but the second and the last branch, the only one excepted."""
    kept = np.ones(len(tree.branches), dtype=bool)
    kept[1:2] = False
    kept[-1] = len(kept) == 1
    return kept


def numbers(epochs, grouping, size, clip, budget, chunk):
    return UpdateSettings(epochs, grouping, size, clip, budget, chunk, temperature=1.0, max_new_tokens=LONGEST)


def some_trees(policy, how, seed=0, per_leaf=False, keep=every_branch):
    """Trees with sampled-looking old log-probs (near the policy's own) and arbitrary advantages."""
    rng = np.random.default_rng(seed)
    deep = tree(
        branch(None, 0, 9, 1), branch(None, 0, 5, 0), branch(0, 4, 6, 0), branch(2, 7, 3, 1), branch(0, 6, 4, 1)
    )
    fork_free = tree(*(branch(None, 0, n, r) for n, r in ((4, 1), (6, 0), (3, 0))))
    found = []
    for shape in (tree_a(), tree_b(), deep, fork_free, tree(branch(None, 0, 1, 1))):
        grown = tree(prompt=rng.integers(3, 50, size=rng.integers(1, 5)))
        for b in shape.branches:
            tokens = rng.integers(3, 50, size=len(b.tokens))
            grown = grown.grow([branch(b.parent, b.start, 0, b.reward, tokens)])
            context = np.concatenate([grown.prompt, grown.prefix(len(grown.branches) - 1, b.start)])
            with torch.no_grad():
                now = sequence_logprobs(policy, context, tokens).double().numpy()
            last = dataclasses.replace(grown.branches[-1], logprobs=now + rng.normal(0, 0.15, size=len(tokens)))
            grown = dataclasses.replace(grown, branches=(*grown.branches[:-1], last))
        size = (len(grown.branches), len(grown.blocks)) if per_leaf else (len(grown.blocks),)
        found.append(trained(how, grown, rng.normal(size=size), keep))
    return found


def learner(policy):
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=1e-2, weight_decay=0.0)
    return Learner(policy, optimizer, Accelerator(cpu=True))


# leaves can disagree about a shared block only where leaf paths are trained
STEPS = [
    *((*kind, aggregate, False, every_branch) for kind in KINDS for aggregate in AGGREGATES),
    *((*kind, aggregate, True, every_branch) for kind in KINDS[2:] for aggregate in AGGREGATES[:2]),
    *((*kind, aggregate, False, some_branches) for kind in KINDS[::2] for aggregate in ("token_mean", "tree_mean")),
]


@pytest.mark.parametrize(("unit", "grouping", "aggregate", "per_leaf", "keep"), STEPS)
def test_a_step_of_several_updates(unit, grouping, aggregate, per_leaf, keep):
    policy = small_policy(dtype=torch.float64)
    how = method(unit, aggregate)
    step_equals_plain(policy, how, some_trees(policy, how, per_leaf=per_leaf, keep=keep), grouping)


@pytest.mark.parametrize("grouping", ["units", "trees"])
@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "treerl", "attnrl", "datpo"])
def test_a_step_of_each_method_as_it_is_configured(name, grouping):
    policy = small_policy(dtype=torch.float64)
    how = load(name, read_settings(ROOT / f"config/methods/{name}.yaml"))
    shapes = [c.tree for c in some_trees(policy, method("leaves", "token_mean"))]
    trees = [credited(how, grown, Progress(), np.full(len(grown.blocks), 0.1)) for grown in shapes]
    assert any((c.advantages > 0).any() for c in trees) and any((c.advantages < 0).any() for c in trees)
    step_equals_plain(policy, how, trees, grouping)


def step_equals_plain(ours, how, trees, grouping):
    theirs = small_policy(dtype=torch.float64)
    report = learner(ours).update(how, trees, numbers(2, grouping, 6, 0.5, 40, 7), seed=3, step=4)

    optimizer = torch.optim.AdamW(theirs.model.parameters(), lr=1e-2, weight_decay=0.0)
    losses = []
    for epoch in range(2):
        for chosen in split(units_of(trees), 6, grouping, generator(3, "minibatches", 4, epoch)):
            rows = unit_rows(how, trees, chosen)
            optimizer.zero_grad()
            loss = plain_loss(how, [sequence_logprobs(theirs, row[0], row[1]) for row in rows], rows, LONGEST)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(theirs.model.parameters(), 0.5)
            optimizer.step()
            losses.append(float(loss.detach()))
    assert report.updates == len(losses) >= 4
    assert report.losses == pytest.approx(losses, abs=1e-9)
    for mine, plain in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        assert torch.allclose(mine, plain, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("unit", "grouping"), KINDS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_loss_alone_is_exact(unit, grouping, aggregate):
    """Given the same log-probabilities, pull/push and the textbook agree to 1e-9, gradients too."""
    how = method(unit, aggregate)
    trees = some_trees(small_policy(dtype=torch.float64), how, seed=1, per_leaf=unit == "leaves")
    rng = np.random.default_rng(0)
    table = {}  # one log-probability for each token of each tree, as any model would give it

    def logp_of(t, branch_index, position):
        key = (t, branch_index, position)
        if key not in table:
            old = trees[t].tree.branches[branch_index].logprobs[position]
            table[key] = torch.tensor(old + rng.normal(0, 0.3), dtype=torch.float64, requires_grad=True)
        return table[key]

    for chosen in split(units_of(trees), 6, grouping, np.random.default_rng(1)):
        batch = gather(how, trees, chosen, LONGEST)
        index_of = {id(c.tree): t for t, c in enumerate(trees)}
        logp, old, pull, push = [], [], [], []
        for share in batch.shares:
            for b in share.scored:
                block = share.tree.blocks[b]
                start = share.tree.branches[block.branch].start
                for position in range(block.start - start, block.stop - start):
                    logp.append(logp_of(index_of[id(share.tree)], block.branch, position))
                    old.append(share.tree.branches[block.branch].logprobs[position])
                    pull.append(share.pull_B[b])
                    push.append(share.push_B[b])
        ours, _ = clipped_loss(
            torch.stack(logp),
            *(torch.tensor(x, dtype=torch.float64) for x in (old, pull, push)),
            how.clip_range,
            batch.normaliser,
        )
        rows, logprobs = unit_rows(how, trees, chosen), []
        for unit_, _ in zip(chosen, rows, strict=True):
            grown = trees[unit_.tree].tree
            path = [unit_.index] if how.unit == "blocks" else list(grown.path(unit_.index))
            logprobs.append(
                torch.stack(
                    [
                        logp_of(unit_.tree, grown.blocks[b].branch, p - grown.branches[grown.blocks[b].branch].start)
                        for b in path
                        for p in range(grown.blocks[b].start, grown.blocks[b].stop)
                    ]
                )
            )
        theirs = plain_loss(how, logprobs, rows, LONGEST)
        assert float(ours) == pytest.approx(float(theirs), abs=1e-9)
        used = list(table.values())
        for mine, plain in zip(
            torch.autograd.grad(ours, used, allow_unused=True),
            torch.autograd.grad(theirs, used, allow_unused=True),
            strict=True,
        ):
            a, b = (0.0 if g is None else float(g) for g in (mine, plain))
            assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
def test_packed_logprobs_and_gradients_in_float32(family):
    policy = small_policy(family)
    how = method("blocks", "token_mean", clip="none")
    trees = some_trees(policy, how)
    batch = gather(how, trees, units_of(trees), LONGEST)
    mine = learner(policy)
    mine.accumulate(how, batch, numbers(1, "units", 64, 1.0, 60, 16))
    ours = [p.grad.clone() for p in policy.model.parameters()]
    rows = unit_rows(how, trees, units_of(trees))
    plain = [sequence_logprobs(policy, row[0], row[1]) for row in rows]
    theirs = torch.autograd.grad(
        plain_loss(dataclasses.replace(how, clip=(1.0, 1e9)), plain, rows, LONGEST), list(policy.model.parameters())
    )
    scale = torch.cat([g.flatten() for g in theirs]).norm()
    gap = torch.cat([(a - b).flatten() for a, b in zip(ours, theirs, strict=True)]).norm()
    assert float(gap / scale) < 1e-5


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(random_trees(), min_size=1, max_size=3), st.integers(5, 80), st.data())
def test_packs_score_every_chosen_block_once_within_the_budget(grown, budget, data):
    shares = []
    for t in grown:
        chosen = data.draw(st.lists(st.booleans(), min_size=len(t.blocks), max_size=len(t.blocks)))
        shares.append(Share(t, np.array(chosen, dtype=float), np.zeros(len(t.blocks))))
    made = packs(shares, budget)
    longest = max((len(t.prompt) + max(b.stop for b in t.branches) for t in grown), default=0)
    assert all(len(pack.token_T) <= max(budget, longest) for pack in made)
    expected = sorted(
        int(token) for share in shares for b in share.scored for token in share.tree.block_tokens(share.tree.blocks[b])
    )
    assert sorted(int(p.token_T[i]) for p in made for i in p.scored_S) == expected
    assert all((p.position_T[p.parent_S] == p.position_T[p.scored_S] - 1).all() for p in made)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(random_trees(), min_size=1, max_size=3), st.integers(12, 90))
def test_chains_attend_as_the_dense_tree_mask(grown, budget):
    shares = [Share(t, np.ones(len(t.blocks)), np.zeros(len(t.blocks))) for t in grown]
    for pack in packs(shares, budget):
        torch.manual_seed(0)
        q, k, v = (torch.randn(1, h, len(pack.token_T), 8, dtype=torch.float64) for h in (4, 2, 2))
        device = torch.device("cpu")
        dense, chains = DenseTreeAttention(pack, device), ChainAttention(pack, device)
        assert torch.allclose(dense(0, q, k, v, 0.3), chains(0, q, k, v, 0.3), atol=1e-12)


def test_a_batch_without_signal_has_loss_zero_and_no_nan():
    policy = small_policy()
    how = method("blocks", "token_mean")
    trees = [trained(how, c.tree, np.zeros(len(c.tree.blocks))) for c in some_trees(policy, how)]
    before = [p.clone() for p in policy.model.parameters()]
    summary = learner(policy).update(how, trees, numbers(2, "units", 8, 1.0, 60, 16), 0, 0).summary()
    assert summary["loss"] == 0.0 and summary["grad_norm"] == 0.0
    assert summary["ratio_mean"] is None and summary["sampler_gap"] is None
    assert all(torch.equal(a, b) for a, b in zip(before, policy.model.parameters(), strict=True))


def test_token_mean_is_over_the_mini_batch_and_not_a_mean_of_packs():
    # two sequences of 2 and 6 tokens with losses 1 and 0: 2/8, whatever the packs; a mean of means would give 1/2
    grown = tree(branch(None, 0, 2, 1, logprobs=[0, 0]), branch(None, 0, 6, 0, logprobs=[0] * 6))
    how = method("leaves", "token_mean")
    trees = [trained(how, grown, np.array([-1.0, 0.0]))]
    batch = gather(how, trees, units_of(trees), LONGEST)
    loss, _ = clipped_loss(torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.ones(2), (0.2, 0.2), batch.normaliser)
    assert float(loss) == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize("grouping", ["units", "trees"])
def test_both_groupings_make_as_many_updates_where_trees_allow(grouping):
    policy = small_policy()
    how = method("blocks", "token_mean")
    trees = some_trees(policy, how) * 4
    units = units_of(trees)
    batches = split(units, 16, grouping, np.random.default_rng(0))
    assert len(batches) == -(-len(units) // 16)
    assert sorted((u.tree, u.index) for b in batches for u in b) == sorted((u.tree, u.index) for u in units)


def test_what_is_not_kept_has_neither_gradient_nor_weight():
    how = method("leaves", "token_mean")
    grown = tree(branch(None, 0, 4, 1), branch(None, 0, 6, 0), branch(0, 2, 3, 0))
    kept = trained(how, grown, np.ones((3, 4)), keep=lambda _: np.array([True, False, True]))
    assert kept.units == (0, 2)
    batch = gather(how, [kept], units_of([kept]), LONGEST)
    # leaf 0: 4 tokens, leaf 2: 2 + 3 tokens
    assert (batch.normaliser, batch.trained_tokens) == (9.0, 9)
    (share,) = batch.shares
    on_path = [block.branch != 1 for block in grown.blocks]
    assert ((share.pull_B > 0) == on_path).all()
    none = trained(how, grown, np.ones((3, 4)), keep=lambda _: np.zeros(3, dtype=bool))
    assert units_of([none]) == []


def test_end_tokens_are_left_out_on_request():
    how = method("leaves", "token_mean")
    grown = tree(
        branch(None, 0, 4, 1, finish="stop"), branch(None, 0, 6, 0, finish="length"), branch(0, 2, 1, 0, finish="stop")
    )
    credit = dataclasses.replace(how, credit=lambda *_: np.ones(len(grown.blocks)))
    without = credited(credit, grown, Progress(), None, end_tokens=False)
    assert without.units == (0, 1)  # the third is an end token alone
    assert [len(b.tokens) for b in without.tree.branches] == [3, 6, 1]
    assert without.tokens == 9
    assert credited(credit, grown, Progress(), None).tokens == 4 + 6 + 3


def test_a_block_without_tokens_moves_no_other_token_s_parent():
    """Left where a rollout was forked in front of its end token and end tokens are not trained."""
    grown = tree(branch(None, 0, 0, tokens=[5, 6, 7, 8], finish="stop"), branch(0, 3, 0, tokens=[9, 8], finish="stop"))
    cut = grown.without_end_tokens()
    assert [len(block) for block in cut.blocks] == [3, 0, 1]
    (pack,) = packs([Share(cut, np.ones(3), np.zeros(3))], 100)
    first = len(cut.prompt)
    assert pack.scored_S.tolist() == [first, first + 1, first + 2, first + 3]
    assert pack.parent_S.tolist() == [first - 1, first, first + 1, first + 2]
