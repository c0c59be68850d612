"""What a training run must remember to go on as if it had never stopped.

All randomness comes from seeds that are functions of the step, so a state needs no random generators and no data
position: weights, optimiser moments, counters and a method's running statistics are everything.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from datpo.core.errors import InputError
from datpo.core.files import is_sealed, read_json, sealed_folder, whole_file, write_json
from datpo.core.saved import SavedTree, load_trees, save_trees
from datpo.core.spent import drop_spent
from datpo.core.tree import RolloutTree
from datpo.learn.policy import checkpoint_hash

PLANTED = "planted"  # base rollouts of the next step
REACHED = "reached"  # checkpoints of steps at which a duration was spent
LOG = "metrics.jsonl"  # of the steps so far, beside the states (learn.log) and, as it was then, in each of them
KEPT = 2  # states kept on disk: the newest, and one more should it turn out damaged


@dataclass
class RunState:
    """Where a run stands.

    Attributes:
        step, tokens, updates, seconds: rollout steps, generated tokens, optimiser updates and wall time so far.
        drawn: training problems drawn so far.
        prompts: problems to plant next; 0 for as many as configured.
        statistics: what the method remembers.
        planted: base rollouts of the next step, where they are sampled ahead.
    """

    step: int = 0
    tokens: int = 0
    updates: int = 0
    seconds: float = 0.0
    drawn: int = 0
    prompts: int = 0
    statistics: dict[str, float] = field(default_factory=dict)
    planted: list[RolloutTree] = field(default_factory=list)


def run_folder(work: Path, config: Path, problems: Path, model: Path) -> Path:
    """The folder for the states of exactly this run.

    Its name is a fingerprint of the settings, the problems and the base model, so a state is never continued under
    other settings or from another model.
    """
    digest = hashlib.sha256(config.read_bytes() + problems.read_bytes() + checkpoint_hash(model).encode())
    return work / digest.hexdigest()[:16]


def save_state(folder: Path, state: RunState, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write a state whole, then drop the ones before the last `KEPT`."""
    with sealed_folder(folder / f"state-{state.step:06d}") as target:
        save_file(_weights(model), target / "weights.safetensors")
        with open(target / "optimizer.pt", "wb") as moments:  # given a path, torch does not say why it cannot write
            torch.save(optimizer.state_dict(), moments)
        write_json(target / "state.json", {f.name: getattr(state, f.name) for f in fields(state) if f.name != PLANTED})
        save_trees(target / f"{PLANTED}.jsonl", [SavedTree(tree) for tree in state.planted])
        if (folder / LOG).exists():
            shutil.copyfile(folder / LOG, target / LOG)
    for old in [*_states(folder)[:-KEPT], *_unfinished(folder)]:
        shutil.rmtree(old)


def load_state(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> RunState:
    """Put the newest state into model and optimiser, and its log beside the states; a fresh state if there is none.

    A state that is not as it was written is passed over, aloud, for the one before it; it stays on disk until the run
    has got as far again and replaces it, since it may only be out of reach for the moment.

    Raises:
        InputError: the weights belong to a model of another shape.
    """
    for state in reversed(_states(folder)):
        if not is_sealed(state):
            print(f"{state}: cannot be read as it was written; going back to the state before it", file=sys.stderr)
            continue
        weights, own = load_file(state / "weights.safetensors"), _weights(model)
        if {name: tensor.shape for name, tensor in own.items()} != {name: t.shape for name, t in weights.items()}:
            raise InputError(f"{state}: this state belongs to another model; delete the folder to start again")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(weights[name])
        # by way of the CPU: a GPU has no room for the moments twice
        optimizer.load_state_dict(torch.load(state / "optimizer.pt", map_location="cpu", weights_only=True))
        _restore_log(state / LOG, folder / LOG)
        planted = [saved.tree for saved in load_trees(state / f"{PLANTED}.jsonl")]
        return RunState(**read_json(state / "state.json"), planted=planted)
    return RunState()


def forget_states(folder: Path, out: Path) -> None:
    """Drop what a run needs to go on, once all it was to give is published, its checkpoint as `out`."""
    drop_spent([*_states(folder), *_unfinished(folder), *folder.glob(REACHED)], out)


def _weights(model: torch.nn.Module) -> dict[str, Any]:
    """All parameters, a tied one once."""
    return {name: parameter.data for name, parameter in model.named_parameters()}


def _restore_log(kept: Path, log: Path) -> None:
    if kept.exists() and not (log.exists() and log.read_bytes() == kept.read_bytes()):
        with whole_file(log, "wb") as target:
            target.write(kept.read_bytes())


def _states(folder: Path) -> list[Path]:
    return sorted(folder.glob("state-*"))


def _unfinished(folder: Path) -> list[Path]:
    """What a killed job was writing; each holds as much as a state."""
    return list(folder.glob(".state-*.partial"))
