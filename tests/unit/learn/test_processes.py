"""Several processes train as one: the same loss and gradients, the same trees, the same log."""

import os
import socket
import subprocess
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from torch.multiprocessing import start_processes

from datpo.core.engine import Request
from datpo.core.files import read_jsonl
from datpo.core.saved import load_graded_trees
from datpo.engines.hf import HFEngine
from datpo.learn.minibatch import gather, units_of
from datpo.learn.pack import Share, balanced, packs, pieces
from datpo.learn.processes import Processes, SharedEngine
from datpo.learn.update import Learner
from tests.models import small_policy
from tests.unit.learn.test_packed_equals_plain import LONGEST, method, numbers, some_trees, trained
from tests.unit.learn.test_trainer import ROOT, Job, settings

HOW = method("blocks", "token_mean")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def together(work, folder, count=2):
    """What `work(accelerator)` returns in each of several forked processes, and in this one alone."""
    start_processes(_at_work, (work, folder, count, free_port()), nprocs=count, start_method="fork")
    results = [torch.load(folder / f"{index}.pt", weights_only=False) for index in range(count)]
    return results, work(Accelerator(cpu=True))


def _at_work(index, work, folder, count, port):
    AcceleratorState._reset_state(reset_partial_state=True)
    os.environ |= {"RANK": str(index), "LOCAL_RANK": str(index), "WORLD_SIZE": str(count)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    accelerator = Accelerator(cpu=True)
    assert (accelerator.process_index, accelerator.num_processes) == (index, count)
    torch.save(work(accelerator), folder / f"{index}.pt")
    torch.distributed.destroy_process_group()


def close(ours, theirs):
    """Equal but for the rounding of real numbers: counts and rewards are not rounded."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(close(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, float) and not theirs.is_integer():
        return ours == pytest.approx(theirs, rel=1e-5, abs=1e-5, nan_ok=True)
    return ours == theirs or ours == pytest.approx(theirs, abs=1e-6)


def learner(accelerator):
    policy = small_policy()
    return Learner(policy, torch.optim.AdamW(policy.model.parameters(), lr=1e-2), accelerator)


def whole_step(kind, accelerator):
    """Loss and gradients of one mini-batch, and the weights after a step of several."""
    trees = some_trees(small_policy(), HOW)
    if kind == "one pack":
        trees = trees[:1]
    if kind == "nothing":
        trees = [trained(HOW, c.tree, np.zeros(len(c.tree.blocks))) for c in trees]
    budget = numbers(2, "units", 6, 0.5, 1000 if kind == "one pack" else 40, 60)
    mine = learner(accelerator)
    mine.clear_gradients()
    loss, health = mine.accumulate(HOW, gather(HOW, trees, units_of(trees), LONGEST), budget)
    mine.processes.add_up(p.grad for p in mine.parameters)
    loss = sum(mine.processes.each(loss))
    gradients = torch.cat([p.grad.flatten() for p in mine.parameters])
    summary = mine.update(HOW, trees, budget, 3, 4).summary()
    weights = torch.cat([p.detach().flatten() for p in mine.parameters])
    return loss, gradients, weights, summary, sum(h.tokens for h in health)


@pytest.mark.parametrize("kind", ["several packs", "one pack", "nothing"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_step_in_float32_is_that_of_one_process(tmp_path, kind, count):
    several, alone = together(partial(whole_step, kind), tmp_path, count)
    loss, gradients, weights, summary, tokens = alone
    assert summary["updates"] >= 2
    assert sum(one[4] for one in several) == tokens
    if kind == "several packs":
        assert min(one[4] for one in several) > 0
    for one in several:
        assert one[0] == pytest.approx(loss, rel=1e-5, abs=1e-12)
        assert (one[1] - gradients).norm() <= 1e-5 * gradients.norm()
        assert torch.allclose(one[2], weights, atol=1e-5)
        assert close(one[3], summary)
        assert torch.equal(one[2], several[0][2])  # to the bit: they must never part


def shared_out(accelerator):
    processes = Processes(accelerator)
    items = [np.full(2, i) for i in range(5)]
    engine = SharedEngine(HFEngine(small_policy(), 8), processes)
    requests = [Request(np.array([3, 4, 5 + i]), i, 6) for i in range(5)]
    back = [int(item[0]) for item in processes.whole(processes.mine(items))]
    return back, processes.whole(processes.mine([7])), [c.tokens.tolist() for c in engine.sample(requests)]


def test_what_is_shared_out_comes_back_in_order(tmp_path):
    several, alone = together(shared_out, tmp_path, 3)
    assert alone[:2] == (list(range(5)), [7])
    assert several == [alone] * 3


def test_pieces_are_shared_out_by_their_tokens():
    trees = [c.tree for c in some_trees(small_policy(), HOW)]
    shares = [Share(t, np.ones(len(t.blocks)), np.zeros(len(t.blocks))) for t in trees]
    cut = [piece for share in shares for piece in pieces(share, 20)]
    assert balanced(cut, 1) == [cut]
    for count in (2, 3, 40):
        parts = balanced(cut, count)
        assert sorted(map(id, cut)) == sorted(id(piece) for part in parts for piece in part)
        sizes = [sum(piece.size for piece in part) for part in parts]
        assert max(sizes) - min(sizes) <= max(piece.size for piece in cut)
    scored = [len(pack.scored_S) for process in range(3) for pack in packs(shares, 20, process, 3)]
    assert sum(scored) == sum(len(t.blocks[b]) for t in trees for b in range(len(t.blocks)))


def test_one_process_leaves_things_as_they_are():
    alone = Processes(SimpleNamespace(process_index=0, num_processes=1))
    assert alone.first
    assert alone.mine([1, 2, 3]) == alone.whole([1, 2, 3]) == [1, 2, 3]
    assert alone.each("x") == ["x"]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "prompts"), [("datpo", 3), ("attnrl", 3), ("grpo", 1)])
def test_a_training_of_two_processes_has_the_log_of_one(tmp_path, base_checkpoint, easy_problems, method, prompts):
    """AttnRL plants ahead and changes how many problems it asks; with one problem the second process grows no tree."""
    config = settings(
        method,
        {"steps": 3},
        prompts_per_step=prompts,
        token_budget=256,
        validate_every=2,
        save_trees=[1, 3],
        state_every=1,
    )
    alone, both = (Job(tmp_path / name, config, easy_problems, base_checkpoint) for name in ("alone", "both"))
    for job in (alone, both):
        job.options["validation"] = [easy_problems]
    weights = alone.run()
    launch(both)
    rows, others = (read_jsonl(job.options["log"]) for job in (alone, both))
    assert len(rows) == len(others) == 3
    for row, other in zip(rows, others, strict=True):
        assert row.keys() == other.keys()
        assert all(close(other[name], row[name]) for name in row if "seconds" not in name), (row, other)
    ours = torch.cat([tensor.flatten() for tensor in weights.values()])
    theirs = torch.cat([tensor.flatten() for tensor in load_file(both.options["out"] / "model.safetensors").values()])
    assert (ours - theirs).norm() < 1e-4 * ours.norm()
    for step in (1, 3):
        trees, again = (load_graded_trees(j.options["work"] / f"trees/step-{step:06d}.jsonl") for j in (alone, both))
        assert [s.tree.problem.id for s in trees] == [s.tree.problem.id for s in again]
        assert [s.texts for s in trees] == [s.texts for s in again]
    assert not list(both.options["work"].glob("*/state-*"))


def launch(job):
    """The verb in two processes; `--multi_gpu` is there for its launcher, the processes find no GPU to use."""
    command = ["accelerate", "launch", "--multi_gpu", "--num_processes=2", f"--main_process_port={free_port()}"]
    command += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no", "-m", "datpo", "train"]
    for name, value in job.options.items():
        command += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
