"""Training: rollouts, credit, update, log, state; until the run's duration is spent."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import whole_folder
from datpo.core.problem import Problem, load_problems
from datpo.core.seeds import generator
from datpo.core.tree import Floats, Ints, RolloutTree
from datpo.credit.diversity import Embed, sibling_diversity
from datpo.engines.hf import HFEngine
from datpo.evaluate.verify import grade_all
from datpo.learn.embed import embedder
from datpo.learn.log import TrainingLog
from datpo.learn.minibatch import CreditedTree
from datpo.learn.policy import Policy, load_policy, save_policy
from datpo.learn.prompts import cut_at_stop, prompt_tokens
from datpo.learn.state import RunState, load_state, run_folder, save_state
from datpo.learn.update import Learner, UpdateSettings
from datpo.methods import Method, load
from datpo.progress import ProgressLines
from datpo.search.budget import Progress
from datpo.search.rollout import Grade, Rollouts
from datpo.search.signals import sentence_numbers

PRECISIONS = {"float32": "no", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Duration:
    """How long to train: a number of rollout `steps`, generated `tokens` or optimiser `updates`."""

    unit: str
    amount: float

    def spent(self, state: RunState) -> float:
        """What the run has used of it so far."""
        return float({"steps": state.step, "tokens": state.tokens, "updates": state.updates}[self.unit])


def train(config: Path, problems: Path, model: Path, work: Path, out: Path, log: Path) -> None:
    """Train `model` on `problems` as the run's `config` says; publish checkpoint `out` and step log `log`.

    Everything needed to go on lies below `work`. SIGTERM ends the run after the step under way, with a state on disk
    and exit code 143, so that the workflow's retry continues it.
    """
    settings = read_settings(config)
    run = Run(settings, load_problems(problems), load_policy(model))
    folder = run_folder(work, config, problems, model)
    state = load_state(folder, run.policy.model, run.learner.optimizer)
    training_log = TrainingLog(folder, state.step)
    stop = _stop_on_sigterm()
    bar = ProgressLines(
        run.name, run.duration.amount, run.duration.unit, min(run.duration.spent(state), run.duration.amount)
    )
    while run.duration.spent(state) < run.duration.amount:
        before = run.duration.spent(state)
        row = run.step(state)
        training_log.add(row)
        bar.advance(run.duration.spent(state) - before, note=f"reward {row['reward']:.2f}")
        if stop.requested or state.step % run.settings["state_every"] == 0:
            save_state(folder, state, run.policy.model, run.learner.optimizer)
        if stop.requested:
            print(f"{run.name}: stopped by SIGTERM after step {state.step}; the next start goes on", file=sys.stderr)
            sys.exit(143)
    save_state(folder, state, run.policy.model, run.learner.optimizer)
    with whole_folder(out) as target:
        save_policy(run.policy, target)
    training_log.publish(log)


class Run:
    """A training run: the method, the policy and everything between them."""

    def __init__(self, config: dict[str, Any], problems: Sequence[Problem], policy: Policy) -> None:
        identity, settings = config["identity"], config["train"]
        self.name = f"train {identity['model']} {identity['run']} seed {identity['seed']}"
        self.settings = settings
        self.seed = int(identity["seed"])
        self.method: Method = load(identity["method"], config["method"])
        ((unit, amount),) = settings["duration"].items()
        self.duration = Duration(unit, float(amount))
        self.problems = problems
        accelerator = Accelerator(mixed_precision=PRECISIONS[settings["precision"]])
        optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=settings["learning_rate"],
            betas=tuple(settings["betas"]),
            weight_decay=settings["weight_decay"],
        )
        check_keys(config["domain"], problems)
        model, optimizer = accelerator.prepare(policy.model, optimizer)
        self.policy = Policy(model, policy.tokenizer)
        self.learner = Learner(self.policy, optimizer, accelerator)
        self.update_settings = UpdateSettings(**{f.name: settings[f.name] for f in fields(UpdateSettings)})
        self.embed: Embed | None = None
        if self.method.diverse:
            self.embed = embedder(
                settings["embedder"], settings.get("embedder_revision"), settings.get("embedder_remote_code", False)
            )
        self.prompts = [prompt_tokens(problem, config["prompt"], policy.tokenizer) for problem in problems]
        self.rollouts = Rollouts(
            engine=HFEngine(self.policy, settings["generation_batch"], settings["temperature"]),
            grade=grader(config["domain"], self.policy, config["prompt"].get("stop") or []),
            signals={"sentence": lambda branch: sentence_numbers(branch, self.policy.decode)},
            max_new_tokens=settings["max_new_tokens"],
            context_window=self.policy.context_window,
        )

    def step(self, state: RunState) -> dict[str, Any]:
        """One rollout step and its update; counts it in `state` and returns the step's log row."""
        progress = Progress(state.step, self.duration.spent(state) / self.duration.amount, state.statistics)
        clock = [time.perf_counter()]
        with self.learner.accelerator.autocast():  # as the update will: the ratio starts at 1
            trees = self.rollouts.grow(self.method, self._batch(state.step), progress, self.seed)
        clock.append(time.perf_counter())
        diversity = self._diversity(trees)
        clock.append(time.perf_counter())
        credited = [
            CreditedTree(tree, self.method.credit(tree, progress, div))
            for tree, div in zip(trees, diversity, strict=True)
        ]
        clock.append(time.perf_counter())
        report = self.learner.update(self.method, credited, self.update_settings, self.seed, state.step).summary()
        clock.append(time.perf_counter())
        rollout, embedding, credit, update = np.diff(clock).tolist()
        state.step += 1
        state.tokens += sum(tree.generated_tokens for tree in trees)
        state.updates += report["updates"]
        state.seconds += clock[-1] - clock[0]
        return {
            "step": state.step,
            **tree_statistics(trees),
            **report,
            "fraction": progress.fraction,
            "seconds_rollout": rollout,
            "seconds_diversity": embedding,
            "seconds_update": update,
            "seconds_other": credit,
            "seconds": state.seconds,
            "total_tokens": state.tokens,
            "total_updates": state.updates,
        }

    def _batch(self, step: int) -> list[tuple[Problem, Ints]]:
        """The problems of a step: the training set in a new order each epoch, read on from step to step."""
        size, count = self.settings["prompts_per_step"], len(self.problems)
        chosen = []
        for position in range(step * size, (step + 1) * size):
            epoch, place = divmod(position, count)
            index = int(generator(self.seed, "order", epoch).permutation(count)[place])
            chosen.append((self.problems[index], self.prompts[index]))
        return chosen

    def _diversity(self, trees: Sequence[RolloutTree]) -> list[Floats]:
        if self.embed is None:
            return [np.zeros(len(tree.blocks)) for tree in trees]
        return sibling_diversity(trees, self.policy.decode, self.embed)


