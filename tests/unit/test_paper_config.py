"""The paper's trainings, number by number: what the one file of each resolves to, beside what the sources say.

Every key of that file stands in exactly one of three tables: PAPER (the paper says it), OTHERWISE (the paper says
something else than we do), SILENT (it says nothing). A changed default, and a new key, are noticed here. What follows
from which source, and why: docs/fidelity.md.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from datpo.config import load_config
from datpo.config_slices import metrics_settings, sample_settings, train_settings
from datpo.config_studies import models_of, rows_of
from datpo.methods import load
from datpo.methods.attnrl import INERTIA
from datpo.search.forks import INFLUENTIAL

ROOT = Path(__file__).resolve().parents[2]
BASES = ("Qwen2.5-3B-Base", "Qwen3-4B-Base")
INSTRUCT = "Qwen2.5-3B-Instruct"

# F.2, eq. 5 and so on are the paper's; one cell is every method's; "–": the method has no such number.
PAPER = """
key                    | where               | grpo        | dr_grpo    | treerl     | attnrl     | datpo
domain                 | MATH                | math
train.duration         | one pass of 12,000  | {steps: 750}
train.prompts_per_step | F.2                 | 16
train.temperature      | 1, no top-p         | 1.0
train.max_new_tokens   | 1,024 in training   | 1024
train.learning_rate    | constant            | 5.0e-6
train.betas            | AdamW               | [0.9, 0.999]
train.minibatch_size   | F.2                 | 64
train.minibatch        | F.2: blocks, paths  | units
train.embedder         | gte-large           | Alibaba-NLP/gte-large-en-v1.5
train.subset           | all of MATH         | null
method.roots           | F.2                 | 16          | 16         | 6          | 6          | 4
method.forks           | F.2                 | –           | –          | 2          | –          | –
method.rounds          | F.2                 | –           | –          | 1          | –          | –
method.siblings        | F.2                 | –           | –          | 2          | 2          | –
method.max_forks       | F.2                 | –           | –          | –          | 2          | 3
method.max_siblings    | F.2                 | –           | –          | –          | –          | 4
method.clip            | F.2                 | [0.2, 0.28] | [0.2, 0.2] | [0.2, 0.2] | [0.2, 0.2] | [0.2, 0.2]
method.aggregate       | F.1, eq. 5; Dr.GRPO | token_mean  | constant   | –          | –          | token_mean
method.credit          | AttnRL's eq. 2, 3   | –           | –          | paper      | –          | –
method.adaptive        | section 4; AttnRL's | –           | –          | –          | true       | true
method.off_policy      | Table 9; AttnRL's   | –           | –          | –          | true       | false
method.alpha           | F.2                 | –           | –          | –          | –          | [0.2, 0.0]
method.fork_rule       | section 4           | –           | –          | –          | –          | sent-entropy
method.fork_offset     | Algorithms 1 and 2  | –           | –          | –          | –          | after_first_token
method.fill_forks      | Algorithm 2         | –           | –          | –          | –          | false
method.value           | eq. 7               | –           | –          | –          | –          | all_descendants
method.compared        | eq. 8               | –           | –          | –          | –          | siblings
method.bonus           | section 4, Table 4  | –           | –          | –          | –          | positive
"""

OTHERWISE = """
key                    | against             | grpo        | dr_grpo    | treerl     | attnrl     | datpo
method.uncertainty     | high-entropy tokens | –           | –          | surprise   | –          | –
method.rounding        | AttnRL's: round     | –           | –          | –          | ceil       | –
data.from_train        | none are set aside  | 100
"""

SILENT = """
key                          | chosen for            | grpo  | dr_grpo | treerl | attnrl | datpo
train.epochs                 | released code         | 2
train.weight_decay           | released code         | 0.0
train.gradient_clip          | released code         | 1.0
train.precision              | released code         | bfloat16
train.truncated              | released code         | graded
train.length_limit           | released code         | branch
train.graded_text            | branches go on        | response
train.checker                | right rewards         | own
train.end_token              | stopping is an action | trained
train.embedder_revision      | a pin                 | 104333d6af6f97649377c2afbde10a7704870c7b
train.embedder_remote_code   | that model's need     | true
train.embedder_code_revision | a pin                 | 40ced75c3017eb27626c9d4ea981bde21a2662f4
train.problems               | all there are         | null
train.save_trees             | nothing to look at    | []
train.validate_every         | choosing nothing      | 50
train.validation_samples     | choosing nothing      | 4
train.state_every            | going on after a stop | 10
prompt.template              | base models           | plain
prompt.system                | base models           | null
prompt.examples              | base models           | []
prompt.stop                  | the model's own end   | []
prompt.stop_tokens           | the model's own end   | []
prompt.max_tokens            | never cutting one     | null
method.aggregate             | the framework's loss  | –     | –       | token_mean | token_mean | –
method.sample_std            | GRPO-Zero             | false | –       | –      | –      | –
method.spacing               | short answers         | –     | –       | –      | 0      | –
method.root_value            | released code         | –     | –       | –      | –      | base
"""

# Not held here: what only memory and speed hang on, wording, and each job's own names and places.
FREE = (
    *("train.token_budget", "train.logit_budget", "train.generation_batch", "train.activation_checkpointing"),
    *("train.engine", "train.checkpoints", "prompt.format"),
    *("identity", "model", "validation", "difficulty", "data.seed", "data.problems"),
)

# Each ablation: where it stands, the models it trains, the training it is like, and what it changes.
LIKE: dict[str, tuple[str, tuple[str, ...], str, dict[str, Any]]] = {
    **{name: ("Table 2", BASES, name, {}) for name in ("grpo", "dr_grpo", "treerl", "attnrl", "datpo")},
    "datpo_random": ("Table 3", BASES[:1], "datpo", {"method.fork_rule": "random"}),
    "datpo_fixed_seg": ("Table 3", BASES[:1], "datpo", {"method.fork_rule": "fixed-seg"}),
    "datpo_atb": ("Table 3", BASES[:1], "datpo", {"method.fork_rule": "atb"}),
    "datpo_tok_entropy": ("Table 3", BASES[:1], "datpo", {"method.fork_rule": "tok-entropy"}),
    "datpo_0_to_0": ("Table 4", BASES[:1], "datpo", {"method.alpha": [0.0, 0.0]}),
    "datpo_0.4_to_0": ("Table 4", BASES[:1], "datpo", {"method.alpha": [0.4, 0.0]}),
    "datpo_0.2_to_0_all_blocks": ("Table 4", BASES[:1], "datpo", {"method.bonus": "all"}),
    "datpo_0.2_to_0.2": ("Table 4", BASES[:1], "datpo", {"method.alpha": [0.2, 0.2]}),
    "datpo_0.2_to_-0.2": ("Table 4", BASES[:1], "datpo", {"method.alpha": [0.2, -0.2]}),
    "datpo_off_policy": ("Table 9", BASES[:1], "datpo", {"method.off_policy": True}),
    "datpo_static": (
        *("Table 12", BASES[:1], "datpo"),
        {"method.roots": 6, "method.max_forks": 2, "method.max_siblings": 2, "method.adaptive": False},
    ),
    "datpo_mpnet": (
        *("Table 13", BASES[:1], "datpo"),
        {
            "train.embedder": "sentence-transformers/all-mpnet-base-v2",
            "train.embedder_revision": "9a3225965996d404b775526de6dbfe85d3368642",
            "train.embedder_remote_code": False,
            "train.embedder_code_revision": None,
        },
    ),
    "datpo_bge_m3": (
        *("Table 13", BASES[:1], "datpo"),
        {
            "train.embedder": "BAAI/bge-m3",
            "train.embedder_revision": "5617a9f61b028005a4858fdac845db406aefb181",
            "train.embedder_remote_code": False,
            "train.embedder_code_revision": None,
        },
    ),
    "datpo_gte_base": (
        *("Table 13", BASES[:1], "datpo"),
        {
            "train.embedder": "Alibaba-NLP/gte-base-en-v1.5",
            "train.embedder_revision": "a829fd0e060bb84554da0dfd354d0de0f7712b7f",
        },
    ),
    "treerl_wider": ("Table 14", BASES[:1], "treerl", {"method.roots": 4, "method.forks": 3, "method.siblings": 4}),
    "attnrl_wider": ("Table 14", BASES[:1], "attnrl", {"method.roots": 4, "method.max_forks": 3, "method.siblings": 4}),
    # Neither clip nor KL, one update of 256 responses a step, five passes over a band of 1,400 problems; where a larger
    # G had made the 110 updates of G = 4 it is evaluated too.
    **{
        f"grpo_{subset}_g{size}": (
            *("Figure 1, appendix B", (INSTRUCT,), "grpo"),
            {
                **{"method.roots": size, "method.clip": "none", "train.prompts_per_step": prompts},
                **{"train.epochs": 1, "train.minibatch_size": 256, "train.subset": subset},
                **{"train.duration": {"passes": 5, "updates": 110}, "prompt.template": "chat"},
            },
        )
        for subset in ("easy", "medium", "hard")
        for size, prompts in ((4, 64), (8, 32), (16, 16))
    },
}
METHODS = ("grpo", "dr_grpo", "treerl", "attnrl", "datpo")
RUNS = [(model, run) for run, (_, models, _, _) in LIKE.items() for model in models]


def told(table: str) -> dict[str, dict[str, Any]]:
    """A table's values by method and key; cells are YAML."""
    header, *lines = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    found: dict[str, dict[str, Any]] = {method: {} for method in METHODS}
    assert tuple(header[2:]) == METHODS
    for key, _, *cells in lines:
        for method, cell in zip(METHODS, cells * 5 if len(cells) == 1 else cells, strict=True):
            if cell != "–":
                found[method][key] = yaml.safe_load(cell)
    return found


