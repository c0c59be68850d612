# The configuration, the paths, and what several rule files share. No rules.
import json
import os
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from datpo.config import DURATIONS, load_config
from datpo.config_choice import SHARED, TASKS, choice_settings, question_settings
from datpo.config_slices import (
    difficulty_settings,
    embedder_settings,
    explore_settings,
    explored_model,
    explored_settings,
    metrics_settings,
    model_settings,
    other_score_settings,
    problem_settings,
    sample_settings,
    score_settings,
    set_of,
    table_settings,
    theory_settings,
    train_settings,
)
from datpo.config_studies import (
    BASE as UNTRAINED,
    FORK_TABLES,
    SCORES,
    absences,
    benchmarks_of,
    checkpoints_of,
    ends_together,
    lacking,
    models_of,
    models_told_by_difficulty,
    rows_of,
    study_settings,
)
from datpo.core.errors import InputError
from datpo.core.spent import NOTES, drop_accepted
from datpo.data.packages import INSTALLED
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
        for name, run in experiment["trainings"].items():
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

# Studies and explorations of which nothing is there: they are left out, and refused where they are asked for.
LACKING = lacking(config)

if workflow.is_main_process:
    print(f"scale: {config['scale']}", file=sys.stderr)
    for name, reason in absences(config):
        print(f"{name}: {reason}", file=sys.stderr)

RESULTS = f"results/{config['scale']}"
RUN = f"{RESULTS}/{{model}}/{{method}}/{{run}}/seed{{seed}}"
# What is sampled and scored: the end of a run (`at` is empty), where it first had spent one of several durations
# (`/at-tokens`), or some of one (`/at-tokens-100000`).
EVALUATED = f"{RUN}{{at}}"
BASE = f"{RESULTS}/{{model}}/base/base/seed0"
BASE_MODELS = [BASE.format(model=model) for model in models_of(config, "table2")]
TRAINED_RUNS = [
    RUN.format(model=model, method=run["method"], run=name, seed=seed)
    for model in models_of(config, "table2")
    for name, run in config["runs"].items()
    for seed in config["seeds"]
]
BENCHMARKS = benchmarks_of(config, "table2")

# Where jobs note what they could have gone on from (src/datpo/core/spent.py).
SPENT = Path(".snakemake/spent")

# In a job without a conda environment `python` is the one that runs Snakemake, activated or not.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
shell.prefix(f"export PYTHONPATH='{ROOT}/src' {NOTES}={SPENT}; source '{ROOT}/workflow/job.sh'; ")


CAPTIONS = yaml.safe_load((ROOT / "workflow/report/captions.yaml").read_text(encoding="utf-8"))


def caption_of(name: str) -> str:
    """What stands on the report page beneath a table or figure; nothing under those of one's own."""
    return CAPTIONS.get(name, {"caption": ""})["caption"]


def labels_of(name: str) -> dict[str, str]:
    """How a table or figure is listed on the report page: its number, and what it shows."""
    number = re.search(r"\d+", name)
    return {
        "number": f"{int(number[0]):02d}" if number else "",
        "shows": CAPTIONS.get(name, {"title": name})["title"],
    }


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
    return str(Path(checkpoint_of(wildcards), Path(wildcards.at).name.removeprefix("at-")))


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


def training_problems_of(wildcards) -> str:
    """The file of the problems that a training is given."""
    subset = config["trainings"][wildcards.run]["train"]["subset"]
    whole = f"{RESULTS}/data/train.jsonl"
    return f"{RESULTS}/{wildcards.model}/difficulty/{subset}.jsonl" if subset else whole


def made_problems_of(wildcards) -> str:
    """What makes that file: itself, or the folder of all subsets by difficulty."""
    path = Path(training_problems_of(wildcards))
    return str(path.parent if config["trainings"][wildcards.run]["train"]["subset"] else path)


def validation_set_of(wildcards) -> list[str]:
    """What a training looks at now and then, if it does."""
    looks = config["trainings"][wildcards.run]["train"]["validate_every"]
    return [f"{RESULTS}/data/validation.jsonl"] if looks else []


def packed(model: dict) -> bool:
    """Whether a model comes as a GGUF file."""
    return bool(model.get("source", {}).get("gguf"))


def embedder_of(wildcards) -> list[str]:
    """The sign that what a training measures diversity with has been fetched, if it has to be."""
    run = config["trainings"][wildcards.run]
    return fetched_embedder(wildcards.run) if load_method(run["method"], run["numbers"]).groups else []


def fetched_embedder(run: str) -> list[str]:
    """The sign that the embedder of a training's settings has been fetched, if it has to be."""
    name = embedder_settings(config, run)["embedder"]
    here = name == "lexical" or name.startswith(INSTALLED) or Path(name).is_dir()
    return [] if here else [f"{RESULTS}/embedders/{run}.json"]


include: "cluster.smk"


# The environment of such a job. The settings choose its build of torch: environments are often made on a login node,
# which has no GPU to be found.
LEARN = str(ROOT / "envs" / ("learn_cuda.yaml" if config["jobs"]["gpus"] else "learn.yaml"))


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

# Where along a training checkpoints may be evaluated.
ALONG = [
    f"at-{unit}-{amount}"
    for unit in DURATIONS
    for amount in sorted(
        {each for run in config["trainings"].values() for each in run["train"]["checkpoints"].get(unit, ())}
    )
]


wildcard_constraints:
    model=one_of(config["models"]),
    method=one_of(["base", *METHODS]),
    run=one_of(["base", *config["trainings"]]),
    seed=r"\d+",
    at=rf"(?:/(?:{one_of([*(f'at-{unit}' for unit in DURATIONS), *ALONG])}))?",
    benchmark=one_of(["train", *config["benchmarks"]]),
    set=one_of(SETS),
    study=one_of(config["studies"]),
    exploration=one_of(config["explorations"]),
