"""Inputs that cannot stand in one report are refused by name."""

import json

import pytest

from datpo.core.errors import InputError


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["header"].update(n=8), r"n is 8, but .* has 4"),
        (lambda d: d["header"].update(scale="ci"), "scale is 'ci'"),
        (lambda d: d["header"].update(temperature=0.6), "temperature is 0.6"),
        (lambda d: d["header"].update(checker="moves 2"), "checker is 'moves 2'"),
        (lambda d: d["header"].update(prompt="chat"), "prompt is 'chat', but"),
        (lambda d: d["header"].pop("seed"), "key 'seed' is missing"),
        (lambda d: d["pass"].pop("4"), r"no pass@4 \(it has k = 1, 2\)"),
        (lambda d: d["header"].update(table_k=2), "k = 2 for the table"),
        (lambda d: d["per_problem"][0].update(problem="q"), "other problems than"),
        (lambda d: d["per_problem"][0].update(correct=4), "its avg is not the mean of its per_problem rows"),
        (lambda d: d.update(per_problem=[]), "no problems"),
        (lambda d: d["header"].update(seed=0), "same checkpoint and benchmark as"),
    ],
)
def test_metrics_that_cannot_stand_in_one_table_are_named(golden, make, change, message):
    path = next(p for p in golden.metrics if "seed1/metrics/moves.json" in str(p))
    edit(path, change)
    with pytest.raises(InputError, match=message) as error:
        make(golden)
    assert str(path) in str(error.value)


def test_each_model_may_be_asked_in_its_own_way_and_the_table_says_so(folder, make):
    for model, template in (("base", "plain"), ("instruct", "chat")):
        folder.add_metrics([1, 3], model=model, prompt={"template": template, "format": "{problem}"})
        folder.add_log(model=model)
    text = (make(folder) / "table2.md").read_text()
    assert "checker moves 1, base: plain prompt '{problem}', instruct: chat prompt '{problem}'" in text


def test_a_run_without_a_benchmark_is_named(golden, make):
    golden.metrics = [p for p in golden.metrics if "grpo/grpo/seed1/metrics/moves_hard" not in str(p)]
    with pytest.raises(InputError, match="small/grpo/grpo seed 1: no metrics for benchmark 'moves_hard'"):
        make(golden)


def test_no_metrics_at_all(folder, make):
    with pytest.raises(InputError, match="no metrics files"):
        make(folder)


def test_a_missing_log_is_named(golden, make):
    golden.logs.pop()
    with pytest.raises(InputError, match="small/grpo/grpo seed 1: no training log"):
        make(golden)


def test_a_log_without_metrics_is_named(golden, make):
    golden.add_log(method="datpo")
    with pytest.raises(InputError, match="small/datpo/datpo seed 0 has a training log but no metrics"):
        make(golden)


def test_a_log_with_a_missing_column_is_named(golden, make):
    path = golden.logs[0]
    path.write_text(path.read_text().replace('"entropy"', '"entropie"'))
    with pytest.raises(InputError, match="no step has the key 'entropy'"):
        make(golden)


def test_a_log_written_by_two_jobs_is_refused(golden, make):
    path = golden.logs[0]
    path.write_text(path.read_text() * 2)
    with pytest.raises(InputError, match="not in ascending order"):
        make(golden)


def test_the_base_models_own_log_is_passed_over(golden, make):
    path = golden.root / "small" / "base" / "base" / "seed0" / "metrics.jsonl"
    path.write_text('{"step": 0, "loss": 1.0}\n')
    golden.logs.append(path)
    make(golden)


@pytest.mark.parametrize("text", ["", "table1: {}", "table2: {benchmarks: [A], M: {Base: [[1, 2], [3, 4]]}}"])
def test_published_numbers_of_another_shape_are_refused(golden, make, text):
    golden.published.write_text(text)
    with pytest.raises(InputError, match=r"published\.yaml: section 'table2'"):
        make(golden)
