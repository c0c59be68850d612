"""The slice of the configuration that each job is given.

Every job reads one small file holding just the keys it depends on, so an edit of another key re-runs nothing, and
that file alone is enough to repeat the job by hand.
"""

from __future__ import annotations

from typing import Any

from datpo.config_choice import choice_prompts
from datpo.config_studies import BASE, benchmarks_of, models_of

Settings = dict[str, Any]

# What of the training settings says how trees grow and are graded.
EXPLORED = (
    *("max_new_tokens", "length_limit", "temperature", "truncated", "graded_text", "checker", "generation_batch"),
    *("prompts_per_step", "precision", "engine", "token_budget", "logit_budget"),
)


def problem_settings(config: Settings, name: str) -> Settings:
    """What one problem set is made from: "train", "validation" or "benchmarks/NAME".

    A held-out set names the training set's recipe too, so that another one is checked against it again.
    """
    own = {"set": name, "domain": config["domain"], **_recipe(config, name, pins=True)}
    return own if "from_train" in own or name == "train" else {**own, "apart_from": _recipe(config, "train")}


def model_settings(config: Settings, model: str) -> Settings:
    """What a base model is fetched from, or pre-trained with."""
    chosen = config["models"][model]
    if "source" in chosen:
        return {"source": chosen["source"]}
    return {"pretrain": chosen["pretrain"], "prompt": chosen["prompt"]}


def embedder_settings(config: Settings, run: str) -> Settings:
    """What a run's embedder is fetched from; `base` has that of the experiment."""
    train = config["trainings"].get(run, config)["train"]
    return {key: value for key, value in train.items() if key.startswith("embedder")}


def train_settings(config: Settings, model: str, run: str, seed: int) -> Settings:
    """What one training run depends on, its model and training data included."""
    chosen = config["trainings"][run]
    whole = config["models"][model]
    subset = chosen["train"]["subset"]
    return {
        "identity": _identity(config, model, chosen["method"], run, seed),
        "domain": config["domain"],
        "prompt": whole["prompt"],
        "method": chosen["numbers"],
        "train": chosen["train"],
        "model": {key: value for key, value in whole.items() if key != "prompt"},
        "data": _recipe(config, "train"),
        **({"difficulty": _difficulty_of(config, model)} if subset else {}),
        **({"validation": _recipe(config, "validation")} if chosen["train"]["validate_every"] else {}),
    }


def _difficulty_of(config: Settings, model: str) -> Settings:
    """All that the bands of the training problems depend on, for one model."""
    sampled = sample_settings(config, model, "base", "base", 0, "train")
    return {**difficulty_settings(config), "sampled": sampled, "scored": score_settings(config, "train")}


def explore_settings(config: Settings, name: str) -> Settings:
    """What an exploration depends on, but for the checkpoint that samples."""
    exploration = config["explorations"][name]
    model, run = explored_model(config, name), exploration["run"]
    train = config["trainings"].get(run, config)["train"]
    method, seed = ("base", 0) if run == BASE else (config["trainings"][run]["method"], config["seeds"][0])
    structures = exploration["structures"].items()
    return {
        "identity": _identity(config, model, method, run, seed),
        "exploration": name,
        "domain": config["domain"],
        "prompt": config["models"][model]["prompt"],
        "data": _recipe(config, set_of(exploration["benchmark"])),
        **{key: exploration[key] for key in ("benchmark", "problems", "repeats")},
        "structures": [{"name": structure, **chosen} for structure, chosen in structures],
        "train": {**{key: train[key] for key in EXPLORED}, **embedder_settings(config, run)},
        "seed": config["evaluation"]["seed"],
    }


def explored_settings(config: Settings, name: str) -> Settings:
    """What tables and figures of an exploration say and need: another bootstrap grows no tree again."""
    return {**explore_settings(config, name), "bootstrap": config["evaluation"]["bootstrap"]}


def explored_model(config: Settings, name: str) -> str:
    """The model of an exploration."""
    return str(config["explorations"][name]["model"] or next(iter(config["models"])))


