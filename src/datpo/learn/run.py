"""A training run: the method, the policy and everything between them, step by step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs

from datpo.core.engine import EngineReport
from datpo.core.problem import Problem
from datpo.core.saved import SavedTree, save_trees
from datpo.core.seeds import generator
from datpo.core.tree import Floats, RolloutTree
from datpo.credit.diversity import block_diversity, branches_alone, embedded, siblings, tree_diversity
from datpo.learn.device import usable
from datpo.learn.duration import Duration
from datpo.learn.embed import embedder_of
from datpo.learn.grading import check_keys
from datpo.learn.minibatch import credited
from datpo.learn.policy import Policy
from datpo.learn.processes import Processes, SharedEngine
from datpo.learn.prompts import prompts_of
from datpo.learn.rollouts import rollouts_of
from datpo.learn.state import RunState
from datpo.learn.statistics import fork_statistics, level_statistics, tree_statistics
from datpo.learn.update import NO_CACHE, Learner, UpdateSettings
from datpo.learn.validation import Validation
from datpo.methods import Method, load
from datpo.search.budget import Progress
from datpo.search.rollout import Growing, under_way

PRECISIONS = {"float32": "no", "bfloat16": "bf16"}
PATIENCE = timedelta(hours=1)  # of processes that wait for one that still samples, or writes a state


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
        accelerator = Accelerator(
            mixed_precision=PRECISIONS[settings["precision"]],
            kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE)],
        )
        self.processes = Processes(accelerator)
        policy = policy.ending_at(config["prompt"].get("stop_tokens") or [])
        check_keys(config["domain"], self.problems)
        policy.model.to(usable(accelerator.device))
        if settings["activation_checkpointing"]:
            policy.recompute_layers()
        self.policy = policy
        self.learner = Learner(self.policy, optimizer_of(policy, settings), accelerator)
        self.update_settings = UpdateSettings(**{f.name: settings[f.name] for f in fields(UpdateSettings)})
        self.embed = embedder_of(settings) if self.method.groups else None
        self.prompts = prompts_of(self.problems, config["prompt"], policy.tokenizer, policy.context_window)
        self.validation = Validation(
            problems=validation,
            prompts=prompts_of(validation, config["prompt"], policy.tokenizer, policy.context_window),
            samples=settings["validation_samples"],
            max_new_tokens=settings["max_new_tokens"],
            stops=config["prompt"].get("stop") or [],
            domain=config["domain"],
            checker=settings["checker"],
        )
        self.rollouts = rollouts_of(policy, config, trains=True)

    def step(self, state: RunState) -> dict[str, Any]:
        """One rollout step and its update; counts it in `state` and returns the step's log row."""
        clock = [time.perf_counter()]
        trees, progress, generated = self._grow(state)
        clock.append(time.perf_counter())
        diversity, of_trees = self._diversity(trees)
        clock.append(time.perf_counter())
        if state.step + 1 in self.settings["save_trees"] and self.processes.first:
            self._save_trees(state.step + 1, trees, progress, diversity)
        end_tokens = self.settings["end_token"] == "trained"
        credits = [
            credited(self.method, tree, progress, div, end_tokens) for tree, div in zip(trees, diversity, strict=True)
        ]
        clock.append(time.perf_counter())
        report = self.learner.update(self.method, credits, self.update_settings, self.seed, state.step).summary()
        sampled = sum(self.processes.each(self.rollouts.engine.report()), EngineReport())
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
            **sampled.row(),
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
        with self._autocast():
            scores = self.validation.scores(SharedEngine(self.rollouts.engine, self.processes), self.policy)
        self.rollouts.engine.report()  # of rollouts that train nothing
        return scores

    def _autocast(self) -> AbstractContextManager[None]:
        """The update's precision while sampling; copies of all weights stay where every token is a forward pass."""
        return self.learner.accelerator.autocast(None if self.settings["engine"] == "hf" else NO_CACHE)

    def _grow(self, state: RunState) -> tuple[list[RolloutTree], Progress, int]:
        """The trees of a step, what the method could read of the run, and the tokens generated just now.

        Off policy, the base rollouts were sampled in the step before, and those of the next step are sampled here.
        Each process grows its own of the step's trees, from the prompt to the last fork.
        """
        waiting = sum(tree.generated_tokens for tree in state.planted)
        fraction = self.duration.fraction(state)
        mine, whole = self.processes.mine, self.processes.whole
        with self._autocast():  # as the update will: the ratio starts at 1
            if state.planted:
                planted = mine(under_way(state.planted, state.step))
            else:
                planted = self.rollouts.plant(self.method, mine(self._next_problems(state, state.step)), self.seed)
            state.statistics = self.method.remember(whole([growing.tree for growing in planted]), state.statistics)
            progress = Progress(state.step, fraction, state.statistics)
            following: list[Growing] = []
            if self.method.off_policy and not self.duration.over(replace(state, step=state.step + 1, planted=[])):
                following = mine(self._next_problems(state, state.step + 1))
            trees, following = self.rollouts.fork(self.method, planted, progress, self.seed, following)
        trees, state.planted = whole(trees), whole([growing.tree for growing in following])
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
        mine = self.processes.mine(trees)
        vectors = embedded(mine, self.policy.decode, self.embed, groups)
        at_forks = groups if groups is siblings else branches_alone  # the release compares first blocks too
        found = [
            (block_diversity(*pair, groups), tree_diversity(*pair, at_forks))
            for pair in zip(mine, vectors, strict=True)
        ]
        of_blocks, of_trees = zip(*self.processes.whole(found), strict=True)
        return list(of_blocks), list(of_trees)


def optimizer_of(policy: Policy, settings: Mapping[str, Any]) -> torch.optim.Optimizer:
    """AdamW over all parameters, with the numbers of `train:`."""
    return torch.optim.AdamW(
        policy.model.parameters(),
        lr=settings["learning_rate"],
        betas=tuple(settings["betas"]),
        weight_decay=settings["weight_decay"],
        # unfused it would make something as large as all weights for a moment
        fused=policy.device.type == "cuda",
    )


def chosen_problems(problems: Sequence[Problem], count: int | None) -> list[Problem]:
    """All training problems, or a fixed choice of `count` of them, the same for every seed and method."""
    if count is None or count >= len(problems):
        return list(problems)
    order = generator(0, "problems", len(problems)).permutation(len(problems))
    return [problems[i] for i in sorted(order[:count])]
