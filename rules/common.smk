# The configuration, the paths, and what several rule files share. No rules.
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from datpo.config import DURATIONS, load_config
from datpo.config_choice import SHARED, TASKS, choice_settings, question_settings
from datpo.config_slices import (
    difficulty_settings,
    embedder_settings,
    metrics_settings,
    model_settings,
    other_score_settings,
    problem_settings,
    sample_settings,
    score_settings,
    set_of,
    table_settings,
    train_settings,
)
from datpo.core.errors import InputError
from datpo.methods import load as load_method

# The one list of methods: the rule files.
METHODS = sorted(path.stem for path in (ROOT / "rules/methods").glob("*.smk") if path.stem != "train")


def check_scale(overrides: dict) -> None:
    """Refuse jobs for a cluster at a scale that nobody asked for.

    The profile's `configfile:`, which says the scale, is gone as soon as the command line names another file. Only
    jobs for elsewhere are counted in `nodes`, but in a dry run those of `-j` are too.
    """
    words = [*sys.argv, *(["--profile"] if "SNAKEMAKE_PROFILE" in os.environ else [])]
    elsewhere = any(word.startswith(("--profile", "--executor", "-e")) for word in words)
    if workflow.resource_settings.nodes and elsewhere and "scale" not in overrides:
        raise InputError(
            "config: jobs for a cluster need a scale that is said, and a --configfile takes the place of the "
            "profile's, which says it: add `scale: paper` to your file, or --config scale=paper"
        )


def checked_config(overrides: dict) -> dict:
    """The experiment, or one readable line for each mistake in it."""
    try:
        check_scale(overrides)
        experiment = load_config(ROOT, overrides)
        for name, run in experiment["runs"].items():
            try:
                load_method(run["method"], run["numbers"])
            except InputError as error:
                raise InputError(f"config: run {name!r}: {error}") from None
            if run["method"] not in METHODS:
                raise InputError(
                    f"config: run {name!r}: method {run['method']!r} has no rule file "
                    f"rules/methods/{run['method']}.smk; known: {', '.join(METHODS)}"
                )
    except InputError as error:
        # Snakemake would put the line of this file, where no mistake is, around a WorkflowError.
        sys.exit(str(error))
    return experiment


# `configfile:` is not used: it would lay config.yaml over the scale. So far `config` holds the command line alone.
EXPERIMENT = checked_config(config)
config.clear()
config.update(EXPERIMENT)

if workflow.is_main_process:
    print(f"scale: {config['scale']}", file=sys.stderr)

RESULTS = f"results/{config['scale']}"
RUN = f"{RESULTS}/{{model}}/{{method}}/{{run}}/seed{{seed}}"
# What is sampled and scored: the end of a run (`at` is empty), or where it first had spent one of several durations.
EVALUATED = f"{RUN}{{at}}"
BASE = f"{RESULTS}/{{model}}/base/base/seed0"
BASE_MODELS = [BASE.format(model=model) for model in config["models"]]
TRAINED_RUNS = [
    RUN.format(model=model, method=run["method"], run=name, seed=seed)
    for model in config["models"]
    for name, run in config["runs"].items()
    for seed in config["seeds"]
]

# In a job without a conda environment `python` is the one that runs Snakemake, activated or not.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
shell.prefix(f"export PYTHONPATH='{ROOT}/src'; source '{ROOT}/workflow/job.sh'; ")


def one_of(names) -> str:
    """A wildcard constraint: exactly these names, or nothing at all."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def settings(of, *names):
    """A job's slice of the configuration as JSON: a params function of the wildcards with these names.

    Equal settings give equal text, so a rule that writes them re-runs only if they really changed.
    """

    def slice_of(wildcards) -> str:
        values = [getattr(wildcards, name) for name in names]
        return json.dumps(of(config, *values), sort_keys=True)

    return slice_of


def folder_of(wildcards, output) -> str:
    """The folder that holds all outputs of a job."""
    return str(Path(output[0]).parent)


def checkpoint_of(wildcards) -> str:
    """The folder with all checkpoints of a run."""
    return f"{RUN}/checkpoint".format(**dict(wildcards))


def checkpoint_at(wildcards) -> str:
    """The checkpoint to be sampled."""
    return str(Path(checkpoint_of(wildcards), wildcards.at.rpartition("-")[2]))


def problems_of(wildcards) -> str:
    """The problems behind a benchmark's samples."""
    return f"{RESULTS}/data/{set_of(wildcards.benchmark)}.jsonl"


def task_of(wildcards) -> str:
    """The harness's task file behind an out-of-domain benchmark."""
    return str(ROOT / TASKS / f"{config['out_of_domain'][wildcards.benchmark]['task']}.yaml")


def training_set_of(wildcards) -> list[str]:
    """What a set that is held out must not share a problem with."""
    return [] if wildcards.set == "train" else [f"{RESULTS}/data/train.jsonl"]


def log_of(wildcards) -> list[str]:
    """The training log behind a checkpoint; a base model has none of ours."""
    return [] if wildcards.method == "base" else [f"{RUN}/metrics.jsonl".format(**dict(wildcards))]


def validation_set_of(wildcards) -> list[str]:
    """What a training looks at now and then, if it does."""
    looks = config["runs"][wildcards.run]["train"]["validate_every"]
    return [f"{RESULTS}/data/validation.jsonl"] if looks else []


def embedder_of(wildcards) -> list[str]:
    """The sign that what a training measures diversity with has been fetched, if it has to be."""
    run = config["runs"][wildcards.run]
    name, used = run["train"]["embedder"], load_method(run["method"], run["numbers"]).groups is not None
    fetched = used and name != "lexical" and not Path(name).is_dir()
    return [f"{RESULTS}/embedders/{wildcards.run}.json"] if fetched else []


def model_job(hours: int) -> dict:
    """Resources of a job that loads a model and takes at most about so long at the paper's scale."""
    jobs = config["jobs"]
    resources = {
        "runtime": hours * 60,
        "mem_mb": lambda wildcards, attempt: attempt * jobs["memory_gb"] * 1000,
    }
    return resources | ({"gpu": jobs["gpus"]} if jobs["gpus"] else {})


# With several durations the checkpoint that first had spent each is evaluated too.
BUDGETS = [
    unit
    for unit in DURATIONS
    if all(
        unit in run["train"]["duration"] and len(run["train"]["duration"]) > 1
        for run in config["runs"].values()
    )
]


def tables_at(kind: str):
    """The tables at equal budgets; asking for them where there can be none is a mistake."""

    def paths(wildcards) -> list[str]:
        if not BUDGETS:
            raise InputError("budgets: some run has not several durations; see config/scales/budgets.yaml")
        return expand(rules.write_table2_at.output[kind], unit=BUDGETS)

    return paths


SETS = ["train", "validation", *map(set_of, config["benchmarks"])]


wildcard_constraints:
    model=one_of(config["models"]),
    method=one_of(["base", *METHODS]),
    run=one_of(["base", *config["runs"]]),
    seed=r"\d+",
    at=rf"(?:/at-(?:{one_of(DURATIONS)}))?",
    benchmark=one_of(["train", *config["benchmarks"]]),
    set=one_of(SETS),
