"""Numbers of tables, worked out by hand and as the verbs write them, traced to raw files.

`moves` has n = 4 samples of each of two problems. With c = 1 and 2 right: avg 25 and 50, mean 37.5; pass@2 is
1 - C(3,2)/C(4,2) = 1/2 and 1 - C(2,2)/C(4,2) = 5/6, mean 66.6667. Of two problems a bootstrap draws the same one twice
in a quarter of all draws each, so the ends of an interval are the two values.
"""

import csv
import hashlib
import json
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
import yaml

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.evaluate.metrics import metrics_file
from datpo.report.recount.scores import elected, passed
from datpo.report.recount.trace import trace
from tests.unit.evaluate.files import write_counted, write_lines, write_problems, write_samples, write_scores
from tests.unit.report.conftest import log_row

PUBLISHED = Path(__file__).resolve().parents[3] / "config/published.yaml"
RIGHT, WRONG = "right", "wrong"
STUDY = "study,model,method,run,label,benchmark,column,n,k,value,low,high,seed_sd,files"
SECONDS = {"seconds_rollout": 3.0, "seconds_diversity": 0.5, "seconds_update": 2.0, "seconds_other": 0.5}


class Results:
    """A results folder with raw files, below which tables stand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scale = root / "results/tiny"
        self.metrics: list[Path] = []
        self.logs: list[Path] = []

    def add(self, verdicts, *, run="datpo", method="datpo", seed=0, benchmark="moves", k=(1, 2, 4), **counted):
        """Samples, scores and metrics of one checkpoint: `verdicts` by problem p0, p1, ..."""
        at = self.scale / f"small/{method}/{run}/seed{seed}"
        header = {"model": "small", "method": method, "run": run, "seed": seed, "benchmark": benchmark}
        named = {f"p{index}": group for index, group in enumerate(verdicts)}
        texts = {id_: [None if verdict == "missing" else f"{id_} {i}" for i, verdict in enumerate(group)]
                 for id_, group in named.items()}  # fmt: skip
        paths = {kind: at / kind / f"{benchmark}.jsonl" for kind in ("samples", "scores")}
        for path in paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        write_samples(paths["samples"], texts, **header)
        sha256 = hashlib.sha256(paths["samples"].read_bytes()).hexdigest()
        write_scores(paths["scores"], named, **header, samples_sha256=sha256)
        problems = write_problems(self.root / f"{benchmark}.problems", dict.fromkeys(named, "0"))
        config = write_counted(self.root / "metrics.yaml", k=list(k), bootstrap=300, **counted)
        self.metrics.append(at / f"metrics/{benchmark}.json")
        metrics_file(config, paths["scores"], problems, self.metrics[-1])

    def add_log(self, *, run="datpo", method="datpo", seed=0, steps=10, **changed):
        self.logs.append(self.scale / f"small/{method}/{run}/seed{seed}/metrics.jsonl")
        self.logs[-1].parent.mkdir(parents=True, exist_ok=True)
        write_lines(self.logs[-1], [log_row(step, **SECONDS, **changed) for step in range(steps)])

    def name(self, *paths):
        """Files as the workflow names them in a table: from the folder where it ran."""
        return " ".join(str(path.relative_to(self.root)) for path in paths)

    def table(self, name, *rows, header=STUDY):
        path = self.scale / f"tables/{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")
        return path


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path)


def right(*counts, n=4):
    return [[RIGHT] * count + [WRONG] * (n - count) for count in counts]


def scored(results, value, *, column="avg", k=4, low="", high="", sd="", benchmark="moves", files=None):
    files = results.name(*(results.metrics if files is None else files))
    return f"table3,small,datpo,datpo,DATPO,{benchmark},{column},4,{k},{value},{low},{high},{sd},{files}"


def logged(results, value, column, sd=""):
    return f"table8,small,datpo,datpo,DATPO,,{column},,,{value},,,{sd},{results.name(*results.logs)}"


def write_table(table, rows):
    with table.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def problem_of(table, number=1):
    """What is wrong with one row, which the error behind all rows repeats."""
    found = []
    with pytest.raises(InputError, match=rf"row {number} \(table\d+: ") as error:
        for row in trace(table, []):
            found.append(row)
    assert not found[number - 1]["agrees"]
    assert found[number - 1]["problem"] in str(error.value)
    return found[number - 1]["problem"]


def test_scores_are_counted_from_the_verdicts(results):
    results.add(right(1, 2))
    rows = [
        scored(results, 37.5, low=25.0, high=50.0),
        scored(results, 66.6667, column="pass", k=2, low=50, high=83.3333),
    ]
    average, at_2 = trace(results.table("table3", *rows), [])
    folder = results.scale / "small/datpo/datpo/seed0"
    assert average == {
        "row": 1,
        "number": "table3: avg@4 on moves of DATPO, small",
        "written": {"value": 37.5, "low": 25.0, "high": 50.0, "seed_sd": None},
        "counted": {"value": 37.5, "low": 25.0, "high": 50.0, "seed_sd": None},
        "how": "verdicts: c right of n samples of each problem, c / n",
        "files": [str(folder / "scores/moves.jsonl"), str(folder / "samples/moves.jsonl")],
        "raw_rows": 8,
        "agrees": True,
    }
    assert (at_2["row"], at_2["counted"]["value"], at_2["agrees"]) == (2, pytest.approx(200 / 3, abs=1e-6), True)


@pytest.mark.parametrize(("column", "k", "says"), [
    ("pass", 8, "no pass@8 of a problem with 4 samples"),
    ("maj", 8, "no maj@8 of a problem with 4 samples"),
    ("maj", 3, "its metrics have no maj@3"),
])  # fmt: skip
def test_a_score_that_there_cannot_be_is_said(results, column, k, says):
    results.add(right(1, 2))
    assert says in problem_of(results.table("table3", scored(results, 100, column=column, k=k)))


@pytest.mark.parametrize("n", [1, 4, 6])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            subsets = [any(index < c for index in chosen) for chosen in combinations(range(n), k)]
            assert passed(n, c, k) == pytest.approx(sum(subsets) / comb(n, k))


def test_a_tie_of_answers_is_shared_and_nobody_votes_without_one():
    def row(verdict, number):
        return {"verdict": verdict, "class": number}

    assert elected([row(RIGHT, 0), row(WRONG, 1), row(WRONG, 1)]) == 0
    assert elected([row(RIGHT, 0), row(WRONG, 1), row("no_answer", None)]) == 0.5
    assert elected([row("no_answer", None)]) == 0


def test_maj_of_all_samples_is_elected_anew_and_of_fewer_is_read(results):
    results.add(right(3, 1))
    half = json.loads(results.metrics[0].read_text())["maj"]["2"]["value"]
    rows = [
        scored(results, 50, column="maj", low=0, high=100),
        scored(results, round(100 * half, 4), column="maj", k=2),
    ]
    every, some = trace(results.table("table3", rows[0]), []), trace(results.table("table4", rows[1]), [])
    (found,) = every
    assert found["agrees"]
    assert found["how"].startswith("verdicts and classes")
    some = next(some)
    assert some["counted"]["value"] == pytest.approx(100 * half)
    assert some["how"].startswith("per_problem of the metrics file, not the verdicts")


def test_an_average_weighs_benchmarks_the_same_and_spreads_over_seeds(results):
    # moves: 37.5 and 62.5; hard (pass@2 of n = 2 by its table): 50 and 100
    for seed, easy, hard in ((0, (1, 2), (0, 1)), (1, (2, 3), (1, 1))):
        results.add(right(*easy), seed=seed)
        results.add(right(*hard, n=2), seed=seed, benchmark="hard", k=(1, 2))
    files = sorted(results.metrics, key=lambda path: path.stem)  # benchmark by benchmark, each with its seeds
    each = [scored(results, 0, benchmark=name, files=files) for name in ("moves", "hard")]
    row = scored(results, 48.4375, benchmark="Average", k="", sd=13.2583, files=files)
    found = next(trace(results.table("table12", row, *each), []))
    # avg of hard: 25 and 50; so 31.25 and 56.25, mean 43.75
    assert found["counted"]["value"] == 43.75
    assert found["counted"]["seed_sd"] == pytest.approx(25 / 2**0.5, abs=1e-6)
    assert (found["raw_rows"], len(found["files"]), found["agrees"]) == (24, 8, False)
    row = scored(results, 0, benchmark="Average", k="", column="pass", files=files)
    # pass@4 of moves: 100 and 100; pass@2 of hard: 50 and 100
    assert next(trace(results.table("table12", row, *each), []))["counted"]["value"] == 87.5
    row = scored(results, 37.5, benchmark="Average", files=files[:2])
    told = next(trace(results.table("table12", row, *each), []))["problem"]
    assert told.endswith("hard.json: of hard, not of benchmark 'Average'")


@pytest.mark.parametrize(("missing", "value", "high"), [("exclude", 75, 100), ("wrong", 50, 50)])
def test_lost_samples_count_as_the_metrics_say(results, missing, value, high):
    results.add([[RIGHT, RIGHT, "missing", "missing"], *right(2)], missing=missing, k=(1, 2))
    (found,) = trace(results.table("table3", scored(results, value, low=50, high=high)), [])
    assert found["agrees"]


def test_costs_are_counted_from_the_rows_of_the_logs(results):
    results.add_log()
    results.add_log(seed=1, steps=15)
    # 100, 110, ... over 10 and 15 steps: 145 and 170; 6 s a step
    rows = [logged(results, 157.5, "tokens_per_question", 17.6777), logged(results, 6.0, "seconds_step", 0.0)]
    rows += [logged(results, 3.0, "seconds_rollout", 0.0), logged(results, 0.0208, "hours", 0.0059)]
    found = list(trace(results.table("table8", *rows), []))
    assert [row["agrees"] for row in found] == [True] * 4
    assert {row["raw_rows"] for row in found} == {25}
    assert found[3]["counted"]["value"] == pytest.approx(75 / 3600, abs=1e-6)
    assert found[0]["files"] == [str(path) for path in results.logs]


def test_tokens_per_question_weigh_steps_by_their_questions(results):
    results.add_log(steps=2)
    first, second = map(json.loads, results.logs[0].read_text().splitlines())
    write_lines(results.logs[0], [first | {"prompts": 1}, second | {"prompts": 3}])  # 100 and 110
    (found,) = trace(results.table("table8", logged(results, 107.5, "tokens_per_question")), [])
    assert found["agrees"]


def test_a_number_that_is_not_what_its_files_hold_ends_in_an_error_behind_all_rows(results, capsys, monkeypatch):
    results.add(right(1, 2))
    good, bad = (scored(results, value, low=25, high=50) for value in (37.5, 37.5001))
    table = results.table("table3", good, bad, good)
    monkeypatch.chdir(results.root)
    assert main(["trace", results.name(table)]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["agrees"] for line in out.splitlines()] == [True, False, True]
    assert "scores/moves.jsonl" in json.loads(out.splitlines()[0])["files"][0]
    assert not json.loads(out.splitlines()[0])["files"][0].startswith("/")
    assert err.splitlines() == [
        "datpo trace: results/tiny/tables/table3.csv: not what the raw files hold: "
        "row 2 (table3: avg@4 on moves of DATPO, small): value is 37.5001, counted 37.5"
    ]
    assert main(["trace", "--row", "3", "--row", "1", str(table)]) == 0
    assert [json.loads(line)["row"] for line in capsys.readouterr().out.splitlines()] == [3, 1]


def flip(path):
    """One right sample becomes wrong."""
    path.write_text(
        path.read_text().replace('"right", "answer": "0", "class": 0', '"wrong", "answer": "1", "class": 1', 1)
    )


def reword(path):
    path.write_text(path.read_text().replace("p0 0", "p0 9"))


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("scores", Path.unlink, "scores/moves.jsonl: no such file"),
        ("samples", Path.unlink, "samples/moves.jsonl: no such file"),
        ("scores", flip, "scores/moves.jsonl: changed since"),
        ("samples", reword, "samples/moves.jsonl: changed since"),
        (
            "scores",
            lambda path: path.write_text("".join(path.read_text().splitlines(True)[:-1])),
            "sample 3 is missing",
        ),
    ],
)
def test_a_raw_file_that_is_missing_or_changed_is_told(results, kind, change, told):
    results.add(right(1, 2))
    table = results.table("table3", scored(results, 37.5, low=25, high=50))
    assert all(row["agrees"] for row in trace(table, []))
    path = results.scale / f"small/datpo/datpo/seed0/{kind}/moves.jsonl"
    change(path)
    assert told in problem_of(table)


def test_a_log_that_has_changed_gives_another_number(results):
    results.add_log()
    table = results.table("table8", logged(results, 145.0, "tokens_per_question"))
    assert all(row["agrees"] for row in trace(table, []))
    write_lines(results.logs[0], [log_row(step) for step in range(9)])
    assert "value is 145.0, counted 140.0" in problem_of(table)
    results.logs[0].write_text("")
    assert "no step in this log" in problem_of(table)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("table3,small,datpo,datpo,DATPO,moves,avg,4,4,many,,,,FILES", "value is 'many', which is no number"),
        ("table3,small,datpo,datpo,DATPO,moves,avg,4,4,37.5,,,,", "the row names no file"),
        ("table3,small,datpo,datpo,DATPO,moves,avg,4,4,37.5,,,,results/none.json", "results/none.json: no such file"),
    ],
)
def test_a_row_that_cannot_be_traced_says_why(results, row, told):
    results.add(right(1, 2))
    assert told in problem_of(results.table("table3", row.replace("FILES", results.name(*results.metrics))))


def test_files_are_of_the_run_and_benchmark_of_the_row(results):
    results.add(right(1, 2))
    results.add_log()
    row = scored(results, 37.5, low=25, high=50)
    rows = [row, row.replace("datpo,datpo", "datpo,other"), row.replace(",moves,", ",hard,")]
    rows += [logged(results, 145.0, "tokens_per_question").replace("small,datpo", "small,grpo")]
    table = results.table("table3", *rows)
    assert "metrics/moves.json: of the run small/datpo/datpo, not the row's" in problem_of(table, 2)
    assert "metrics/moves.json: of moves, not of benchmark 'hard'" in problem_of(table, 3)
    assert "metrics.jsonl: of the run small/datpo/datpo, not the row's" in problem_of(table, 4)


@pytest.mark.parametrize("word", ["0", "2", "one", "-1"])
def test_a_row_is_one_of_the_table(results, word):
    results.add(right(1, 2))
    table = results.table("table3", scored(results, 37.5, low=25, high=50))
    with pytest.raises(InputError, match="--row must be a number from 1 to 1"):
        list(trace(table, [word]))


@pytest.mark.parametrize("text", ["", STUDY + "\n", "scale,model,moves_avg\ntiny,small,37.5\n"])
def test_other_tables_are_refused(results, text):
    table = results.table("table2")
    table.write_text(text)
    with pytest.raises(InputError, match="give table1, table3 to table14, table2_scores or table2_differences"):
        list(trace(table, []))


# The rollout of every tree: ten tokens and the end, forked before 2, 3 and 9 into a branch of three tokens each.
# Distances to the nearest: 1, 1, 6; of pairs: 1, 7, 6, one of them at most a tenth of its length.
FOUND = {"leaves": 4, "tokens": 20, "forks": 3, "sibling_diversity": 0.3, "nnd": 8 / 30, "mpd": 14 / 30}
FOUND |= {"wcr5": 0.0, "wcr10": 1 / 3, "length": 10}
# Of the last fork's blocks the first has no text, so it has no pair; the others' diversities are 0.2 and 0.4.
TEXTS, DIVERSITY = ["a", "b", "c", " ", "d", "e", "f"], [0.0, 0.2, 0.4, 0.0, 0.2, 0.4, 0.0]
FORKS = ("random", "fixed-seg", "atb", "tok-entropy", "sent-entropy")
# Rewards of two problems in two repeats: 0 and 1/2 solved by all rules but the last, 1/2 and 1 by that.
SOLVED = {**{name: [[0, 0], [0, 1]] for name in FORKS}, "sent-entropy": [[1, 0], [1, 1]]}


def tree(problem, repeat, solved):
    branches = [{"parent": None, "start": 0, "tokens": list(range(11)), "finish": "stop", "reward": 0}]
    branches += [{"parent": 0, "start": at, "tokens": [1, 2, 3], "finish": "stop", "reward": 0} for at in (2, 3, 9)]
    branches[2]["reward"] = solved
    known = {"id": problem, "problem": "?", "answer": "0"}
    return {
        "version": 1,
        "step": repeat,
        "problem": known,
        "branches": branches,
        "texts": TEXTS,
        "diversity": DIVERSITY,
    }


@pytest.fixture
def forks(results):
    """An exploration: its settings, its trees, and what was measured of them."""
    settings = results.scale / "settings/explorations/forks.shown.yaml"
    trees = results.scale / "explorations/forks/trees"
    for folder in (settings.parent, trees):
        folder.mkdir(parents=True)
    numbers = {"roots": 1, "max_forks": 3, "max_siblings": 1}
    settings.write_text(
        yaml.safe_dump(
            {
                "identity": {"scale": "tiny", "model": "small", "method": "base", "run": "base", "seed": 0},
                "exploration": "forks",
                "benchmark": "moves",
                "structures": [
                    {"name": name, "method": "datpo", "numbers": {**numbers, "fork_rule": name}} for name in FORKS
                ],
                "train": {"temperature": 1.0, "max_new_tokens": 64, "length_limit": "branch", "embedder": "lexical"},
                "seed": 3,
                "bootstrap": 200,
            }
        )
    )
    rows = []
    for name in FORKS:
        tried = [(f"p{p}", repeat, SOLVED[name][p][repeat]) for repeat in (0, 1) for p in (0, 1)]
        write_lines(trees / f"{name}.jsonl", [tree(*each) for each in tried])
        rows += [{"structure": name, "problem": id_, "repeat": at, "right": won, **FOUND} for id_, at, won in tried]
    with open(trees.parent / "rollouts.csv", "w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return results


def fork_table(forks, name):
    config = forks.scale / "settings/explorations/forks.shown.yaml"
    rollouts = forks.scale / "explorations/forks/rollouts.csv"
    words = ["--config", config, "--rollouts", rollouts, "--published", PUBLISHED, "--table", name]
    assert main(["fork-table", *map(str, [*words, "--out", forks.scale / "tables"])]) == 0
    return forks.scale / f"tables/{name}.csv"


def test_tables_of_forks_are_counted_from_the_saved_trees(forks):
    found = list(trace(fork_table(forks, "table1"), []))
    assert len(found) == 10
    assert all(row["agrees"] for row in found)
    (best,) = [row for row in found if row["number"] == "table1: PassRate of sent-entropy, small on moves"]
    wanted = {"problems": 2, "repeats": 2, "forks": 3, "leaves": 4, "tokens": 20, "value": 75, "low": 50, "high": 100}
    wanted |= {"minus_random": 50, "minus_random_low": 50, "minus_random_high": 50}
    assert best["counted"] == wanted
    assert (best["raw_rows"], [Path(file).name for file in best["files"]]) == (
        8,
        ["sent-entropy.jsonl", "random.jsonl"],
    )
    assert found[0]["counted"]["minus_random"] is None
    assert {row["counted"]["value"] for row in found if "SibDiv" in row["number"]} == {0.3}


def test_localisation_is_counted_from_fork_points_and_lengths(forks):
    found = list(trace(fork_table(forks, "table6"), []))
    assert all(row["agrees"] for row in found)
    values = {row["number"].split()[1]: row["counted"]["value"] for row in found}
    wanted = {"NND": 8 / 30, "MPD": 14 / 30, "WCR@5": 0, "WCR@10": 100 / 3}
    assert values == pytest.approx(wanted, abs=1e-6)


def test_a_tree_that_has_changed_or_gone_is_told(forks):
    table = fork_table(forks, "table1")
    file = forks.scale / "explorations/forks/trees/sent-entropy.jsonl"
    write_lines(file, [tree(f"p{p}", repeat, 0) for repeat in (0, 1) for p in (0, 1)])
    told = problem_of(table, 9)
    assert "value is 75.0, counted 0.0" in told
    file.unlink()
    assert "trees/sent-entropy.jsonl: no such file" in problem_of(table, 9)


@pytest.fixture
def trained(results):
    """Base and two runs of two seeds on `moves`, samples split into two evaluation runs."""
    results.add(right(0, 2), method="base", run="base", runs=2)
    for run, seed, counts in (("a", 0, (1, 2)), ("a", 1, (2, 2)), ("b", 0, (4, 3)), ("b", 1, (3, 0))):
        verdicts = right(*counts)
        verdicts[1][-1] = "no_answer"
        results.add(verdicts, run=run, seed=seed, runs=2)
        results.add_log(run=run, seed=seed, steps=10 + seed)
    return results


def main_table(trained):
    words = ["--metrics", *trained.metrics, "--logs", *trained.logs, "--published", PUBLISHED]
    assert main(["table2", *map(str, [*words, "--out", trained.scale / "tables"])]) == 0
    return trained.scale / "tables/table2_scores.csv"


def test_every_score_of_table_2_is_traced_with_its_rates(trained):
    found = list(trace(main_table(trained), []))
    assert len(found) == 3 * 7  # avg, and pass and maj at three k
    assert all(row["agrees"] for row in found)
    assert found[7]["number"] == "table2: avg@4 on moves of DATPO (a), small"
    assert (found[7]["counted"]["rate_no_answer"], found[7]["counted"]["n"]) == (12.5, 4)
    # right of the first two samples of the two problems, and of the last two: 1 + 2 and 0 + 0 of 4, seed 1: 2 + 2 and 0
    spreads = [100 * abs(one - other) / 2**0.5 for one, other in ((3 / 4, 0), (1, 0))]
    assert found[7]["counted"]["evaluation_sd"] == pytest.approx(sum(spreads) / 2, abs=1e-6)


def test_averages_of_table_2_are_traced(trained):
    for run, method in (("a", "datpo"), ("b", "datpo"), ("base", "base")):
        for seed in (0,) if run == "base" else (0, 1):
            trained.add(right(seed, 2, 4), run=run, method=method, seed=seed, benchmark="hard")
    *_, last = found = list(trace(main_table(trained), []))
    assert len(found) == 3 * (2 * 7 + 2) and all(row["agrees"] for row in found)
    assert last["number"].startswith("table2: pass@4 on Average of ")
    assert last["counted"].keys() == {"value", "low", "high", "seed_sd"} and last["counted"]["low"] is not None


@pytest.mark.parametrize(
    ("column", "word", "told"),
    [
        ("rate_no_answer", "12.51", "rate_no_answer is 12.51, counted 12.5"),
        ("evaluation_sd", "", "evaluation_sd is None, counted"),
        ("samples_sha256", "0 0", "counted from another samples_sha256 than the row names"),
        ("checkpoint", "0 0", "counted from another checkpoint than the row names"),
    ],
)
def test_what_stands_beside_a_score_of_table_2_is_traced_too(trained, column, word, told):
    table = main_table(trained)
    rows = list(csv.DictReader(table.open()))
    rows[7][column] = word
    write_table(table, rows)
    assert told in problem_of(table, 8)


def differences_of(trained):
    return main_table(trained).with_name("table2_differences.csv")


def test_every_paired_difference_of_table_2_is_traced(trained):
    found = list(trace(differences_of(trained), []))
    assert len(found) == 2 * 2 * 2  # two runs − Base, on `moves` and on average, avg and pass
    assert all(row["agrees"] for row in found)
    assert found[0]["number"] == "table2: avg@4 on moves of DATPO (a) − Base, small"
    assert found[0]["counted"].keys() == {"difference", "low", "high"}


@pytest.mark.parametrize(
    ("column", "word", "told"),
    [
        ("low", "-99.5", "low is -99.5, counted"),
        ("against", "GRPO", "of the run small/base/base, not GRPO of small"),
        ("benchmark", "maths", "of moves, not of benchmark 'maths'"),
        ("files_against", "", "the row names no file"),
    ],
)
def test_a_paired_difference_of_other_files_is_named(trained, column, word, told):
    table = differences_of(trained)
    rows = list(csv.DictReader(table.open()))
    rows[1][column] = word
    write_table(table, rows)
    assert told in problem_of(table, 2)


def study_of(trained):
    """The table of a study of two runs, one of them a variant of the other."""
    rows = [{"label": name, "method": "datpo", "run": name, "numbers": {}, "train": {}} for name in "ab"]
    study = {"study": "table3", "scale": "tiny", "models": ["small"], "benchmarks": ["moves"], "seeds": [0, 1]}
    study |= {"columns": ["avg", "pass", "hours", "leaves", *SECONDS], "checkpoints": {}, "rows": rows}
    study["against"] = "a"
    file = trained.root / "study.yaml"
    file.write_text(yaml.safe_dump(study))
    words = ["--study", file, "--metrics", *trained.metrics, "--logs", *trained.logs, "--published", PUBLISHED]
    assert main(["table", *map(str, [*words, "--out", trained.scale / "tables"])]) == 0
    return trained.scale / "tables/table3.csv"


def test_every_number_of_a_study_is_traced(trained):
    found = list(trace(study_of(trained), []))
    assert len(found) == 2 * 8
    assert all(row["agrees"] for row in found)
    assert [row["row"] for row in found if row["counted"].get("ahead") is not None] == [9, 10]  # avg and pass of b


def test_a_difference_that_was_written_otherwise_is_named(trained):
    table = study_of(trained)
    rows = list(csv.DictReader(table.open()))
    rows[8]["ahead"] = "99"
    write_table(table, rows)
    assert "ahead is 99.0, counted" in problem_of(table, 9)
    rows[8] |= {"ahead": "0", "against": "c"}
    write_table(table, rows)
    assert "against 'c', of which there are 0 other rows" in problem_of(table, 9)
    rows[8] |= {"ahead": "0", "against": "b"}
    write_table(table, rows)
    assert "against 'b', of which there are 0 other rows" in problem_of(table, 9)
    rows[8] |= {"against": ""}
    write_table(table, rows)
    assert "ahead is 0.0, counted None" in problem_of(table, 9)
