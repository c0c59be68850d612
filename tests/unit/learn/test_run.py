"""The parts of a training step, one by one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState

from datpo.core.engine import Request
from datpo.core.errors import InputError
from datpo.core.problem import Problem, load_problems
from datpo.engines.hf import HFEngine
from datpo.learn.grading import check_keys, grader
from datpo.learn.loss import clipped_loss, token_logprobs
from datpo.learn.policy import load_policy
from datpo.learn.run import Run
from datpo.learn.state import RunState, load_state, save_state
from datpo.learn.statistics import tree_statistics
from tests.trees import branch, tree
from tests.unit.learn.test_trainer import settings


@pytest.fixture
def make_run(base_checkpoint, easy_problems, tmp_path):
    def made(method="datpo", duration=None, **train):
        config = settings(method, duration or {"steps": 4}, **train)
        return Run(config, load_problems(easy_problems), load_policy(base_checkpoint), tmp_path / "trees")

    return made


def test_tree_statistics_by_hand():
    def leaf(parent, start, length, reward, entropy, finish):
        made = branch(parent, start, length, reward, finish=finish, signals={"entropy": np.full(length, entropy)})
        return replace(made, verdict="right" if reward else "no_answer")

    mixed = tree(leaf(None, 0, 4, 1, 0.5, "stop"), leaf(None, 0, 6, 0, 0.5, "length"), leaf(0, 2, 2, 1, 2.0, "stop"))
    wrong = tree(leaf(None, 0, 3, 0, 1.0, "stop"), leaf(None, 0, 5, 0, 1.0, "stop"))
    found = tree_statistics([mixed, wrong])
    assert found == pytest.approx(
        {
            "prompts": 2,
            "reward": (0.5 + 0) / 2,  # base rollouts only
            "leaf_reward": (2 / 3 + 0) / 2,
            "solved": 0.5,
            "zero_signal": 0.5,
            "leaves": 2.5,
            "tokens_per_question": (12 + 8) / 2,
            "entropy": (10 * 0.5 + 2 * 2.0 + 8 * 1.0) / 20,
            "response_length": (4 + 6 + 4 + 3 + 5) / 5,
            "truncated": 1 / 5,
            "no_answer": 3 / 5,
        }
    )


def test_a_branch_is_graded_with_its_prefix_and_up_to_the_stop_string():
    class Letters:
        def decode(self, tokens):
            return "".join(map(chr, tokens))

    def spelled(text):
        return [ord(letter) for letter in text]

    problem = Problem("p", "Start at 1. Reach 3 with 1 of: +2 +4.", "+2")
    base, tail = "So \\boxed{ +2", "} and on\n\nQ: \\boxed{ +4}."
    grown = tree(branch(None, 0, 0, tokens=spelled(base + "x")), branch(0, len(base), 0, tokens=spelled(tail)))
    leaves = [(replace(grown, problem=problem), leaf) for leaf in (0, 1)]
    assert grader("moves", Letters(), ["\n\nQ:"], "response")(leaves) == [(0.0, "no_answer"), (1.0, "right")]
    assert grader("moves", Letters(), [], "response")(leaves)[1] == (0.0, "wrong")
    # both were cut off by the token limit
    assert grader("moves", Letters(), [], truncated="wrong")(leaves) == [(0.0, "no_answer")] * 2
    # but the one that holds a stop string would have ended there
    assert grader("moves", Letters(), ["\n\nQ:"], truncated="wrong")(leaves) == [(0.0, "no_answer"), (1.0, "right")]
    # the released code looks at the branch alone, where no box has been opened
    assert grader("moves", Letters(), ["\n\nQ:"], "branch")(leaves)[1] == (0.0, "no_answer")


def test_unreadable_keys_are_refused_before_anything_is_trained():
    problems = [Problem("good", "Start at 1. Reach 3 with 1 of: +2 +4.", "+2"), Problem("odd", "Fly.", "+2")]
    check_keys("moves", problems[:1])
    with pytest.raises(InputError, match=r"keys of 1 training problems; .*: odd$"):
        check_keys("moves", problems)


def test_a_step_hands_the_method_its_progress_and_its_diversity(make_run):
    run = make_run(duration={"tokens": 4000})
    seen = []
    real = run.method.credit

    def credit(grown, progress, diversity_B):
        seen.append((progress.step, progress.fraction, diversity_B.copy(), grown))
        return real(grown, progress, diversity_B)

    run.method = replace(run.method, credit=credit)
    state = RunState()
    for _ in range(3):
        before = state.tokens
        row = run.step(state)
        mine = [entry for entry in seen if entry[0] == state.step - 1]
        assert {entry[1] for entry in mine} == {before / 4000} == {row["fraction"]}
    assert any(entry[2].max() > 0 for entry in seen if entry[3].siblings)
    assert row["total_tokens"] == state.tokens == sum(e[3].generated_tokens for e in seen)


def test_each_epoch_reads_every_problem_once_in_an_order_of_its_own(make_run):
    run = make_run(prompts_per_step=5)
    state = RunState()
    read = [seedling.tree.problem.id for step in range(10) for seedling in run._next_problems(state, step)]
    count = len(run.problems)
    first, second = read[:count], read[count : 2 * count]
    assert sorted(first) == sorted(second) == sorted(problem.id for problem in run.problems)
    assert first != second
    assert first != [problem.id for problem in run.problems]


def test_optimiser_numbers_come_from_the_settings(make_run):
    run = make_run(learning_rate=3e-3, betas=[0.8, 0.95], weight_decay=0.1)
    (group,) = run.learner.optimizer.param_groups
    assert (group["lr"], group["betas"], group["weight_decay"]) == (3e-3, (0.8, 0.95), 0.1)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.4])
def test_sampled_and_recomputed_logprobs_agree_at_any_temperature(make_run, temperature):
    run = make_run("grpo", temperature=temperature)
    row = next(row for row in (run.step(RunState(step=s)) for s in range(40)) if row["sampler_gap"] is not None)
    assert row["sampler_gap"] < 1e-4
    assert run.rollouts.engine.temperature == temperature


@pytest.fixture
def own_accelerator():
    """Accelerate keeps the precision of a process for good; a run of another one needs a clean slate."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


