"""Merging, defaults, refusals, and which keys reach which job."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from datpo.config import SCHEMA, load_config, merge, read_settings, write_settings
from datpo.config_schema import known_keys
from datpo.config_slices import (
    difficulty_settings,
    metrics_settings,
    model_settings,
    problem_settings,
    sample_settings,
    score_settings,
    table_settings,
    train_settings,
)
from datpo.config_studies import benchmarks_of
from datpo.core.errors import InputError
from datpo.methods import load as load_method

ROOT = Path(__file__).resolve().parents[2]
SCALES = sorted(path.stem for path in (ROOT / "config/scales").glob("*.yaml"))


def loaded(**overrides: Any) -> dict[str, Any]:
    return load_config(ROOT, {"scale": "ci", **overrides})


def refusal(**overrides: Any) -> str:
    with pytest.raises(InputError) as refused:
        loaded(**overrides)
    return str(refused.value)


def test_maps_merge_lists_and_values_are_replaced_null_removes() -> None:
    below = {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3, "d": 4}
    above = {"a": {"y": 5, "z": 6}, "b": [9], "c": None, "d": "null"}
    assert merge(below, above) == {"a": {"x": 1, "y": 5, "z": 6}, "b": [9]}
    assert below == {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3, "d": 4}


TREES = st.recursive(
    st.integers(), lambda children: st.dictionaries(st.sampled_from("abc"), children, max_size=3), max_leaves=8
)
MAPS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(MAPS, MAPS)
def test_what_is_laid_above_is_found_again_and_laying_it_twice_changes_nothing(below: Any, above: Any) -> None:
    merged = merge(below, above)
    assert merge(merged, above) == merged
    assert set(merged) == set(below) | set(above)


def test_another_kind_of_duration_takes_the_place_of_the_scale_s() -> None:
    config = loaded(runs={"short": {"method": "grpo", "train": {"duration": {"updates": 3}}}})
    assert config["runs"]["short"]["train"]["duration"] == {"updates": 3}
    assert config["runs"]["grpo"]["train"]["duration"] == {"steps": 2}


def test_words_from_the_command_line_become_numbers() -> None:
    config = loaded(seeds=["0", "7"], train={"learning_rate": "1e-4", "embedder_remote_code": "true"})
    assert config["seeds"] == [0, 7]
    assert config["train"]["learning_rate"] == 1e-4
    assert config["train"]["embedder_remote_code"] is True


def test_a_run_lays_its_numbers_over_its_method_s_file() -> None:
    config = loaded(runs={"flat": {"method": "datpo", "numbers": {"alpha": [0, 0]}}})
    flat, plain = config["runs"]["flat"]["numbers"], config["runs"]["datpo"]["numbers"]
    assert flat["alpha"] == [0, 0]
    assert {**flat, "alpha": plain["alpha"]} == plain


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_whole(scale: str) -> None:
    config = load_config(ROOT, {"scale": scale})
    assert config["scale"] == scale
    for run in config["runs"].values():
        load_method(run["method"], run["numbers"])
    for name in config["models"]:
        train_settings(config, name, "datpo", 0)


def test_paper_scale_holds_the_paper_s_numbers() -> None:
    config = load_config(ROOT, {"scale": "paper"})
    train = config["runs"]["datpo"]["train"]
    assert train["duration"] == {"steps": 750}
    assert train["prompts_per_step"] == 16
    assert train["learning_rate"] == 5e-6
    assert train["betas"] == [0.9, 0.999]
    assert (train["epochs"], train["minibatch_size"], train["max_new_tokens"]) == (2, 64, 1024)
    assert config["runs"]["grpo"]["numbers"]["clip"] == [0.2, 0.28]
    benchmarks = {name: config["benchmarks"][name] for name in benchmarks_of(config, "table2")}
    assert list(benchmarks) == ["MATH500", "AIME26", "AIME25", "AIME24", "AMC23"]
    assert {name: max(entry["k"]) for name, entry in benchmarks.items()} == {"MATH500": 8} | dict.fromkeys(
        ("AIME26", "AIME25", "AIME24", "AMC23"), 64
    )
    assert all(entry["samples"] == 3 * max(entry["k"]) for entry in benchmarks.values())
    assert (config["evaluation"]["temperature"], config["evaluation"]["max_new_tokens"]) == (1.0, 2048)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"evalution": {}}, "unknown key 'evalution'; did you mean 'evaluation'?"),
        ({"train": {"learnin_rate": 1}}, "unknown key 'train.learnin_rate'; did you mean 'learning_rate'?"),
        ({"train": {"epochs": "many"}}, "train.epochs: must be a whole number, not 'many'"),
        ({"train": {"epochs": 1.5}}, "train.epochs: must be a whole number, not 1.5"),
        ({"train": {"epochs": True}}, "train.epochs: must be a whole number, not True"),
        ({"train": {"learning_rate": float("nan")}}, "train.learning_rate: must be a finite number, not nan"),
        ({"train": {"learning_rate": "1e999"}}, "train.learning_rate: must be a finite number, not inf"),
        ({"train": {"embedder_revision": 3}}, "train.embedder_revision: must be text or null, not 3"),
        ({"train": 3}, "train: must be a map, e.g. {key: value}, not 3"),
        ({"train": {"duration": {"steps": None}}}, "train.duration needs at least one of steps, tokens, updates"),
        ({"seeds": []}, "seeds: must not be empty"),
        ({"seeds": 1}, "seeds: must be a list, e.g. [1], not 1"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"domain": "chess"}, "domain: must be one of moves, math, not 'chess'"),
        ({"runs": None}, "runs: nothing is listed"),
        ({"runs": {"x": {}}}, "runs.x: needs the key 'method'"),
        ({"runs": {"x": 3}}, "runs.x: must be a map"),
        ({"runs": {"grpo": {"numbers": 3}}}, "runs.grpo.numbers: must be a map"),
        ({"runs": {"grpo": {"train": 3}}}, "runs.grpo.train: must be a map"),
        ({"runs": {"grpo": {"numbers": {"clip": 0.2}}}}, "run 'grpo': method 'grpo': clip must be a list of two num"),
        ({"runs": {"grpo": {"numbers": {"clip": [0.2]}}}}, "e.g. [0.2, 0.28], not [0.2]"),
        ({"runs": {"x/y": {"method": "grpo"}}}, "runs: 'x/y' cannot be a name: names are of letters, digits, dots"),
        ({"runs": {"base": {"method": "grpo"}}}, "'base' names the base model"),
        ({"runs": {"grpo": {"method": "datpo"}}}, "runs.grpo: is named like a method but trains by 'datpo'"),
        ({"runs": {"gpro": None}}, "runs.gpro: null takes away nothing, there is no such name; did you mean 'grpo'?"),
        ({"benchmarks": {"moves-head": "null"}}, "benchmarks.moves-head: null takes away nothing"),
        ({"benchmarks": 5}, "benchmarks: must be a map"),
        ({"benchmarks": {"moves-hard": {"k": [1, 9]}}}, "k = 9 is above its 8 samples"),
        ({"models": {"ci": {"source": {"path": "x"}}}}, "exactly one of `pretrain` and `source`"),
        ({"models": {"other": {"source": {}}}}, "exactly one of `hub` with `revision` (a commit), `path`, and `gguf`"),
        ({"models": {"other": {"source": {"hub": "a/b", "path": "c"}}}}, "and `gguf`, not hub and path"),
        ({"models": {"other": {"source": {"path": "c", "sha256": "a" * 64}}}}, "sha256 has no meaning beside `path`"),
        ({"models": {"other": {"source": {"gguf": "b.gguf", "package": "a==1"}}}}, "needs `sha256`"),
        ({"models": {"other": {"source": {"gguf": "b.gguf", "package": "a"}}}}, "package: must contain"),
        ({"models": {"other": {"source": {"hub": "a/b"}}}}, "needs `revision` (a commit) beside `hub`"),
        (
            {"models": {"other": {"source": {"hub": "a/b", "revision": "main"}}}},
            "models.other.source.revision: must be a commit, 40 hexadecimal digits; 'main' may be another",
        ),
        ({"models": {"ci": {"pretrain": {"model": {"vocab_size": 9}}}}}, "key 'models.ci.pretrain.model.vocab_size'"),
        ({"models": {"ci": {"pretrain": {"model": {"hidden_size": 90}}}}}, "hidden_size 90 must be an even multiple"),
        ({"models": {"ci": {"pretrain": {"model": {"num_key_value_heads": 3}}}}}, "multiple of num_key_value_heads 3"),
        ({"prompt": {"format": "no problem"}}, "prompt.format: must contain {problem}, unlike 'no problem'"),
        (
            {"prompt": {"format": r"As \boxed{5}.\n\n{problem}"}},
            "prompt.format: holds a box, which the checker would read as the answer '5'",
        ),
        ({"prompt": {"format": r"\boxed{{problem}}"}}, "prompt.format: holds a box"),
        (
            {"prompt": {"system": r"Like this: \fbox{7}"}},
            "prompt.system: holds a box, which the checker would read as ",
        ),
        ({"models": {"ci": {"prompt": {"system": r"\boxed 3"}}}}, "models.ci.prompt.system: holds a box"),
        ({"models": {"ci": {"prompt": {"formt": "x"}}}}, "'models.ci.prompt.formt'; did you mean 'format'?"),
        ({"prompt": {"format": "{problem} \boxed{}"}}, "prompt.format: holds the control character '\\x08', as which"),
        ({"prompt": {"stop": ["a", "\frac"]}}, "prompt.stop: holds the control character '\\x0c'"),
        ({"models": {"ci": {"prompt": {"system": "\x1b"}}}}, "models.ci.prompt.system: holds the control character"),
        ({"data": {"train": {"path": ""}}}, "data.train.path: must not be empty"),
        ({"data": {"train": {"hub": ""}}}, "data.train.hub: must not be empty"),
        ({"models": {"other": {"source": {"path": ""}}}}, "models.other.source.path: must not be empty"),
        ({"data": {"train": {"path": "/"}}}, "data.train.path: /: cannot be read (Is a directory)"),
        ({"data": {"train": {"path": "/", "sha256": "a"}}}, "data.train.path: '/': cannot be read ("),
        ({"data": {"train": {"path": "a\0b"}}}, "data.train.path: 'a\\x00b': cannot be read ("),
        (
            {"data": {"train": {"url": "https://example.org/a", "sha256": "a", "fingerprint": "x"}}},
            "data.train.fingerprint: must be a SHA-256, 64 hexadecimal digits, not 'x'",
        ),
        ({"evaluation": {"bootstrap": 10**12}}, "evaluation.bootstrap: 1000000000000 is greater than the maximum"),
        ({"evaluation": {"checker": ["own"]}}, "evaluation.checker: must be one of own, datpo_release, not ['own']"),
        ({"prompt": {"stop_tokens": "<|im_end|>"}}, "prompt.stop_tokens: must be a list"),
        ({"difficulty": {"bands": {"easy": [9, 12]}}}, "bands.easy: [9, 12] must be [fewest, most] right samples"),
        ({"difficulty": {"bands": {"hard": [4, 1]}}}, "difficulty.bands.hard: [4, 1] must be"),
        ({"difficulty": {"bands": {"hard": [1, 3]}}}, "hard [1, 3] and medium [2, 2] overlap"),
        ({"difficulty": {"samples": 8}}, "difficulty.bands.easy: [3, 11] must be [fewest, most] right samples within"),
        ({"data": {"train": {"path": "nowhere.jsonl"}}}, "data.train.path: nowhere.jsonl: no such file"),
        ({"data": {"train": {"count": None}}}, "data.train: `levels` needs `count`"),
        (
            {"data": {"train": {"levels": None, "count": None}}},
            "data.train: needs exactly one of levels, path, url, hub, not",
        ),
        ({"data": {"train": {"from_train": 3}}}, "data.train: needs exactly one of levels, path, url, hub, not from"),
        ({"data": {"train": {"levels": [1], "path": "x"}}}, "not levels and path"),
        ({"data": {"validation": {"from_train": 3, "count": 3}}}, "data.validation: count has no meaning beside"),
        (
            {"benchmarks": {"x": {"problems": {"hub": "a/b"}, "samples": 8, "k": [1]}}},
            "x.problems: `hub` needs `revisi",
        ),
        (
            {"data": {"train": {"hub": "a/b", "revision": "v1.0"}}},
            "data.train.revision: must be a commit, 40 hexadecimal digits; 'v1.0' may be another one tomorrow",
        ),
        ({"data": {"train": {"url": "https://example.org/a.jsonl"}}}, "data.train: `url` needs `sha256`"),
        ({"data": {"train": {"url": "http://example.org/a", "sha256": "a"}}}, "data.train.url: must contain https://"),
        ({"data": {"train": {"path": "a", "split": "test"}}}, "data.train: split has no meaning beside `path`"),
        ({"domain": "math"}, "data.train: `levels` makes move puzzles, but the domain is 'math'"),
    ],
)
def test_a_mistake_is_named(overrides: dict[str, Any], said: str) -> None:
    assert said in refusal(**overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {"train": {"learnin_rate": 1}},
        {"train": {"epochs": 0}},
        {"train": 3},
        {"runs": {"grpo": {"train": {"a": 1}}}},
        {"domain": 3},
        {"train": {"epochs": float("nan")}},
        {"evaluation": {"bootstrap": float("inf")}},
        {"evaluation": {"checker": ["own"]}},
        {"prompt": {"format": "{problem} \boxed{}"}},
    ],
)
def test_a_mistake_is_told_once(overrides: dict[str, Any]) -> None:
    assert len(refusal(**overrides).splitlines()) == 1


def test_every_mistake_has_its_line() -> None:
    lines = refusal(sacle="ci", seeds=1, train={"epoch": 1, "beta": 2}).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("config: ") for line in lines)


def test_an_unknown_scale_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"scale 'huge' has no file config/scales/huge.yaml; known: budgets, ci, laptop, paper, tiny"
    ):
        load_config(ROOT, {"scale": "huge"})


@pytest.mark.parametrize("absent", [None, "null"])
def test_no_scale_in_an_overlay_is_the_scale_of_config_yaml_through_and_through(absent: str | None) -> None:
    assert load_config(ROOT, {"scale": absent}) == load_config(ROOT, {})


def test_whole_numbers_may_be_written_with_a_point() -> None:
    config = loaded(seeds=[1.0], train={"epochs": "3.0"})
    assert repr(config["seeds"]) == "[1]"
    assert repr(config["train"]["epochs"]) == "3"


def test_words_among_a_method_s_numbers_become_numbers_too() -> None:
    config = loaded(runs={"datpo": {"numbers": {"max_forks": "2", "alpha": ["0.1", "0"]}}})
    numbers = config["runs"]["datpo"]["numbers"]
    assert (numbers["max_forks"], numbers["alpha"]) == (2, [0.1, 0])


def test_another_source_of_problems_takes_the_place_of_the_scale_s(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "a", "problem": "p", "answer": "1"}\n')
    entry = loaded(data={"train": {"path": str(file)}})["data"]["train"]
    assert set(entry) == {"path", "sha256", "questions"}


def test_a_local_file_of_problems_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"

    def changed(text: str) -> set[str]:
        """The jobs on this benchmark that see another file."""
        jobs = []
        for each in ('{"id": "a", "problem": "p", "answer": "1"}\n', text):
            file.write_text(each)
            config = loaded(benchmarks={"own": {"problems": {"path": str(file)}, "samples": 8, "k": [1]}})
            jobs.append(
                {
                    "problems": problem_settings(config, "benchmarks/own"),
                    "sample": sample_settings(config, "ci", "grpo", "grpo", 0, "own"),
                    "score": score_settings(config, "own"),
                }
            )
        return {job for job in jobs[0] if jobs[0][job] != jobs[1][job]}

    assert changed('{"id": "a", "problem": "p", "answer": "1"}\n') == set()
    assert changed('{"id": "a", "problem": "p", "answer": "2"}\n') == {"problems", "score"}
    assert changed('{"id": "a", "problem": "q", "answer": "1"}\n') == {"problems", "sample", "score"}
    # without a key it is set aside, so with one it is asked
    assert changed('{"id": "a", "problem": "p", "answer": ""}\n') == {"problems", "sample", "score"}


def test_a_local_file_is_held_against_its_own_columns_and_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"question": "p", "key": ""}\n{"question": "q", "key": 2}\n')  # an empty key is set aside later
    entry = {"path": str(file), "fields": {"answer": "key"}}
    assert set(loaded(data={"train": entry})["data"]["train"]) == {"path", "fields", "sha256", "questions"}
    assert "data.train.path: data set 'data.train': no column for 'answer'" in refusal(
        data={"train": {"path": str(file)}}
    )
    assert "not the `sha256` abc that is asked for" in refusal(data={"train": {**entry, "sha256": "abc"}})
    assert "has 2 rows where `count` says 3" in refusal(data={"train": {**entry, "count": 3}})
    assert "ids under `drop` that are not there: z" in refusal(data={"train": {**entry, "drop": ["z"]}})


def test_a_file_of_the_web_is_known_by_the_hash_it_must_have() -> None:
    entry = {"url": "https://example.org/a.jsonl", "sha256": "abc"}
    config = loaded(benchmarks={"own": {"problems": entry, "samples": 8, "k": [1]}})
    assert sample_settings(config, "ci", "grpo", "grpo", 0, "own")["data"]["problems"] == entry


@pytest.mark.parametrize("pin", [{"fingerprint": "ab" * 32}, {"count": 3}])
def test_what_a_source_must_hold_is_checked_and_trains_and_samples_nothing_again(pin: dict[str, Any]) -> None:
    entry = {"hub": "a/b", "revision": "0" * 40}
    one, two = (loaded(data={"train": {**entry, **more}}) for more in ({}, pin))
    assert problem_settings(two, "train") != problem_settings(one, "train")
    assert problem_settings(two, "validation") == problem_settings(one, "validation")
    assert train_settings(two, "ci", "grpo", 0) == train_settings(one, "ci", "grpo", 0)
    assert sample_settings(two, "ci", "base", "base", 0, "train") == sample_settings(
        one, "ci", "base", "base", 0, "train"
    )


def test_a_model_s_own_prompt_reaches_its_jobs_and_no_others() -> None:
    config = loaded(
        prompt={"stop": ["\n\nUser:"], "max_tokens": 99},
        models={"chat": {"source": {"path": "."}, "prompt": {"template": "chat", "format": "{problem}", "stop": []}}},
    )
    own = {"template": "chat", "format": "{problem}", "system": None, "stop": [], "stop_tokens": [], "max_tokens": 99}
    own["examples"] = []
    trained = train_settings(config, "chat", "grpo", 0)
    assert trained["prompt"] == own
    assert trained["model"] == {
        "source": {"path": ".", **dict.fromkeys(("hub", "revision", "gguf", "package", "sha256"))}
    }
    assert sample_settings(config, "chat", "grpo", "grpo", 0, "moves-easy")["prompt"] == own
    for job in (train_settings(config, "ci", "grpo", 0), model_settings(config, "ci")):
        assert job["prompt"] == {**config["prompt"], "stop": ["\n\nUser:"], "max_tokens": 99}
    same = loaded(models={"chat": {"source": {"path": "."}}})
    assert sample_settings(same, "chat", "grpo", "grpo", 0, "moves-easy")["prompt"] == same["prompt"]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("a: {b: 1, c: 2, b: 3}\n")
    with pytest.raises(InputError, match=r"settings.yaml: not YAML \(the key 'b' stands twice .*line 1, column 17"):
        read_settings(file)


def test_a_method_without_a_file_lists_the_known_ones() -> None:
    assert "method 'psychic' has no file config/methods/psychic.yaml" in refusal(runs={"x": {"method": "psychic"}})


@pytest.mark.parametrize(
    ("method", "numbers", "said"),
    [
        ("datpo", {"max_forks": 2.5}, "max_forks must be a whole number, 0 or more, not 2.5"),
        ("datpo", {"max_forks": -1}, "max_forks must be a whole number, 0 or more, not -1"),
        ("datpo", {"roots": True}, "roots must be a whole number, 0 or more, not True"),
        ("datpo", {"value": 3}, "value must be one of all_descendants, branches_only, branches_and_base, not 3"),
        ("datpo", {"fork_rule": 3}, "fork_rule must be a word, not 3"),
        ("datpo", {"alpha": 0.2}, "alpha must be a list of numbers, not 0.2"),
        ("datpo", {"alpha": [0.2, "x"]}, "alpha must be a list of numbers"),
        ("datpo", {"alpha": [0.2, float("nan")]}, "alpha must be a list of numbers"),
        ("grpo", {"sample_std": 1}, "sample_std must be true or false, not 1"),
        (
            "grpo",
            {"aggregate": "median"},
            "aggregate must be one of token_mean, sequence_mean, tree_mean, constant, not 'med",
        ),
        ("grpo", {"clip": "all"}, "clip must be a list of numbers or one of none, not 'all'"),
    ],
)
def test_a_number_of_another_kind_is_refused_by_its_method(method: str, numbers: dict[str, Any], said: str) -> None:
    usual = yaml.safe_load((ROOT / f"config/methods/{method}.yaml").read_text(encoding="utf-8"))
    load_method(method, usual)
    with pytest.raises(InputError, match=re.escape(f"method {method!r}: {said}")):
        load_method(method, {**usual, **numbers})


# All sets: those that are held out are checked against the training set again.
SETS = {"set train", "set validation", "set easy", "set hard"}


def slices(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of every kind of job."""
    return {
        "set train": problem_settings(config, "train"),
        "set validation": problem_settings(config, "validation"),
        "set easy": problem_settings(config, "benchmarks/moves-easy"),
        "set hard": problem_settings(config, "benchmarks/moves-hard"),
        "model": model_settings(config, "ci"),
        "train grpo": train_settings(config, "ci", "grpo", 0),
        "train datpo": train_settings(config, "ci", "datpo", 0),
        "sample easy": sample_settings(config, "ci", "grpo", "grpo", 0, "moves-easy"),
        "sample hard": sample_settings(config, "ci", "grpo", "grpo", 0, "moves-hard"),
        "sample train": sample_settings(config, "ci", "base", "base", 0, "train"),
        "score hard": score_settings(config, "moves-hard"),
        "metrics hard": metrics_settings(config, "moves-hard"),
        "difficulty": difficulty_settings(config),
        "tables": table_settings(config),
    }


