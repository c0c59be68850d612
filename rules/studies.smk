# Tables and figures over trainings, as config/studies/ describes them: what is trained and evaluated for each, and how it
# is shown. Each is a target of its name.
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
    """The name of a study or an exploration; InputError if nothing is left of it."""
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
                RUN + where,
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
    base = f"/{UNTRAINED}/"
    return [f"{folder}/metrics.jsonl" for folder in checkpoint_folders(study) if base not in folder]


def table_metrics(wildcards) -> list[str]:
    """What a table of scores reads; one of times alone needs no samples."""
    scored = set(SCORES) & set(config["studies"][there(wildcards.study)]["columns"])
    return metrics_in(wildcards.study) if scored else []


def figure_metrics(figure: str) -> list[str]:
    """What a figure reads of its study's checkpoints: the untrained ones, and those at the end, at equal updates or on the way."""
    study, reads = FIGURES[figure]
    found = metrics_in(there(study)) if "metrics" in reads else []
    if "metrics at updates" in reads:
        found += metrics_in(study, "/at-updates")
    if "metrics along" in reads:
        amounts = checkpoints_of(config, study)
        found += [
            path
            for unit in amounts
            for amount in amounts[unit]
            for path in metrics_in(study, f"/at-{unit}-{amount}")
        ]
    untrained = expand(
        f"{BASE}/metrics/{{benchmark}}.json",
        model=models_of(config, study),
        benchmark=benchmarks_of(config, study),
    )
    return list(dict.fromkeys([*found, *untrained])) if found else []


rule study_config:
    output:
        f"{RESULTS}/settings/studies/{{study}}.yaml",
    log:
        f"{RESULTS}/settings/logs/studies/{{study}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(study_settings, "study"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule write_table:
    input:
        study=rules.study_config.output,
        metrics=table_metrics,
        logs=lambda wildcards: logs_in(wildcards.study),
        published=str(ROOT / "config/published.yaml"),
    output:
        html=report(
            f"{RESULTS}/tables/{{study}}.html",
            caption="../workflow/report/caption.rst",
            category="Tables",
            labels=lambda wildcards: labels_of(wildcards.study),
        ),
        csv=f"{RESULTS}/tables/{{study}}.csv",
        markdown=f"{RESULTS}/tables/{{study}}.md",
        latex=f"{RESULTS}/tables/{{study}}.tex",
    log:
        f"{RESULTS}/tables/logs/{{study}}.log",
    benchmark:
        f"{RESULTS}/tables/logs/{{study}}.tsv"
    wildcard_constraints:
        study=one_of(TABLES),
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    params:
        folder=folder_of,
        caption=lambda wildcards: caption_of(wildcards.study),
    shell:
        "logged {log} python -m datpo table --study {input.study} --metrics {input.metrics} --logs {input.logs}"
        " --published {input.published} --out {params.folder}"


rule draw_figure:
    input:
        study=lambda wildcards: f"{RESULTS}/settings/studies/{FIGURES[wildcards.figure][0]}.yaml",
        metrics=lambda wildcards: figure_metrics(wildcards.figure),
        logs=lambda wildcards: (
            logs_in(FIGURES[wildcards.figure][0]) if "logs" in FIGURES[wildcards.figure][1] else []
        ),
    output:
        png=f"{RESULTS}/figures/{{figure}}.png",
        svg=report(
            f"{RESULTS}/figures/{{figure}}.svg",
            caption="../workflow/report/caption.rst",
            category="Figures",
            labels=lambda wildcards: labels_of(wildcards.figure),
        ),
    log:
        f"{RESULTS}/figures/logs/{{figure}}.log",
    benchmark:
        f"{RESULTS}/figures/logs/{{figure}}.tsv"
    wildcard_constraints:
        figure=one_of(FIGURES),
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    params:
        verb=lambda wildcards: wildcards.figure.removesuffix("_updates"),
        files=lambda wildcards, input: " ".join(
            f"--{kind} {' '.join(files)}" for kind in ("metrics", "logs") if (files := input.get(kind))
        ),
        caption=lambda wildcards: caption_of(wildcards.figure),
    shell:
        "logged {log} python -m datpo {params.verb} --study {input.study} {params.files} --out {output.png}"


rule theory_config:
    output:
        f"{RESULTS}/settings/theory.yaml",
    log:
        f"{RESULTS}/settings/logs/theory.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(theory_settings),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


# The paper's two theorems in numbers, the second on the trainings of Figure 1.
rule check_theory:
    input:
        config=rules.theory_config.output,
        metrics=lambda wildcards: figure_metrics("figure1"),
    output:
        page=report(
            f"{RESULTS}/theory/theory.html",
            caption="../workflow/report/caption.rst",
            category="Theory",
            labels=labels_of("theory"),
        ),
        png=f"{RESULTS}/theory/theory.png",
        svg=f"{RESULTS}/theory/theory.svg",
        csv=f"{RESULTS}/theory/theory.csv",
    log:
        f"{RESULTS}/theory/logs/theory.log",
    benchmark:
        f"{RESULTS}/theory/logs/theory.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    params:
        folder=folder_of,
        caption=caption_of("theory"),
    shell:
        "logged {log} python -m datpo theory --metrics {input.metrics} --config {input.config} --out {params.folder}"


rule theory:
    input:
        rules.check_theory.output,
        rules.data.input,
    localrule: True


for name in TABLES:

    rule:
        name:
            name
        input:
            expand(rules.write_table.output, study=name),
            expand(f"{RESULTS}/data/benchmarks/{{benchmark}}.jsonl", benchmark=benchmarks_of(config, name)),
            rules.data.input,
        localrule: True


for name in FIGURES:

    rule:
        name:
            name
        input:
            expand(rules.draw_figure.output, figure=name),
            rules.data.input,
        localrule: True
