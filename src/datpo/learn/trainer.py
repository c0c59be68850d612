"""Training: rollouts, credit, update, log, state; until the run's duration is spent."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import whole_folder
from datpo.core.problem import load_problems
from datpo.learn.log import TrainingLog
from datpo.learn.policy import load_policy, save_policy
from datpo.learn.run import Run
from datpo.learn.state import REACHED, RunState, forget_states, load_state, run_folder, save_state
from datpo.learn.stop import Stop
from datpo.progress import ProgressLines

IDLE_STEPS = 100  # so many steps without a single update are a run that will make none
STOPPED = 128 + signal.SIGTERM  # an exit code


def train(config: Path, problems: Path, validation: list[Path], model: Path, work: Path, out: Path, log: Path) -> None:
    """Train `model` on `problems` as the run's `config` says; publish checkpoint `out` and step log `log`.

    With `validate_every` the problems in the one file of `validation` are sampled at intervals and scores logged; the
    checkpoint that is published is the last one, whatever they say. Beside it, in folders of their names, stand those
    of the steps that first spend each unit of a duration of several, and each amount of `checkpoints`. Everything
    needed to go on lies below `work`. SIGTERM ends the run after the step under way, with a state on disk and exit code
    143, by which workflow/job.sh knows that Slurm may queue the job again.
    """
    settings = read_settings(config)
    held_out = [problem for file in validation for problem in load_problems(file)]
    if settings["train"]["validate_every"] and not held_out:
        raise InputError(f"{config}: train.validate_every needs problems to look at; give their file as --validation")
    run = Run(settings, load_problems(problems), load_policy(model), work / "trees", held_out)
    folder = run_folder(work, config, problems, model)
    with run.learner.accelerator.main_process_first():
        state = load_state(folder, run.policy.model, run.learner.optimizer)
    run.learner.accelerator.wait_for_everyone()  # from here on the first process writes to the folder
    stop = Stop.on_sigterm()
    if not run.processes.first:
        follow(run, state, stop)
        return
    if state.step == 0:
        shutil.rmtree(work / "trees", ignore_errors=True)  # of a run with other settings
    training_log = TrainingLog(folder, state.step)
    done = run.duration.fraction(state)
    bar = ProgressLines(run.name, 100.0, "%", 100 * done)
    for row, told_to_stop in steps(run, state, stop):
        for name in filter(run.duration.kept, row["reached"]):
            with whole_folder(folder / REACHED / name) as target:
                save_policy(run.policy, target)
        training_log.add(row)
        before, done = done, run.duration.fraction(state)
        bar.advance(100 * (done - before), note=f"reward {row['reward']:.2f}")
        if told_to_stop or state.step % run.settings["state_every"] == 0:
            save_state(folder, state, run.policy.model, run.learner.optimizer)
        if told_to_stop:
            run.learner.accelerator.wait_for_everyone()
            print(f"{run.name}: stopped by SIGTERM after step {state.step}; the next start goes on", file=sys.stderr)
            sys.exit(STOPPED)
    save_state(folder, state, run.policy.model, run.learner.optimizer)
    with whole_folder(out) as target:
        save_policy(run.policy, target)
        for checkpoint in sorted((folder / REACHED).glob("*")):
            shutil.copytree(checkpoint, target / checkpoint.name)
    training_log.publish(log)
    forget_states(folder, out)  # asked to train again (--forcerun), it does


def steps(run: Run, state: RunState, stop: Stop) -> Iterator[tuple[dict[str, Any], bool]]:
    """Train step by step until the duration is spent: each one's log row, and whether a process was told to stop.

    Raises:
        InputError: nothing is left to train, step after step.
    """
    updated = state.step
    while not run.duration.over(state):
        spent = run.duration.reached(state)
        row = run.step(state)
        updated = state.step if row["updates"] else updated
        if state.step - updated >= IDLE_STEPS:
            raise InputError(
                f"{run.name}: {IDLE_STEPS} steps without an update, as nothing was left to train of any of them; the "
                "problems are too hard or too easy for the model, or max_new_tokens too few for an answer"
            )
        row["reached"] = sorted(run.duration.reached(state) - spent)
        yield row, any(run.processes.each(stop.requested))


def follow(run: Run, state: RunState, stop: Stop) -> None:
    """What all but the first process of a training do: the same steps, and no files."""
    for _, told_to_stop in steps(run, state, stop):
        if told_to_stop:
            run.learner.accelerator.wait_for_everyone()  # an end before the state is written would end the others too
            sys.exit(STOPPED)