@pytest.mark.parametrize(
    ("overrides", "changed"),
    [
        ({"seeds": [0, 1]}, {"tables"}),
        ({"runs": {"grpo2": {"method": "grpo"}}}, {"tables"}),
        ({"jobs": {"threads": 4}}, set()),
        ({"runs": {"datpo": {"numbers": {"roots": 2}}}}, {"train datpo"}),
        ({"train": {"learning_rate": 1}}, {"train grpo", "train datpo"}),
        ({"benchmarks": {"aaa": {"problems": {"levels": [1], "count": 2}, "samples": 8, "k": [1]}}}, {"tables"}),
        ({"benchmarks": {"moves-hard": {"k": [1]}}}, {"metrics hard"}),
        ({"benchmarks": {"moves-hard": {"samples": 10}}}, {"sample hard"}),
        ({"benchmarks": {"moves-hard": {"problems": {"count": 3}}}}, {"set hard", "sample hard", "score hard"}),
        # which the trainings of this scale look at
        ({"data": {"validation": {"count": 3}}}, {"set validation", "train grpo", "train datpo"}),
        ({"evaluation": {"runs": 4}}, {"metrics hard"}),
        ({"evaluation": {"checker": "datpo_release"}}, {"score hard"}),
        ({"data": {"train": {"count": 3}}}, {*SETS, "train grpo", "train datpo", "sample train"}),
        ({"data": {"validation": {"from_train": 9}}}, {*SETS, "train grpo", "train datpo", "sample train"}),
        ({"evaluation": {"bootstrap": 7}}, {"metrics hard"}),
        ({"evaluation": {"truncated": "graded"}}, {"score hard"}),
        ({"evaluation": {"max_new_tokens": 7}}, {"sample easy", "sample hard", "sample train"}),
        ({"difficulty": {"samples": 13}}, {"difficulty", "sample train"}),
    ],
)
def test_a_key_reaches_the_jobs_that_depend_on_it_and_no_others(overrides: Any, changed: set[str]) -> None:
    before, after = slices(loaded()), slices(loaded(**overrides))
    assert {job for job in before if before[job] != after[job]} == changed


