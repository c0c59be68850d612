"""The settings of a study, as the workflow writes them."""

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.report.runs import Run
from datpo.report.studies.study import load_study

ROWS = [
    {"label": "random", "run": "datpo_random", "method": "datpo", "numbers": {"roots": 1}, "train": {"seed": 0}},
    {"label": None, "run": "base", "method": "base", "numbers": {}, "train": {}},
]
SETTINGS = {
    "study": "table3",
    "scale": "tiny",
    "models": ["small"],
    "benchmarks": ["moves"],
    "seeds": [0, 1],
    "columns": ["avg", "seconds_step"],
    "checkpoints": {"tokens": [100, 200], "steps": [5]},
    "rows": ROWS,
    "against": None,
}


@pytest.fixture
def load(tmp_path):
    def load(**changed):
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump({**SETTINGS, **changed}, sort_keys=False))
        return load_study(path)

    return load


def test_a_study_is_read_as_it_is_written(load):
    study = load()
    assert (study.study, study.scale, study.models, study.benchmarks) == ("table3", "tiny", ("small",), ("moves",))
    assert (study.seeds, study.columns) == ((0, 1), ("avg", "seconds_step"))
    assert study.amounts == ["tokens-100", "tokens-200", "steps-5"]
    random, base = study.rows
    assert (random.label, random.of("small"), random.trained) == ("random", Run("small", "datpo", "datpo_random"), True)
    assert (random.numbers, random.train) == ({"roots": 1}, {"seed": 0})
    assert study.row(Run("small", "datpo", "datpo_random")) is random
    assert not base.trained
    assert study.against is None
    assert load(against="base").against == base


def test_a_row_without_a_label_is_called_as_in_the_main_table(load):
    rows = [ROWS[1], {**ROWS[0], "label": None, "run": "dr_grpo", "method": "dr_grpo"}]
    assert [row.label for row in load(rows=rows).rows] == ["Base", "Dr.GRPO"]


@pytest.mark.parametrize("run", [Run("small", "datpo", "datpo"), Run("large", "datpo", "datpo_random")])
def test_a_run_that_no_row_shows_is_refused(load, run):
    with pytest.raises(InputError, match="no row of the study 'table3' shows this run"):
        load().row(run)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"columns": ["avg", "fun"]}, "'columns' must be a list, each one of 'avg'"),
        ({"seeds": [-1]}, "'seeds' must be a list, each a whole number"),
        ({"checkpoints": {"tokens": [0]}}, "'checkpoints' must be"),
        ({"rows": []}, "at least one model and one row"),
        ({"models": []}, "at least one model and one row"),
        ({"rows": [{"label": "a", "run": "b", "method": "c", "numbers": {}}]}, "row 1: key 'train' is missing"),
        ({"rows": [ROWS[0], {**ROWS[0], "label": "other"}]}, "two rows have the run"),
        ({"rows": [ROWS[0], {**ROWS[1], "label": "random"}]}, "two rows have the label 'random'"),
    ],
)
def test_settings_that_say_nothing_or_too_much_are_refused(load, changed, told):
    with pytest.raises(InputError, match=told):
        load(**changed)
