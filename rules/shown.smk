# What tables, figures, explorations and the plan are made of. No rules.
from datpo.plan.needs import plan_settings

TABLES = [name for name in config["studies"] if name.startswith("table") and name != "table2"]
# Each figure's study, and what of it the figure reads.
FIGURES = {
    "figure1": ("figure1", {"metrics"}),
    "figure1_updates": ("figure1", {"metrics at updates"}),
    "figure4": ("figure4", {"metrics", "metrics along", "logs"}),
    "figure5": ("figure5", {"logs"}),
    "figure6": ("figure6", {"metrics"}),
    "figure7": ("figure1", {"metrics"}),
    "figure11": ("figure11", {"metrics", "metrics along", "logs"}),
}


def there(name: str) -> str:
    """The name of a study or an exploration; InputError if it has been taken away or nothing is left of it."""
    if name not in {**config["studies"], **config["explorations"]}:
        raise InputError(
            f"{name}: this scale, or --config, sets it to null; take that away, or leave {name} out"
        )
    if name in LACKING:
        raise InputError(f"{name}: {LACKING[name]}")
    return name


def checkpoint_folders(study: str, where: str = "") -> list[str]:
    """The folders of all checkpoints that a study compares, `where` along their trainings; an untrained model is as it is."""
    return [
        folder
        for model in models_of(config, study)
        for _, run in rows_of(config, study)
        for folder in (
            [BASE.format(model=model)]
            if run == UNTRAINED
            else expand(
                f"{RUN}/{where}" if where else RUN,
                model=model,
                method=config["trainings"][run]["method"],
                run=run,
                seed=config["seeds"],
            )
        )
    ]


def metrics_in(study: str, where: str = "") -> list[str]:
    """The metrics files of those checkpoints."""
    return expand(
        "{folder}/metrics/{benchmark}.json",
        folder=checkpoint_folders(study, where),
        benchmark=benchmarks_of(config, study),
    )


def logs_in(study: str) -> list[str]:
    """The logs of a study's trainings."""
    return [
        f"{folder}/metrics.jsonl"
        for folder in checkpoint_folders(study)
        if UNTRAINED not in Path(folder).parts
    ]


def table_metrics(wildcards) -> list[str]:
    """What a table of scores reads; one of times alone needs no samples."""
    scored = set(SCORES) & set(config["studies"][there(wildcards.study)]["columns"])
    return metrics_in(wildcards.study) if scored else []


def figure_metrics(figure: str) -> list[str]:
    """What a figure reads of its study's checkpoints: the untrained ones, and those at the end, at equal updates or on the way."""
    study, reads = there(FIGURES[figure][0]), FIGURES[figure][1]
    found = metrics_in(study) if "metrics" in reads else []
    if "metrics at updates" in reads:
        if not ends_together(config, study, "updates"):
            raise InputError(
                f"{figure}: some training's duration does not name `updates` beside another unit"
            )
        found += metrics_in(study, "at-updates")
    if "metrics along" in reads:
        amounts = checkpoints_of(config, study)
        found += [
            path
            for unit in amounts
            for amount in amounts[unit]
            for path in metrics_in(study, f"at-{unit}-{amount}")
        ]
    untrained = expand(
        f"{BASE}/metrics/{{benchmark}}.json",
        model=models_of(config, study),
        benchmark=benchmarks_of(config, study),
    )
    return list(dict.fromkeys([*found, *untrained])) if found else []


TREES = f"{RESULTS}/explorations"
# Of the viewer's pages, in the report.
GROWN = config["explorations"].get("trees", {"problems": None, "repeats": 1})
SHOWN_TREES = min(3, (GROWN["problems"] or 3) * GROWN["repeats"])


def explored(name: str) -> str:
    """The folder of the checkpoint that samples in an exploration."""
    model, run = explored_model(config, there(name)), config["explorations"][name]["run"]
    method, seed = (
        (UNTRAINED, 0) if run == UNTRAINED else (config["trainings"][run]["method"], config["seeds"][0])
    )
    return f"{RUN}/checkpoint".format(model=model, method=method, run=run, seed=seed)


def explored_problems(wildcards) -> str:
    """The problems that are tried."""
    return f"{RESULTS}/data/{set_of(config['explorations'][wildcards.exploration]['benchmark'])}.jsonl"


def measured_files() -> list[str]:
    """What has been measured so far. As params, not as input: a plan must not ask for what it plans."""
    jobs = ("*/*/*/seed*", "*/*/*/seed*/at-*")
    files = ("metrics.jsonl", "logs/sample.*.tsv", "logs/pretrain.tsv")
    places = [*(f"{job}/{file}" for job in jobs for file in files), "explorations/logs/*.tsv"]
    return sorted(str(path) for place in places for path in Path(RESULTS).glob(place))
