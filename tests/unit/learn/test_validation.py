"""Looking at a validation split in training: what is logged, when, and that it changes nothing."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.core.problem import Problem
from datpo.core.seeds import seed
from datpo.engines.scripted import ScriptedEngine
from datpo.learn.validation import Validation
from tests.unit.learn.test_trainer import Job, settings

BOX = ["\\boxed{", "+2", "}", "+4", ""]  # the last ends a response


class Spelled:
    context_window = 12

    def decode(self, tokens):
        return "".join(BOX[token] for token in tokens)


def scored(p_right, samples=16, limit=8, window=12, stops=()):
    """Answers +2 with probability p_right, else +4."""
    problem = Problem("p", "Start at 1. Reach 3 with 1 of: +2 +4.", "+2")
    steps = np.zeros((5, 5))
    steps[2, 4], steps[1, 2], steps[3, 2], steps[0, 1], steps[0, 3], steps[4, 0] = 1, 1, 1, p_right, 1 - p_right, 1
    validation = Validation([problem], [np.array([4])], samples, limit, stops, "moves", "own")
    policy = Spelled()
    policy.context_window = window
    engine = ScriptedEngine(steps, end=4)
    return validation.scores(engine, policy), engine


def test_scores_by_hand():
    assert scored(1.0)[0] == {"validation_avg": 1, "validation_pass": 1, "validation_truncated": 0}
    assert scored(0.0)[0] == {"validation_avg": 0, "validation_pass": 0, "validation_truncated": 0}
    half, engine = scored(0.5)
    assert 0 < half["validation_avg"] < 1
    assert half["validation_pass"] == 1
    assert [request.seed for request in engine.batches[0]] == [seed(0, "validation", "p", i) for i in range(16)]


def test_a_response_cut_off_is_wrong():
    # three tokens close the box, the end token does not fit
    assert scored(1.0, limit=3)[0] == {"validation_avg": 0, "validation_pass": 0, "validation_truncated": 1}
    # but one with a stop string would have ended there, here before the box is closed
    assert scored(1.0, limit=3, stops=["}"])[0] == {**scored(1.0, limit=3)[0], "validation_truncated": 0}
    assert scored(1.0, window=4)[1].batches[0][0].max_new_tokens == 3  # a context window of 4 and a prompt of 1


def test_it_is_due_at_intervals_and_at_the_end_and_changes_nothing(tmp_path, base_checkpoint, easy_problems):
    weights = []
    for every in (None, 2):
        job = Job(
            tmp_path / str(every), settings("grpo", {"steps": 5}, validate_every=every), easy_problems, base_checkpoint
        )
        job.options["validation"] = [easy_problems]
        job.run()
        weights.append(load_file(job.options["out"] / "model.safetensors"))
        looked = [row["step"] for row in read_jsonl(job.options["log"]) if "validation_avg" in row]
        assert looked == ([2, 4, 5] if every else [])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_without_problems_there_is_nothing_to_look_at(tmp_path, base_checkpoint, easy_problems):
    job = Job(tmp_path, settings("grpo", {"steps": 5}, validate_every=2), easy_problems, base_checkpoint)
    with pytest.raises(InputError, match="validate_every needs problems"):
        job.run()
