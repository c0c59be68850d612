"""The paper's other tables, worked out by hand where they hold numbers.

`moves` (k = 4, two problems): right samples (of 4) of each by run and seed; avg@4 is their mean share. `random`: seeds
(0, 2) and (2, 2), so 25 and 50, mean 37.5, standard deviation 25/√2 = 17.7; its problems 25 and 50.
"""

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.report.studies.published import AVERAGE, READERS, load_published
from datpo.report.studies.table import study_table
from tests.unit.report.test_tables import md_row

PUBLISHED = Path(__file__).resolve().parents[3] / "config/published.yaml"
SECONDS = {"seconds_rollout": 3.0, "seconds_diversity": 0.5, "seconds_update": 2.0, "seconds_other": 0.5}
ROWS = {"random": ("datpo", "datpo_random"), "sent-entropy": ("datpo", "datpo"), "Base": ("base", "base")}


def numbers(value):
    """Every number of a piece of YAML, however deep."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [float(value)]


@pytest.fixture
def write(folder, tmp_path):
    """Writes the table of a study over what is in the folder, and says where its files are, by ending."""

    def write(rows=ROWS, metrics=None, logs=None, **changed):
        settings = {"study": "table3", "scale": "tiny", "models": ["small"], "benchmarks": ["moves"], "seeds": [0]}
        settings |= {"columns": ["avg", "pass"], "checkpoints": {}, "against": None}
        settings["rows"] = [
            {"label": label, "method": method, "run": run, "numbers": {}, "train": {}}
            for label, (method, run) in rows.items()
        ]
        settings |= changed
        study, out = tmp_path / "study.yaml", tmp_path / "out"
        study.write_text(yaml.safe_dump(settings, sort_keys=False))
        given = (folder.metrics if metrics is None else metrics, folder.logs if logs is None else logs)
        study_table(study, *given, PUBLISHED, out)
        return {ending: out / f"{settings['study']}.{ending}" for ending in ("csv", "md", "tex", "html")}

    return write


@pytest.fixture
def forks(folder):
    """Base and two rules on `moves`; `random` with two seeds if both are asked for."""
    folder.add_metrics([0, 2], method="base")
    for run, seed, correct in (("datpo_random", 0, [0, 2]), ("datpo_random", 1, [2, 2]), ("datpo", 0, [4, 4])):
        folder.add_metrics(correct, method="datpo", run=run, seed=seed)
        folder.add_log(method="datpo", run=run, seed=seed, steps=10 + 5 * seed, **SECONDS)
    return folder


def rows_of(path):
    return list(csv.DictReader(path.open()))


def test_rows_and_columns_are_the_settings(forks, write):
    out = write()
    found = rows_of(out["csv"])
    assert [(row["label"], row["column"], row["benchmark"]) for row in found] == [
        (label, column, "moves") for label in ROWS for column in ("avg", "pass")
    ]
    text = out["md"].read_text()
    assert md_row(text, "small", "random") == ["25.0 [0.0, 50.0]", "50.0 [0.0, 100.0]"]
    assert md_row(text, "small", "sent-entropy")[0] == "**100.0** [100.0, 100.0]"
    assert text.splitlines()[0] == "# Table 3: DATPO trained with each fork strategy, at scale tiny"
    assert md_row(text, "model", "run") == ["moves avg@4", "moves pass@4"]


def test_variants_are_held_against_the_run_they_vary_problem_by_problem(forks, write):
    """Of `random` the problems are 100 and 50 below: with both drawn alike the ends of an interval."""
    out = write(against="datpo")
    text = out["md"].read_text()
    assert "## Paired differences in points, with 95 % intervals" in text
    assert md_row(text, "small", "random − sent-entropy") == ["−75.0 [−100.0, −50.0]", "−50.0 [−100.0, 0.0]"]
    assert md_row(text, "small", "Base − sent-entropy")[0] == "−75.0 [−100.0, −50.0]"
    assert "sent-entropy − sent-entropy" not in text
    wanted = {"against": "sent-entropy", "ahead": "-75.0", "ahead_low": "-100.0", "ahead_high": "-50.0"}
    of = {(row["label"], row["column"]): row for row in rows_of(out["csv"])}
    assert {key: of["random", "avg"][key] for key in wanted} == wanted
    assert {of["sent-entropy", "avg"][key] for key in wanted} == {""}


def test_without_a_run_that_is_varied_nothing_is_held_against_another(forks, write):
    assert "differences in points" not in write()["md"].read_text()
    assert "differences in points" not in write(against="datpo", columns=["hours"], metrics=[])["md"].read_text()


def test_a_table_explains_the_marks_that_it_has(forks, write):
    """All problems of `sent-entropy` are surely above; without it `random` and Base are alike."""
    assert "\n- Bold: above every other run" in write()["md"].read_text()
    text = write({label: ROWS[label] for label in ("random", "Base")})["md"].read_text()
    assert "Bold" not in text
    assert "\n- No number is marked as the best" in text


def test_a_number_is_traced_to_its_files(forks, write):
    rows = {"random": ROWS["random"]}
    columns = ["tokens_per_question", "avg", "maj"]
    tokens, average, elected = rows_of(write(rows, seeds=[0, 1], columns=columns)["csv"])
    wanted = {"n": "4", "k": "4", "value": "37.5", "low": "25.0", "high": "50.0", "seed_sd": "17.6777", "mark": ""}
    assert {key: average[key] for key in wanted} == wanted
    folders = [forks.root / f"small/datpo/datpo_random/seed{seed}" for seed in (0, 1)]
    assert average["files"].split(" ") == [str(folder / "metrics/moves.json") for folder in folders]
    assert (average["paper"], average["difference"]) == ("", "")
    identity = {"study": "table3", "scale": "tiny", "model": "small", "method": "datpo", "run": "datpo_random"}
    assert {key: average[key] for key in identity} == identity
    # more than half of the samples are right in no problem of either seed
    assert (elected["column"], elected["value"]) == ("maj", "0.0")
    # 10 steps from 100 and 15 from 100, rising by 10: 145 and 170
    assert (tokens["value"], tokens["seed_sd"], tokens["low"], tokens["k"]) == ("157.5", "17.6777", "", "")
    assert tokens["files"].split(" ") == [str(folder / "metrics.jsonl") for folder in folders]


def test_columns_stand_in_their_order_and_several_benchmarks_have_an_average(forks, write):
    for method, run, seed in [(*pair, 0) for pair in ROWS.values()] + [("datpo", "datpo_random", 1)]:
        forks.add_metrics([2, 2], method=method, run=run, seed=seed, benchmark="hard", n=8, ks=(1, 8), table_k=8)
    out = write(benchmarks=["hard", "moves"], columns=["leaves", "avg", "pass", "hours"])
    found = [(row["benchmark"], row["column"]) for row in rows_of(out["csv"]) if row["label"] == "random"]
    scores = [(name, column) for name in ("hard", "moves", AVERAGE) for column in ("avg", "pass")]
    assert found == [("", "leaves"), *scores, ("", "hours")]
    of_random = {
        row["benchmark"]: row for row in rows_of(out["csv"]) if row["label"] == "random" and row["column"] == "avg"
    }
    assert [float(of_random[name]["value"]) for name in ("hard", "moves", AVERAGE)] == [25, 25, 25]
    assert (of_random[AVERAGE]["n"], of_random[AVERAGE]["k"]) == ("4 8", "")
    assert len(of_random[AVERAGE]["files"].split(" ")) == 2
    header = md_row(out["md"].read_text(), "model", "run")
    assert header[:5] == ["leaves per question", "hard avg@8", "hard pass@8", "moves avg@4", "moves pass@4"]
    assert header[5:] == ["Average avg@k", "Average pass@k", "hours"]
    assert md_row(out["md"].read_text(), "small", "Base")[0] == "–"


def test_a_table_of_times_needs_no_metrics(forks, write):
    rows = {"DATPO": ("datpo", "datpo_random")}
    columns = [*SECONDS, "seconds_step", "hours"]
    out = write(rows, metrics=[], study="table10", benchmarks=[], seeds=[0, 1], columns=columns)
    # 6 s a step, of 10 and 15 steps: 60 and 90 s, 75 s = 0.0208 h ± 21.2 s
    cells = md_row(out["md"].read_text(), "small", "DATPO")
    assert cells == [*("3.00 ± 0.00", "0.50 ± 0.00", "2.00 ± 0.00", "0.50 ± 0.00", "6.00 ± 0.00"), "0.021 ± 0.006"]
    assert {row["n"] for row in rows_of(out["csv"])} == {""}
    assert "Hours and seconds are wall time" in out["md"].read_text()
    assert "Values are percent" not in out["md"].read_text()


def test_notes_say_what_a_reader_has_to_know(forks, write):
    text = write()["md"].read_text()
    for told in (
        "Scale: tiny, which is not the paper's",
        "moves: 2 problems, n = 4 samples each, k = 4; temperature 1.0, max new tokens 64",
        "Here the paper shows MATH500. This table has others: moves, 2 questions of the domain fake, fingerprint",
        "Training seed: 0. A row of one seed",
        "small: generated tokens per question: random 145.0, sent-entropy 145.0.",
        "12.5 % of a run's samples",
    ):
        assert told in text, told
    assert "budgets are not equal" not in text


def test_uneven_budgets_are_told_by_the_names_of_the_rows(forks, write):
    forks.add_log(method="datpo", steps=15)
    text = write()["md"].read_text()
    assert "sent-entropy generated 50 % more tokens in training than random" in text


def test_a_label_is_text_in_every_language(forks, write):
    rows = {"<i>&_%|": ("datpo", "datpo")}
    out = write(rows)
    page = ElementTree.fromstring(out["html"].read_text().removeprefix("<!DOCTYPE html>"))
    assert [cell.text for cell in page.find(".//tbody/tr")][:2] == ["small", "<i>&_%|"]
    assert r"\textless{}i\textgreater{}\&\_\%\textbar{}" in out["tex"].read_text()
    assert r"\<i\>&\_%\|" in out["md"].read_text()
    assert rows_of(out["csv"])[0]["label"] == "<i>&_%|"


@pytest.mark.parametrize("study", READERS)
def test_every_number_of_the_paper_stands_beside_ours_at_its_scale(folder, write, study):
    places = list(load_published(PUBLISHED, study).values)
    columns = list(dict.fromkeys(place.column for place in places))
    benchmarks = list(dict.fromkeys(place.benchmark for place in places if place.benchmark not in (None, AVERAGE)))
    models, rows = list(dict.fromkeys(place.model for place in places)), {}
    for number, label in enumerate(dict.fromkeys(place.label for place in places)):
        method, run = rows[label] = ("base", "base") if label == "Base" else ("datpo", f"run{number}")
        for model in models:
            if method != "base":
                folder.add_log(model=model, method=method, run=run, steps=2, **SECONDS)
            for benchmark in benchmarks:
                folder.add_metrics([1, 3], model=model, method=method, run=run, benchmark=benchmark, scale="paper")
    out = write(rows, study=study, scale="paper", models=models, benchmarks=benchmarks, columns=columns)
    beside = [row for row in rows_of(out["csv"]) if row["paper"]]
    assert sorted(float(row["paper"]) for row in beside) == sorted(
        numbers(yaml.safe_load(PUBLISHED.read_text())[study])
    )
    for row in beside:
        assert float(row["difference"]) == pytest.approx(float(row["value"]) - float(row["paper"]), abs=1e-3)
    text = out["md"].read_text()
    assert text.count("; paper ") == len(beside)
    assert "no numbers for" not in text
    assert "This table has others" not in text


def test_the_paper_s_numbers_are_left_out_where_they_mean_something_else(folder, write):
    rows = {"DATPO": ("datpo", "datpo"), "mine": ("datpo", "mine")}
    for model in ("Qwen2.5-3B-Base", "Qwen3-4B-Base"):
        for run in ("datpo", "mine"):
            folder.add_log(model=model, method="datpo", run=run)
            for benchmark in ("MATH500", "moves"):
                folder.add_metrics([2, 2], model=model, method="datpo", run=run, benchmark=benchmark, scale="paper")
    models, benchmarks = ["Qwen2.5-3B-Base", "Qwen3-4B-Base"], ["MATH500", "moves"]
    out = write(rows, study="table12", scale="paper", models=models, benchmarks=benchmarks)
    beside = [
        (row["model"], row["label"], row["benchmark"], row["paper"]) for row in rows_of(out["csv"]) if row["paper"]
    ]
    assert beside == [("Qwen2.5-3B-Base", "DATPO", "MATH500", value) for value in ("63.5", "81.7")]
    text = out["md"].read_text()
    assert "It has no numbers for mine of Qwen2.5-3B-Base, DATPO of Qwen3-4B-Base, mine of Qwen3-4B-Base." in text
    assert "Its averages are over other benchmarks" in text
    assert "This table has others: moves" in text


def test_a_study_of_one_s_own_has_a_table_too(folder, write):
    folder.add_metrics([2, 2], method="datpo", scale="paper")
    folder.add_log(method="datpo")
    text = write({"mine": ("datpo", "datpo")}, study="table_mine", scale="paper")["md"].read_text()
    assert text.startswith("# table\\_mine, at scale paper\n")
    assert "Scale: paper, which has no such table." in text
    assert "Benchmarks: moves, 2 questions of the domain fake" in text


def test_no_number_of_the_paper_at_another_scale(folder, write):
    folder.add_metrics([2, 2], model="Qwen2.5-3B-Base", method="datpo", benchmark="MATH500")
    folder.add_log(model="Qwen2.5-3B-Base", method="datpo")
    rows = {"sent-entropy": ("datpo", "datpo")}
    out = write(rows, models=["Qwen2.5-3B-Base"], benchmarks=["MATH500"])
    assert {row["paper"] for row in rows_of(out["csv"])} == {""}
    assert "; paper" not in out["md"].read_text()


def test_the_best_is_the_best_of_the_rows(forks, write):
    # DATPO, above all others, is among the files and no row.
    forks.add_metrics([1, 1], method="grpo")
    forks.add_log()
    rows = {"Base": ("base", "base"), "GRPO": ("grpo", "grpo"), "random": ("datpo", "datpo_random")}
    found = rows_of(write(rows)["csv"])
    assert {row["label"] for row in found} == set(rows)
    assert {row["mark"] for row in found} == {""}


@pytest.mark.parametrize(
    ("missing", "told"),
    [("metrics", r"no metrics of small/datpo/datpo seed 0"), ("logs", r"no training log of small/datpo/datpo seed 0")],
)
def test_a_row_without_its_files_is_refused(forks, write, missing, told):
    given = {"metrics": forks.metrics, "logs": forks.logs}
    given[missing] = [path for path in given[missing] if "/datpo/datpo/" not in str(path)]
    with pytest.raises(InputError, match=told):
        write(**given)


def test_metrics_are_given_where_scores_are_shown_and_only_there(forks, write):
    with pytest.raises(InputError, match="'table3' needs metrics files and was given none"):
        write(metrics=[])
    with pytest.raises(InputError, match="'table10' shows no scores but was given metrics files"):
        write(study="table10", columns=["hours"])


def test_a_log_without_a_component_is_refused(folder, write):
    folder.add_log(method="datpo")
    with pytest.raises(InputError, match=r"metrics\.jsonl: no step has the key 'seconds_update'"):
        write({"DATPO": ("datpo", "datpo")}, study="table10", benchmarks=[], columns=["seconds_update"])


def test_the_same_inputs_give_the_same_bytes(forks, write):
    before = {ending: path.read_bytes() for ending, path in write().items()}
    assert {ending: path.read_bytes() for ending, path in write().items()} == before