def test_under_autocast_sampler_and_learner_stay_close(own_accelerator, make_run):
    run = make_run("grpo", precision="bfloat16")
    row = next(row for row in (run.step(RunState(step=s)) for s in range(40)) if row["sampler_gap"] is not None)
    assert row["sampler_gap"] < 0.2  # bfloat16 keeps three digits
    with run.learner.accelerator.autocast():
        engine = HFEngine(run.policy, 4)
        engine.sample([Request(np.array([3, 4, 5]), 0, 3)], keep=True)
    assert {cache.dtype for cache in engine._kept.values()} == {torch.bfloat16}


def test_loss_health_by_hand():
    # ratios 1.5 (pulled: clipped above 1.28), 0.5 (pushed: clipped below 0.8), 1.5 (pushed: not), 0.5 (pulled: not)
    logp = torch.log(torch.tensor([1.5, 0.5, 1.5, 0.5]))
    pull, push = torch.tensor([1.0, 0, 0, 1.0]), torch.tensor([0, 1.0, 1.0, 0])
    loss, health = clipped_loss(logp, torch.zeros(4), pull, push, (0.2, 0.28), 4.0)
    assert float(loss) == pytest.approx(-(1.28 - 0.8 - 1.5 + 0.5) / 4)
    assert (health.tokens, health.clipped) == (4, 2)
    assert health.ratio_sum == pytest.approx(4.0)
    assert health.ratio_max == pytest.approx(1.5)
    assert health.gap_max == pytest.approx(np.log(2), abs=1e-6)


def test_token_logprobs_are_those_of_the_whole_matrix_whatever_the_chunk():
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 30, bias=False)
    hidden, token = torch.randn(11, 8, requires_grad=True), torch.randint(0, 30, (11,))
    whole = torch.log_softmax(head(hidden) / 0.7, -1).gather(1, token[:, None])[:, 0]
    (expected,) = torch.autograd.grad(whole.sum(), hidden)
    for chunk in (1, 4, 64):
        ours = token_logprobs(hidden, head, token, chunk, 0.7)
        assert torch.allclose(ours, whole, atol=1e-6)
        assert torch.allclose(torch.autograd.grad(ours.sum(), hidden)[0], expected, atol=1e-6)


def test_a_damaged_state_is_passed_over_for_the_one_before(tmp_path, make_run, capsys):
    run = make_run()
    model, optimizer = run.policy.model, run.learner.optimizer
    optimizer.step()
    save_state(tmp_path, RunState(step=10), model, optimizer)
    with torch.no_grad():
        kept = {name: p.clone() for name, p in model.named_parameters()}
        for parameter in model.parameters():
            parameter.add_(1.0)
    save_state(tmp_path, RunState(step=20), model, optimizer)
    weights = tmp_path / "state-000020" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert load_state(tmp_path, model, optimizer).step == 10
    assert "state-000020: cannot be read" in capsys.readouterr().err
    assert weights.exists()  # an error that passes must not cost a state
    assert all(torch.equal(p, kept[name]) for name, p in model.named_parameters())
