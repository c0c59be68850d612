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

from datpo.config import (
    SCHEMA,
    data_settings,
    difficulty_settings,
    known_keys,
    load_config,
    merge,
    metrics_settings,
    model_settings,
    read_settings,
    sample_settings,
    train_settings,
    write_settings,
)
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
    benchmarks = config["benchmarks"]
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
        ({"train": {"learnin_rate": 1}}, "unknown key 'runs.datpo.train.learnin_rate'; did you mean 'learning_rate'?"),
        ({"train": {"epochs": "many"}}, "train.epochs: 'many' is not of type 'integer'"),
        ({"train": {"duration": {"steps": 1, "tokens": 9}}}, "exactly one of steps, tokens, updates"),
        ({"seeds": []}, "seeds: []"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"domain": "chess"}, "domain: 'chess' is not one of"),
        ({"runs": None}, "runs: nothing is listed"),
        ({"runs": {"x": {}}}, "runs.x must be a map that names its `method`"),
        ({"runs": {"x/y": {"method": "grpo"}}}, "x/y"),
        ({"runs": {"base": {"method": "grpo"}}}, "'base' names the base model"),
        ({"benchmarks": {"moves-hard": {"k": [1, 9]}}}, "k = 9 is above its 8 samples"),
        ({"models": {"ci": {"source": {"path": "x"}}}}, "exactly one of `pretrain` and `source`"),
        ({"models": {"other": {"source": {"hub": "a/b"}}}}, "needs `hub` and `revision` (a commit), or `path`"),
        ({"prompt": {"format": "no problem"}}, "prompt.format"),
    ],
)
def test_a_mistake_is_named(overrides: dict[str, Any], said: str) -> None:
    assert said in refusal(**overrides)


def test_an_unknown_scale_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"scale 'huge' has no file .*known: ci, paper, tiny"):
        load_config(ROOT, {"scale": "huge"})


def test_a_method_without_a_file_lists_the_known_ones() -> None:
    assert "method 'psychic' has no file methods/psychic.yaml" in refusal(runs={"x": {"method": "psychic"}})


def slices(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of every kind of job."""
    return {
        "data": data_settings(config),
        "model": model_settings(config, "ci"),
        "train grpo": train_settings(config, "ci", "grpo", 0),
        "train datpo": train_settings(config, "ci", "datpo", 0),
        "sample easy": sample_settings(config, "ci", "grpo", "grpo", 0, "moves-easy"),
        "sample hard": sample_settings(config, "ci", "grpo", "grpo", 0, "moves-hard"),
        "sample train": sample_settings(config, "ci", "base", "base", 0, "train"),
        "metrics hard": metrics_settings(config, "moves-hard"),
        "difficulty": difficulty_settings(config),
    }


@pytest.mark.parametrize(
    ("overrides", "changed"),
    [
        ({"seeds": [0, 1]}, set()),
        ({"jobs": {"threads": 4}}, set()),
        ({"runs": {"datpo": {"numbers": {"roots": 2}}}}, {"train datpo"}),
        ({"train": {"learning_rate": 1}}, {"train grpo", "train datpo"}),
        ({"benchmarks": {"moves-hard": {"k": [1]}}}, {"metrics hard"}),
        ({"benchmarks": {"moves-hard": {"samples": 9}}}, {"sample hard"}),
        ({"benchmarks": {"moves-hard": {"problems": {"count": 3}}}}, {"data", "sample hard"}),
        ({"data": {"train": {"count": 3}}}, {"data", "train grpo", "train datpo", "sample train"}),
        ({"evaluation": {"bootstrap": 7}}, {"metrics hard"}),
        ({"evaluation": {"max_new_tokens": 7}}, {"sample easy", "sample hard", "sample train"}),
        ({"difficulty": {"samples": 11}}, {"difficulty", "sample train"}),
    ],
)
def test_a_key_reaches_the_jobs_that_depend_on_it_and_no_others(overrides: Any, changed: set[str]) -> None:
    before, after = slices(loaded()), slices(loaded(**overrides))
    assert {job for job in before if before[job] != after[job]} == changed


def test_math_sets_do_not_depend_on_each_other() -> None:
    config = load_config(ROOT, {"scale": "paper"})
    wider = load_config(ROOT, {"scale": "paper", "benchmarks": {"AIME25": {"problems": {"count": 3}}}})
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
ABSENT = r"(problems|train|validation|pretrain|source)|.*(problems|data\.train|validation|duration)\..*"


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
        if re.match(r"runs\.NAME\.train\.|data\.validation\.|benchmarks\.NAME\.problems\.", name):
            continue  # the same keys as `train.` and `data.train.`
        kind = key["type"] if isinstance(key["type"], str) else " or ".join(key["type"])
        kind = " \\| ".join(f"`{choice}`" for choice in key["enum"]) if "enum" in key else kind
        default = f"`{json.dumps(key['default'])}`" if "default" in key else ""
        lines.append(f"| `{name}` | {kind} | {default} | {key['description']} |")
    return lines