def test_math_sets_do_not_depend_on_each_other() -> None:
    config = load_config(ROOT, {"scale": "paper"})
    wider = load_config(ROOT, {"scale": "paper", "benchmarks": {"AIME25": {"problems": {"split": "x"}}}})
    model = next(iter(config["models"]))
    for name, same in (("AIME24", True), ("AIME25", False)):
        first, second = (sample_settings(each, model, "base", "base", 0, name) for each in (config, wider))
        assert (first == second) == same


def test_equal_settings_are_equal_bytes(tmp_path: Path) -> None:
    write_settings('{"b": {"d": 5e-06, "c": "é\\n"}, "a": null}', tmp_path / "one.yaml")
    write_settings('{"a": null, "b": {"c": "é\\n", "d": 0.000005}}', tmp_path / "two.yaml")
    assert (tmp_path / "one.yaml").read_bytes() == (tmp_path / "two.yaml").read_bytes()
    assert read_settings(tmp_path / "one.yaml") == {"a": None, "b": {"c": "é\n", "d": 5e-6}}


@pytest.mark.parametrize(("text", "said"), [("a: [", "not YAML"), ("- a", "`key: value`"), (None, "no such file")])
def test_a_settings_file_that_is_none_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "settings.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        read_settings(file)


def schema() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / SCHEMA).read_text(encoding="utf-8"))
    return found