def sample_settings(
    config: Settings, model: str, method: str, run: str, seed: int, benchmark: str, at: str = ""
) -> Settings:
    """What the samples of one checkpoint on one benchmark depend on; "train" is the training set.

    The checkpoint is the last one where `at` is "", the one that had spent its tokens where it is "/at-tokens", ...
    """
    later = ("bootstrap", "checker", "missing", "runs", "truncated")
    where = {"at": at.removeprefix("/at-")} if at else {}
    return {
        "identity": {**_identity(config, model, method, run, seed), **where},
        **_asked(config, model, benchmark),
        "benchmark": benchmark,
        **{key: value for key, value in config["evaluation"].items() if key not in later},
    }


def score_settings(config: Settings, benchmark: str) -> Settings:
    """How the samples of a benchmark are graded, the answer keys included."""
    chosen = {key: config["evaluation"][key] for key in ("checker", "truncated")}
    return {**chosen, "data": _recipe(config, set_of(benchmark))}


def other_score_settings(config: Settings, benchmark: str) -> Settings:
    """The same for the other one of our checker and the release's, to see where they differ."""
    other = {"own": "datpo_release", "datpo_release": "own"}
    return {**score_settings(config, benchmark), "checker": other[config["evaluation"]["checker"]]}


def metrics_settings(config: Settings, benchmark: str) -> Settings:
    """How the scores of a benchmark are counted."""
    chosen, evaluation = config["benchmarks"][benchmark], config["evaluation"]
    return {
        "k": chosen["k"],
        "runs": evaluation["runs"] if chosen["runs"] is None else chosen["runs"],
        **{key: evaluation[key] for key in ("bootstrap", "missing", "seed")},
    }


def difficulty_settings(config: Settings) -> Settings:
    """How training problems are told apart by difficulty."""
    return dict(config["difficulty"])


def table_settings(config: Settings) -> Settings:
    """What the main table and the figures beside it show."""
    return {
        "models": models_of(config, "table2"),
        "runs": {name: run["method"] for name, run in config["runs"].items()},
        "seeds": config["seeds"],
        "benchmarks": benchmarks_of(config, "table2"),
    }


def theory_settings(config: Settings) -> Settings:
    """How the paper's theorems are checked by drawing."""
    return {"scale": config["scale"], "seed": config["evaluation"]["seed"], "draws": 20_000}


def set_of(benchmark: str) -> str:
    """The problem set behind a benchmark's samples; "train" is the training set, sampled to tell difficulty."""
    return benchmark if benchmark == "train" else f"benchmarks/{benchmark}"


def _identity(config: Settings, model: str, method: str, run: str, seed: int) -> Settings:
    return {"scale": config["scale"], "model": model, "method": method, "run": run, "seed": int(seed)}


def _asked(config: Settings, model: str, benchmark: str) -> Settings:
    """The problems of a benchmark, how often each is put to a model, and in which words."""
    prompt = config["models"][model]["prompt"]
    if benchmark in config["out_of_domain"]:
        return choice_prompts(config, prompt, benchmark)
    n = config["difficulty"]["samples"] if benchmark == "train" else config["benchmarks"][benchmark]["samples"]
    return {
        "domain": config["domain"],
        "prompt": prompt,
        "n": n,
        "data": _recipe(config, set_of(benchmark), keys=False),
    }


def _recipe(config: Settings, name: str, keys: bool = True, pins: bool = False) -> Settings:
    """All that the problems of one set depend on; without their answer keys, all that the questions depend on.

    A `fingerprint`, and the `count` of rows at a source, decide whether a set is made, not what is in it (`pins`):
    writing one down later trains nothing again.
    """
    data, taken = config["data"], config["data"]["validation"].get("from_train")
    if name == "train" or (name == "validation" and taken):
        entry, drawn = data["train"], {"from_train": taken} if taken else {}
    else:
        entry = data["validation"] if name == "validation" else config["benchmarks"][name.split("/", 1)[1]]["problems"]
        drawn = {}
    left_out = {"questions"} if keys else {"sha256"} if "questions" in entry else set()
    if not pins:
        left_out |= {"fingerprint"} if "levels" in entry else {"fingerprint", "count"}
    problems = {key: value for key, value in entry.items() if key not in left_out}
    return {
        "problems": problems,
        **drawn,
        **({"seed": data["seed"]} if drawn or {"levels", "take"} & set(entry) else {}),
    }
