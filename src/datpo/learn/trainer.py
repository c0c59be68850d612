"""Training: rollouts, credit, update, log, state; until the run's duration is spent."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import whole_folder
from datpo.core.problem import Problem, load_problems
from datpo.core.saved import SavedTree, save_trees
from datpo.core.seeds import generator
from datpo.core.tree import Branch, Floats, RolloutTree
from datpo.credit.diversity import Embed, block_diversity, branches_alone, embedded, siblings, tree_diversity
from datpo.engines.hf import HFEngine
from datpo.learn.duration import Duration
from datpo.learn.embed import embedder
from datpo.learn.grading import check_keys, grader
from datpo.learn.influence import step_influence, token_influence
from datpo.learn.log import TrainingLog
from datpo.learn.minibatch import credited
from datpo.learn.policy import Policy, load_policy, save_policy
from datpo.learn.prompts import prompts_of
from datpo.learn.state import REACHED, RunState, forget_states, load_state, run_folder, save_state
from datpo.learn.statistics import fork_statistics, level_statistics, tree_statistics
from datpo.learn.stop import Stop
from datpo.learn.update import Learner, UpdateSettings
from datpo.learn.validation import Validation
from datpo.methods import Method, load
from datpo.progress import ProgressLines
from datpo.search.budget import Progress
from datpo.search.rollout import Growing, Leaf, Rollouts, Signal, under_way
from datpo.search.signals import closing, sentence_numbers, step_numbers

IDLE_STEPS = 100  # so many steps without a single update are a run that will make none
PRECISIONS = {"float32": "no", "bfloat16": "bf16"}


def train(config: Path, problems: Path, validation: list[Path], model: Path, work: Path, out: Path, log: Path) -> None:
    """Train `model` on `problems` as the run's `config` says; publish checkpoint `out` and step log `log`.

    With `validate_every` the problems in the one file of `validation` are sampled at intervals and scores logged; the
    checkpoint that is published is the last one, whatever they say. Beside it, in folders of their names, stand those
    of the steps that first spend each unit of a duration of several, and each amount of `checkpoints`. Everything
    needed to go on lies below `work`. SIGTERM ends the run after the step under way, with a state on disk and exit code
    143, so that the workflow's retry continues it.
    """
    settings = read_settings(config)
    held_out = [problem for file in validation for problem in load_problems(file)]
    if settings["train"]["validate_every"] and not held_out:
        raise InputError(f"{config}: train.validate_every needs problems to look at; give their file as --validation")
    run = Run(settings, load_problems(problems), load_policy(model), work / "trees", held_out)
    folder = run_folder(work, config, problems, model)
    state = load_state(folder, run.policy.model, run.learner.optimizer)
    if state.step == 0:
        shutil.rmtree(work / "trees", ignore_errors=True)  # of a run with other settings
    training_log = TrainingLog(folder, state.step)
    stop = Stop.on_sigterm()
    bar = ProgressLines(run.name, 100.0, "%", 100 * run.duration.fraction(state))
    updated = state.step
    while not run.duration.over(state):
        before, spent = run.duration.fraction(state), run.duration.reached(state)
        row = run.step(state)
        updated = state.step if row["updates"] else updated
        if state.step - updated >= IDLE_STEPS:
            raise InputError(
                f"{run.name}: {IDLE_STEPS} steps without an update, as nothing was left to train of any of them; the "
                "problems are too hard or too easy for the model, or max_new_tokens too few for an answer"
            )
        row["reached"] = sorted(run.duration.reached(state) - spent)
        for name in filter(run.duration.kept, row["reached"]):
            with whole_folder(folder / REACHED / name) as target:
                save_policy(run.policy, target)
        training_log.add(row)
        bar.advance(100 * (run.duration.fraction(state) - before), note=f"reward {row['reward']:.2f}")
        if stop.requested or state.step % run.settings["state_every"] == 0:
            save_state(folder, state, run.policy.model, run.learner.optimizer)
        if stop.requested:
            print(f"{run.name}: stopped by SIGTERM after step {state.step}; the next start goes on", file=sys.stderr)
            sys.exit(143)
    save_state(folder, state, run.policy.model, run.learner.optimizer)
    with whole_folder(out) as target:
        save_policy(run.policy, target)
        for checkpoint in sorted((folder / REACHED).glob("*")):
            shutil.copytree(checkpoint, target / checkpoint.name)
    training_log.publish(log)
    forget_states(folder)  # asked to train again (--forcerun), it does


class Run:
    """A training run: the method, the policy and everything between them."""

    def __init__(
        self,
        config: dict[str, Any],
        problems: Sequence[Problem],
        policy: Policy,
        trees: Path,
        validation: Sequence[Problem] = (),
    ) -> None:
        """Chosen steps' rollout trees are written to the folder `trees`."""
        identity, settings = config["identity"], config["train"]
        self.name = f"train {identity['model']} {identity['run']} seed {identity['seed']}"
        self.settings, self.trees = settings, trees
        self.seed = int(identity["seed"])
        self.method: Method = load(identity["method"], config["method"])
        self.problems = chosen_problems(problems, settings["problems"])
        amounts = {unit: float(amount) for unit, amount in settings["duration"].items()}
        self.duration = Duration(amounts, len(self.problems), settings["checkpoints"])
        accelerator = Accelerator(mixed_precision=PRECISIONS[settings["precision"]])
        optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=settings["learning_rate"],
            betas=tuple(settings["betas"]),
            weight_decay=settings["weight_decay"],
        )
        policy = policy.ending_at(config["prompt"].get("stop_tokens") or [])
        check_keys(config["domain"], self.problems)
        model, optimizer = accelerator.prepare(policy.model, optimizer)
        self.policy = replace(policy, model=model)
        self.learner = Learner(self.policy, optimizer, accelerator)
        self.update_settings = UpdateSettings(**{f.name: settings[f.name] for f in fields(UpdateSettings)})
        self.embed: Embed | None = None
        if self.method.groups is not None:
            keys = ("embedder", "embedder_revision", "embedder_remote_code", "embedder_code_revision")
            self.embed = embedder(*(settings.get(key) for key in keys))
        self.prompts = prompts_of(self.problems, config["prompt"], policy.tokenizer, policy.context_window)
        stops = config["prompt"].get("stop") or []
        self.validation = Validation(
            problems=validation,
            prompts=prompts_of(validation, config["prompt"], policy.tokenizer, policy.context_window),
            samples=settings["validation_samples"],
            max_new_tokens=settings["max_new_tokens"],
            stops=stops,
            domain=config["domain"],
            checker=settings["checker"],
        )
        self.rollouts = Rollouts(
            engine=HFEngine(self.policy, settings["generation_batch"], settings["temperature"]),
            grade=grader(
                config["domain"],
                self.policy,
                stops,
                settings["graded_text"],
                settings["truncated"],
                settings["checker"],
            ),
            signals=signals_of(self.policy),
            max_new_tokens=settings["max_new_tokens"],
            limit=settings["length_limit"],
            context_window=self.policy.context_window,
        )

    def step(self, state: RunState) -> dict[str, Any]:
        """One rollout step and its update; counts it in `state` and returns the step's log row."""
        clock = [time.perf_counter()]
        trees, progress, generated = self._grow(state)
        clock.append(time.perf_counter())
        diversity, of_trees = self._diversity(trees)
        clock.append(time.perf_counter())
        if state.step + 1 in self.settings["save_trees"]:
            self._save_trees(state.step + 1, trees, progress, diversity)
        end_tokens = self.settings["end_token"] == "trained"
        credits = [
            credited(self.method, tree, progress, div, end_tokens) for tree, div in zip(trees, diversity, strict=True)
        ]
        clock.append(time.perf_counter())
        report = self.learner.update(self.method, credits, self.update_settings, self.seed, state.step).summary()
        clock.append(time.perf_counter())
        rollout, embedding, credit, update = np.diff(clock).tolist()
        state.step += 1
        state.tokens += generated
        state.updates += report["updates"]
        state.seconds += clock[-1] - clock[0]
        usual = self.settings["prompts_per_step"]
        state.prompts = self.method.prompts(trees, state.prompts or usual, usual)
        return {
            "step": state.step,
            **self._validated(state),
            **tree_statistics(trees),
            "levels": level_statistics(trees),
            **fork_statistics(trees, credits, of_trees),
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

    def _validated(self, state: RunState) -> Mapping[str, Any]:
        """Scores on the validation split where they are due, at the end in any case; its time is no training time."""
        every = self.settings["validate_every"]
        if every is None or (state.step % every and not self.duration.over(state)):
            return {}
        with self.learner.accelerator.autocast():
            return self.validation.scores(self.rollouts.engine, self.policy)

    def _grow(self, state: RunState) -> tuple[list[RolloutTree], Progress, int]:
        """The trees of a step, what the method could read of the run, and the tokens generated just now.

        Off policy, the base rollouts were sampled in the step before, and those of the next step are sampled here.
        """
        waiting = sum(tree.generated_tokens for tree in state.planted)
        fraction = self.duration.fraction(state)
        with self.learner.accelerator.autocast():  # as the update will: the ratio starts at 1
            planted = under_way(state.planted, state.step)
            if not planted:
                planted = self.rollouts.plant(self.method, self._next_problems(state, state.step), self.seed)
            state.statistics = self.method.remember([growing.tree for growing in planted], state.statistics)
            progress = Progress(state.step, fraction, state.statistics)
            following: list[Growing] = []
            if self.method.off_policy and not self.duration.over(replace(state, step=state.step + 1, planted=[])):
                following = self._next_problems(state, state.step + 1)
            trees, following = self.rollouts.fork(self.method, planted, progress, self.seed, following)
        state.planted = [growing.tree for growing in following]
        return trees, progress, sum(tree.generated_tokens for tree in [*trees, *state.planted]) - waiting

    def _next_problems(self, state: RunState, step: int) -> list[Growing]:
        """Seedlings for the next problems: the training set in a new order each epoch, read on from step to step."""
        chosen = []
        for position in range(state.drawn, state.drawn + (state.prompts or self.settings["prompts_per_step"])):
            epoch, place = divmod(position, len(self.problems))
            index = int(generator(self.seed, "order", epoch).permutation(len(self.problems))[place])
            chosen.append(RolloutTree(self.problems[index], self.prompts[index]))
        state.drawn += len(chosen)
        return under_way(chosen, step)

    def _save_trees(
        self, step: int, trees: Sequence[RolloutTree], progress: Progress, diversity: Sequence[Floats]
    ) -> None:
        """Write a step's trees for people to look at, with what their blocks say."""
        saved = []
        for tree, div in zip(trees, diversity, strict=True):
            texts = tuple(self.policy.decode(tree.block_tokens(block)) for block in tree.blocks)
            saved.append(SavedTree(tree, progress.step, progress.fraction, texts, div))
        save_trees(self.trees / f"step-{step:06d}.jsonl", saved)

    def _diversity(self, trees: Sequence[RolloutTree]) -> tuple[list[Floats], list[float]]:
        """Diversity of the blocks of each tree, and of each tree; zeros and nothing if the method reads none."""
        groups = self.method.groups
        if self.embed is None or groups is None:
            return [np.zeros(len(tree.blocks)) for tree in trees], []
        vectors = embedded(trees, self.policy.decode, self.embed, groups)
        both = list(zip(trees, vectors, strict=True))
        at_forks = groups if groups is siblings else branches_alone  # the release compares first blocks too
        return [block_diversity(*pair, groups) for pair in both], [tree_diversity(*pair, at_forks) for pair in both]


def chosen_problems(problems: Sequence[Problem], count: int | None) -> list[Problem]:
    """All training problems, or a fixed choice of `count` of them, the same for every seed and method."""
    if count is None or count >= len(problems):
        return list(problems)
    order = generator(0, "problems", len(problems)).permutation(len(problems))
    return [problems[i] for i in sorted(order[:count])]


def signals_of(policy: Policy) -> Mapping[str, Signal]:
    """Every per-token signal that a fork rule may ask for."""

    def from_text(signal: Callable[[Branch, Callable[[Sequence[int]], str]], Floats]) -> Signal:
        def of(leaves: Sequence[Leaf]) -> list[Floats]:
            return [signal(tree.branches[b], policy.decode) for tree, b in leaves]

        return of

    return {
        "sentence": from_text(sentence_numbers),
        "step": from_text(step_numbers),
        "closing": from_text(closing),
        "influence": partial(step_influence, policy),
        "token_influence": partial(token_influence, policy),
    }