def expected(table: str, run: str) -> dict[str, Any]:
    """What a table says of a training; an ablation's changes are laid over the training it is like."""
    _, _, like, changes = LIKE[run]
    known = told(table)[like]
    return {**known, **{key: value for key, value in changes.items() if key in known}}


@cache
def config() -> dict[str, Any]:
    return load_config(ROOT, {"scale": "paper"})


@cache
def resolved(model: str, run: str) -> dict[str, Any]:
    """The keys of the file that the training is given; a map whose keys are units (`duration`) is one value."""
    return dict(leaves(train_settings(config(), model, run, 0)))


def leaves(settings: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        whole = not isinstance(value, Mapping) or key in ("duration", "checkpoints")
        yield from [(at + key, value)] if whole else leaves(value, f"{at}{key}.")


def free(key: str) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in FREE)


def test_the_trainings_are_the_paper_s_on_the_paper_s_models() -> None:
    assert sorted(LIKE) == sorted(config()["trainings"])
    shown = {
        (model, run)
        for study in config()["studies"]
        for model in models_of(config(), study)
        for _, run in rows_of(config(), study)
        if run != "base"
    }
    assert shown == set(RUNS)
    for run, (place, *_) in LIKE.items():
        study = place.split(",")[0].lower().replace(" ", "")
        assert run in [row for _, row in rows_of(config(), study)], place


