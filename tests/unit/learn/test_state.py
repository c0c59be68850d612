"""What a run goes on from: damaged anywhere it is passed over, and a full disk costs nothing that was there before."""

import builtins
import errno
import json
import os
import random
import shutil
from pathlib import Path

import pytest
import torch

from datpo.core.errors import InputError
from datpo.learn.log import TrainingLog
from datpo.learn.state import RunState, forget_states, load_state, save_state
from tests.trees import tree_a

ROWS = [{"step": step, "reward": step / 7, "seconds": 0.1 * step} for step in range(1, 5)]


def make_model():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(3)).sum().backward()
    return model, optimizer


def run_of_two_states(folder: Path) -> dict[int, tuple[RunState, torch.Tensor]]:
    """States after steps 2 and 4 with their log, as a training leaves them; what each holds."""
    model, optimizer = make_model()
    log, held = TrainingLog(folder, 0), {}
    for row in ROWS:
        optimizer.step()
        log.add(row)
        if row["step"] % 2 == 0:
            state = RunState(row["step"], tokens=10 * row["step"], planted=[tree_a(), tree_a()])
            save_state(folder, state, model, optimizer)
            held[row["step"]] = state, model.weight.detach().clone()
    log.events.close()
    return held


def loaded(folder: Path) -> tuple[RunState, torch.Tensor, TrainingLog]:
    model, optimizer = make_model()
    state = load_state(folder, model, optimizer)
    return state, model.weight.detach().clone(), TrainingLog(folder, state.step)


def damaged(raw: bytes, how: random.Random) -> bytes:
    """Cut, at a line's end if there is one, or with a bit turned: what a lost block or a bad disk makes of a file."""
    ends = [at + 1 for at, byte in enumerate(raw[:-1]) if byte == ord("\n")]
    at = how.randrange(len(raw))
    flipped = raw[:at] + bytes([raw[at] ^ (1 << how.randrange(8))]) + raw[at + 1 :]
    return how.choice([raw[:at], flipped, raw[: how.choice(ends)] if ends else b"", bytes(len(raw))])


FILES = ("weights.safetensors", "optimizer.pt", "state.json", "planted.jsonl", "metrics.jsonl", "SHA256SUMS")


@pytest.mark.parametrize("name", FILES)
def test_a_state_with_any_damage_is_passed_over_for_the_one_before(tmp_path, capsys, name):
    how = random.Random(name)
    held = run_of_two_states(tmp_path / "whole")
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        shutil.copytree(tmp_path / "whole", folder)
        file = folder / "state-000004" / name
        file.write_bytes(damaged(file.read_bytes(), how))
        state, weight, log = loaded(folder)
        assert state.step == 2
        assert state.tokens == held[2][0].tokens
        assert len(state.planted) == 2
        assert torch.equal(weight, held[2][1])
        assert log.rows == ROWS[:2]
        assert "state-000004: cannot be read as it was written" in capsys.readouterr().err


@pytest.mark.parametrize("gone", FILES)
def test_a_state_that_lacks_a_file_is_passed_over_too(tmp_path, gone):
    run_of_two_states(tmp_path)
    (tmp_path / "state-000004" / gone).unlink()
    assert loaded(tmp_path)[0].step == 2


def test_with_no_state_left_a_run_begins_again(tmp_path):
    run_of_two_states(tmp_path)
    for state in tmp_path.glob("state-*"):
        (state / "state.json").write_text("{}")
    state, _, log = loaded(tmp_path)
    assert (state.step, log.rows) == (0, [])


def test_whatever_happens_to_the_log_a_run_goes_on_with_that_of_its_state(tmp_path):
    how = random.Random(3)
    held = run_of_two_states(tmp_path / "whole")
    whole = (tmp_path / "whole/metrics.jsonl").read_bytes()
    for attempt, raw in enumerate([b"", *(damaged(whole, how) for _ in range(20))]):
        folder = tmp_path / str(attempt)
        shutil.copytree(tmp_path / "whole", folder)
        (folder / "metrics.jsonl").write_bytes(raw)
        state, weight, log = loaded(folder)
        assert state.step == 4
        assert torch.equal(weight, held[4][1])
        assert log.rows == ROWS
        log.publish(tmp_path / "out.jsonl")
        assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ROWS


def test_a_log_that_lacks_a_step_is_refused(tmp_path):
    log = TrainingLog(tmp_path, 0)
    for row in [ROWS[0], ROWS[2]]:
        log.add(row)
    with pytest.raises(InputError, match="lacks some of the 3 steps before the state"):
        TrainingLog(tmp_path, 3)


def test_a_full_disk_costs_neither_log_nor_states(tmp_path, monkeypatch):
    """A log with a cut line in it, as the full disk left it, is still there when opening it fails for want of space."""
    held = run_of_two_states(tmp_path)
    with open(tmp_path / "metrics.jsonl", "a") as log:
        log.write('{"step": 5, "rew')
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            TrainingLog(tmp_path, 4)
        model, optimizer = make_model()
        with pytest.raises(OSError, match="No space left"):
            save_state(tmp_path, RunState(6), model, optimizer)
        full.setattr(builtins, "open", refuses_to_write(open))
        with pytest.raises(OSError, match="No space left"):
            TrainingLog(tmp_path, 4)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    state, weight, log = loaded(tmp_path)
    assert (state.step, log.rows) == (4, ROWS)
    assert torch.equal(weight, held[4][1])


def no_space(handle):
    raise OSError(errno.ENOSPC, "No space left on device")


def refuses_to_write(real):
    def opened(file, mode="r", *args, **kwargs):
        if "r" not in mode:
            no_space(file)
        return real(file, mode, *args, **kwargs)

    return opened


def test_what_a_kill_leaves_half_written_goes_with_the_next_state_or_the_last(tmp_path):
    """It is as large as a state. A job that was told to stop writes one at a step that the next attempt will not."""
    run_of_two_states(tmp_path)
    for forget in (lambda: save_state(tmp_path, RunState(6), *make_model()), lambda: forget_states(tmp_path, tmp_path)):
        (tmp_path / ".state-000005.partial").mkdir()
        forget()
        assert not list(tmp_path.glob(".state-*"))
