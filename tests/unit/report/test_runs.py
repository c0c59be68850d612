"""Inputs that cannot stand in one report are refused by name."""

import json

import pytest

from datpo.core.errors import InputError
from datpo.report.documents import read_metrics


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["header"].update(n=8), "n is 4, and 8 in its header"),
        (lambda d: d["header"].update(scale="ci"), "scale is 'ci'"),
        (lambda d: d["header"].update(temperature=0.6), "temperature is 0.6"),
        (lambda d: d["header"].update(checker="moves 2"), "checker is 'moves 2'"),
        (lambda d: d["header"]["prompt"].update(template="chat"), "prompt is {'template': 'chat'.*, but"),
        (lambda d: d["header"].pop("seed"), "key 'seed' is missing"),
        (lambda d: d["header"].update(table_k=2), "k = 2 for the table"),
        (lambda d: d["per_problem"][0].update(problem="q"), "other problems than"),
        (lambda d: d["per_problem"][0].update(correct=4), "its avg is not the mean of its per_problem rows"),
        (lambda d: d.update(per_problem=[]), "0 rows of per_problem"),
        (lambda d: d["header"].update(questions="f" * 64), "questions is 'ffff"),
        (lambda d: d["header"].update(keys_sha256="f" * 64), "keys_sha256 is 'ffff"),
        (lambda d: d["header"].update(domain="math"), "domain is 'math', but .* has 'fake'"),
        (lambda d: d["header"].update(sampling_seed=1), "sampling_seed is 1, but .* has 0"),
        (lambda d: d["header"].update(engine="vllm"), "engine is 'vllm'"),
        (lambda d: d["header"].update(precision="bfloat16"), "precision is 'bfloat16'"),
        (lambda d: d["header"].update(checkpoint="other"), "checkpoint is '.*', but"),
        (lambda d: d["settings"].update(missing="wrong"), "metrics setting 'missing' is 'wrong', but .* has 'exclude'"),
        (lambda d: d["settings"].update(bootstrap=50), "metrics setting 'bootstrap' is 50, but .* has 2000"),
        (lambda d: d["settings"].update(seed=3), "metrics setting 'seed' is 3"),
        (lambda d: (d["settings"].update(runs=2), d["runs"].update(count=2)), "metrics setting 'runs' is 2, but"),
        (lambda d: d["header"].update(seed=0), "same checkpoint and benchmark as"),
    ],
)
def test_metrics_that_cannot_stand_in_one_table_are_named(golden, make, change, message):
    path = next(p for p in golden.metrics if "seed1/metrics/moves.json" in str(p))
    edit(path, change)
    with pytest.raises(InputError, match=message) as error:
        make(golden)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("rates"), "key 'rates' is missing"),
        (lambda d: d["rates"].update(truncated="x"), "rates: 'truncated' must be a number from 0 to 1"),
        (lambda d: d["avg"].update(value="x"), "avg: 'value' must be"),
        (lambda d: d["avg"].update(value=float("nan")), "avg: 'value' must be"),
        (lambda d: d.update(avg=0.5), "'avg' must be a JSON object"),
        (lambda d: d["pass"].update(x={}), "pass@x: key 'value' is missing"),
        (lambda d: d["pass"].update({"9": d["pass"]["4"]}), "pass has k = 1, 2, 4, 9, its settings ask for 1, 2, 4"),
        (lambda d: d["pass"].pop("4"), "pass has k = 1, 2, its settings ask for 1, 2, 4"),
        (lambda d: d["pass"]["2"].update(value=0.99), "its pass@2 is not the mean of its per_problem rows"),
        (lambda d: d["maj"]["2"].update(value=0.99), "its maj@2 is not the mean"),
        (lambda d: d["header"].update(seed="x"), "'seed' must be a whole number"),
        (lambda d: d["header"].update(table_k="x"), "'table_k' must be a whole number"),
        (lambda d: d["header"].update(problems=99), "problems is 2, and 99 in its header"),
        (lambda d: d.update(n=99), "n is 99, and 4 in its header"),
        (lambda d: d["settings"].update(bootstrap=True), "settings: 'bootstrap' must be"),
        (lambda d: d["runs"].update(count=2), "2 evaluation runs"),
        (lambda d: d["runs"].update(avg=[0.1, 0.2]), "1 evaluation runs and lists of .2. means"),
        (lambda d: d["per_problem"].append(d["per_problem"][0]), "3 rows of per_problem, but problems is 2"),
        (lambda d: d["per_problem"].__setitem__(1, d["per_problem"][0]), "'p0' stands twice"),
        (lambda d: d["per_problem"][0].update(correct="1"), "row 1 of per_problem: 'correct' must be a whole number"),
        (lambda d: d["per_problem"][0].update(correct=9), "problem 'p0': 9 right of 4"),
        (lambda d: d["per_problem"][0].update(n=8), "problem 'p0': 2 right of 8"),
        (lambda d: d["per_problem"][0].update(n=3), "pass@4 cannot be estimated for problem 'p0'"),
        (lambda d: d["per_problem"][0]["maj"].update({"2": 7}), "row 1 of per_problem: 'maj' must be"),
        (lambda d: d["per_problem"][0]["maj"].pop("2"), "problem 'p0'"),
        (lambda d: d.update(per_problem=[[]]), "'per_problem' must be a list, each a JSON object"),
        (lambda d: d.update(header=[]), "'header' must be a JSON object"),
    ],
)
def test_metrics_that_were_altered_are_refused(golden, change, message):
    path = next(p for p in golden.metrics if "seed1/metrics/moves.json" in str(p))
    edit(path, change)
    with pytest.raises(InputError, match=message) as error:
        read_metrics(path)
    assert str(path) in str(error.value)


def test_a_document_is_an_object(tmp_path):
    (tmp_path / "m.json").write_text("[1]")
    with pytest.raises(InputError, match=r"m\.json: must be a JSON object"):
        read_metrics(tmp_path / "m.json")


def test_samples_of_other_versions_stand_in_one_table_and_it_says_so(folder, make):
    folder.add_metrics([1, 3], method="base", versions={"torch": "2.1"})
    assert "different versions" not in (make(folder) / "table2.md").read_text()
    folder.add_metrics([1, 3], versions={"torch": "2.2"})
    folder.add_log()
    text = (make(folder) / "table2.md").read_text()
    assert "torch 2.1 for small/base/base seed 0 on moves; torch 2.2 for small/grpo/grpo seed 0 on moves" in text


def test_each_model_may_be_asked_in_its_own_way_and_the_table_says_so(folder, make):
    for model, template in (("base", "plain"), ("instruct", "chat")):
        folder.add_metrics([1, 3], model=model, prompt={"template": template, "format": "{problem}", "stop": []})
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