# One row for each run and key: 35 files.
HELD = [(model, run, key, value) for model, run in RUNS for key, value in expected(PAPER, run).items()]


@pytest.mark.parametrize(("model", "run", "key", "value"), HELD, ids=[f"{m}-{r}-{k}" for m, r, k, _ in HELD])
def test_what_the_paper_says(model: str, run: str, key: str, value: Any) -> None:
    assert resolved(model, run)[key] == value


@pytest.mark.parametrize("table", [OTHERWISE, SILENT], ids=["otherwise", "silent"])
@pytest.mark.parametrize(("model", "run"), RUNS)
def test_what_we_chose(model: str, run: str, table: str) -> None:
    there, chosen = resolved(model, run), expected(table, run)
    assert {key: there.get(key, "no such key") for key in chosen} == chosen


@pytest.mark.parametrize(("model", "run"), RUNS)
def test_every_key_stands_in_one_table_and_every_change_of_an_ablation_too(model: str, run: str) -> None:
    tables = [set(expected(table, run)) for table in (PAPER, OTHERWISE, SILENT)]
    assert [key for key in resolved(model, run) if sum(key in table for table in tables) + free(key) != 1] == []
    assert set(LIKE[run][3]) <= set().union(*tables)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_s_file_names_all_its_numbers(method: str) -> None:
    """So that the training's file does, and no default hides in the code."""
    build = importlib.import_module(f"datpo.methods.{method}").build
    numbers = config()["runs"][method]["numbers"]
    assert set(numbers) == set(inspect.signature(build).parameters)
    load(method, numbers)


def test_the_models_and_the_problems_are_the_paper_s() -> None:
    hubs = {name: model["source"]["hub"] for name, model in config()["models"].items()}
    assert hubs == {BASES[0]: "Qwen/Qwen2.5-3B", BASES[1]: "Qwen/Qwen3-4B-Base", INSTRUCT: "Qwen/Qwen2.5-3B-Instruct"}
    assert config()["data"]["train"]["count"] == 12_000
    bands = {"easy": [9, 11], "medium": [5, 8], "hard": [1, 4]}  # right ones of 12 samples, 1,400 problems of each
    difficulty = config()["difficulty"]
    assert (difficulty["samples"], difficulty["bands"], difficulty["subset_size"]) == (12, bands, 1400)


def test_what_is_said_of_methods_and_stands_in_no_file() -> None:
    assert INERTIA == 0.9  # AttnRL's dynamic batch, lambda
    assert INFLUENTIAL == 0.8  # AttnRL's candidates are the top 20 %


# benchmark: problems, k, evaluation runs of k samples each (appendix B for those of 256)
EVALUATED = {
    **{"MATH500": (500, 8, 3), "AIME26": (30, 64, 3), "AIME25": (30, 64, 3), "AIME24": (30, 64, 3)},
    **{"AMC23": (40, 64, 3), "MATH500-256": (500, 256, 1), "AIME25-256": (30, 256, 1), "AIME24-256": (30, 256, 1)},
}


def test_every_benchmark_of_the_paper_is_there() -> None:
    assert set(config()["benchmarks"]) == set(EVALUATED)


@pytest.mark.parametrize("benchmark", EVALUATED)
def test_how_checkpoints_are_evaluated(benchmark: str) -> None:
    problems, k, runs = EVALUATED[benchmark]
    sampled = sample_settings(config(), BASES[0], "datpo", "datpo", 0, benchmark)
    counted = metrics_settings(config(), benchmark)
    assert config()["benchmarks"][benchmark]["problems"]["count"] == problems
    assert (sampled["n"], counted["runs"], max(counted["k"])) == (k * runs, runs, k)
    assert (sampled["temperature"], sampled["max_new_tokens"]) == (1.0, 2048)