def check_keys(domain: str, problems: Sequence[Problem]) -> None:
    """Refuse answer keys the checker cannot parse before anything is trained.

    Raises:
        InputError: some keys are unreadable; the problems are named.
    """
    verdicts = grade_all(domain, [(problem, f"\\boxed{{{problem.answer}}}") for problem in problems])
    bad = [p.id for p, verdict in zip(problems, verdicts, strict=True) if verdict.verdict == "bad_key"]
    if bad:
        raise InputError(
            f"the checker cannot parse the answer keys of {len(bad)} training problems; drop them or mend their keys: "
            f"{', '.join(bad)}"
        )


def grader(domain: str, policy: Policy, stops: Sequence[str]) -> Grade:
    """Grades leaves on their whole response text, prefix and branch together, up to the first stop string."""

    def grade(leaves: Sequence[tuple[RolloutTree, int]]) -> list[tuple[float, str]]:
        texts = [cut_at_stop(policy.decode(tree.response(leaf)), stops) for tree, leaf in leaves]
        verdicts = grade_all(domain, [(tree.problem, text) for (tree, _), text in zip(leaves, texts, strict=True)])
        return [(verdict.reward, verdict.verdict) for verdict in verdicts]

    return grade


def tree_statistics(trees: Sequence[RolloutTree]) -> dict[str, float]:
    """What a step's trees look like; `reward` is that of the base rollouts, whatever was forked from them."""
    rewards = [tree.rewards_L for tree in trees]
    branches = [branch for tree in trees for branch in tree.branches]
    return {
        "reward": float(np.mean([r[list(tree.roots)].mean() for tree, r in zip(trees, rewards, strict=True)])),
        "leaf_reward": float(np.mean([r.mean() for r in rewards])),
        "solved": float(np.mean([r.max() > 0 for r in rewards])),
        "zero_signal": float(np.mean([r.min() == r.max() for r in rewards])),
        "leaves": float(np.mean([len(tree.branches) for tree in trees])),
        "tokens_per_question": float(np.mean([tree.generated_tokens for tree in trees])),
        "entropy": float(np.concatenate([branch.signals["entropy"] for branch in branches]).mean()),
        "response_length": float(np.mean([branch.stop for branch in branches])),
        "truncated": float(np.mean([branch.finish == "length" for branch in branches])),
        "no_answer": float(np.mean([branch.verdict == "no_answer" for branch in branches])),
    }


class _Stop:
    """Whether SIGTERM has asked the run to end."""

    requested = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        self.requested = True


def _stop_on_sigterm() -> _Stop:
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop)
    return stop
