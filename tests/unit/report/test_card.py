"""A run card says what a checkpoint is, and says it of one checkpoint."""

import json

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.report.card import run_card

DATA = {
    "set": "train", "source": {"hub": "a/b", "revision": "f" * 40}, "rows": 12, "set_aside": {"no key": 2},
    "problems": 10, "questions": "0123456789abcdefXYZ",
}  # fmt: skip
TRAINING = {
    "method": {"roots": 4, "alpha": [0.2, 0.0]},
    "train": {"duration": {"steps": 10}, "learning_rate": 1e-4},
    "model": {"source": {"hub": "x/y", "revision": "e" * 40}},
}


def card(folder, tmp_path, settings, data=DATA):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "train.card.json").write_text(json.dumps(data))
    out = tmp_path / "card.md"
    run_card(tmp_path / "config.yaml", folder.metrics, folder.logs, [tmp_path / "train.card.json"], out)
    return out.read_text()


def test_a_trained_checkpoint(folder, tmp_path):
    folder.add_metrics([1, 3], method="datpo", seed=2, checkpoint="abc123", versions={"torch": "2.13.0"})
    folder.add_log(method="datpo", seed=2, validation_avg=0.25)
    text = card(folder, tmp_path, TRAINING)
    assert text.startswith("# DATPO, small, seed 2\n")
    for told in (
        "abc123", "x/y", "e" * 40, "| alpha ", r"\[0.2, 0.0\]", r"learning\_rate", "0.0001",
        "10,000", "50.0 [25.0, 75.0] |      12.5 |", "100.0 [100.0, 100.0] |", "2.13.0", "a/b", '{"no key": 2}',
        "0123456789abcdef", "0.250 at step 9", "moves 1",
    ):  # fmt: skip
        assert told in text, told
    assert "0123456789abcdefX" not in text


def test_a_base_model_has_no_training(folder, tmp_path):
    folder.add_metrics([1, 3], method="base")
    text = card(folder, tmp_path, {"pretrain": {"steps": 700}, "prompt": {}})
    assert text.startswith("# Base, small, seed 0\n")
    assert '"steps": 700' in text
    assert "## Training" not in text


def test_a_card_is_about_one_checkpoint(folder, tmp_path):
    folder.add_metrics([1, 3], seed=0)
    folder.add_metrics([1, 3], seed=1)
    with pytest.raises(InputError, match="one checkpoint"):
        card(folder, tmp_path, TRAINING)


def test_metrics_of_two_checkpoints_of_one_run_are_refused(folder, tmp_path):
    for benchmark, checkpoint in (("moves", "aaa"), ("hard", "bbb")):
        folder.add_metrics([1, 3], benchmark=benchmark, checkpoint=checkpoint)
    folder.add_log()
    with pytest.raises(InputError, match=r"hard\.json: checkpoint is 'bbb', but .*moves\.json has 'aaa'"):
        card(folder, tmp_path, TRAINING)


def test_a_trained_run_has_a_log(folder, tmp_path):
    folder.add_metrics([1, 3])
    with pytest.raises(InputError, match="small/grpo/grpo seed 0: no training log given"):
        card(folder, tmp_path, TRAINING)
    folder.add_log()
    with pytest.raises(InputError, match="the settings of the training: 'method' must be a JSON object"):
        card(folder, tmp_path, {**TRAINING, "method": None})


def test_a_data_card_is_about_the_questions_that_were_scored(folder, tmp_path):
    folder.add_metrics([1, 3], method="base", questions="abc")
    base = {"pretrain": {"steps": 700}}
    card(folder, tmp_path, base, {**DATA, "set": "benchmarks/moves", "questions": "abc"})
    with pytest.raises(InputError, match=r"moves\.json: scored on other questions than .*train\.card\.json"):
        card(folder, tmp_path, base, {**DATA, "set": "benchmarks/moves", "questions": "def"})
    with pytest.raises(InputError, match=r"train\.card\.json: 'rows' must be"):
        card(folder, tmp_path, base, {**DATA, "rows": "12"})


def test_a_card_says_how_lost_samples_were_counted(folder, tmp_path):
    folder.add_metrics([1, 3], method="base", settings={"missing": "wrong"})
    (row,) = [line for line in card(folder, tmp_path, {"pretrain": {}}).splitlines() if "| moves 1 " in line]
    assert row.split("|")[-2].strip() == "wrong"