def test_every_key_has_a_type_and_a_description_and_every_map_refuses_unknown_keys() -> None:
    for name, key in known_keys(schema(), schema()["$defs"]):
        assert {"type", "description"} <= set(key), name
        assert key["type"] != "object" or "additionalProperties" in key or name.endswith("numbers"), name


# Of these it matters which are given: a source of problems or of a model, a kind of duration.
ABSENT = (
    r"(problems|train|validation|pretrain|source|method|task|benchmark|structures)"
    r"|.*(problems|data\.train|validation|duration|checkpoints)\..*"
)


def test_every_other_key_has_a_default() -> None:
    for name, key in known_keys(schema(), schema()["$defs"]):
        last = name.rsplit(".", 1)[-1]
        assert "default" in key or re.fullmatch(ABSENT, last) or re.fullmatch(ABSENT, name), name


def test_the_readme_explains_every_key() -> None:
    """Its table is made from the schema; on a difference, copy the lines this test shows."""
    told = (ROOT / "config/README.md").read_text(encoding="utf-8")
    missing = [line for line in readme_lines() if line not in told]
    assert not missing, "config/README.md lacks or misstates:\n" + "\n".join(missing)


def readme_lines() -> list[str]:
    lines = []
    for name, key in known_keys(schema(), schema()["$defs"]):
        if re.match(
            r"runs\.NAME\.train\.|models\.NAME\.prompt\.|data\.validation\.|benchmarks\.NAME\.problems\."
            r"|studies\.NAME\.(runs\.NAME|train|checkpoints)\.",
            name,
        ):
            continue  # the same keys as `train.`, `prompt.`, `data.train.` and `runs.NAME.`
        kind = key["type"] if isinstance(key["type"], str) else " or ".join(key["type"])
        kind = " \\| ".join(f"`{choice}`" for choice in key["enum"]) if "enum" in key else kind
        default = f"`{json.dumps(key['default'])}`" if "default" in key else ""
        lines.append(f"| `{name}` | {kind} | {default} | {key['description']} |")
    return lines
