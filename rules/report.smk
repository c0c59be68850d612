# Tables and figures over all runs of the scale.
METRICS_FILES = expand(
    "{folder}/metrics/{benchmark}.json",
    folder=[*BASE_MODELS, *TRAINED_RUNS],
    benchmark=config["benchmarks"],
)
TRAINING_LOGS = expand("{folder}/metrics.jsonl", folder=TRAINED_RUNS)


# No verb reads this file; as an input it makes tables and figures anew for another list of runs, seeds or benchmarks.
# Snakemake's own look at changed inputs is not enough: it skips all jobs behind a planned one, even where they are
# behind it through `ancient` inputs alone and so are not planned themselves.
rule table_config:
    output:
        f"{RESULTS}/settings/tables.yaml",
    log:
        f"{RESULTS}/settings/logs/tables.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(table_settings),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule table2:
    input:
        config=rules.table_config.output,
        metrics=METRICS_FILES,
        logs=TRAINING_LOGS,
        published=str(ROOT / "config/published.yaml"),
    output:
        csv=report(
            f"{RESULTS}/tables/table2.csv", caption="../workflow/report/table2.rst", category="Table 2"
        ),
        differences=report(
            f"{RESULTS}/tables/table2_differences.csv",
            caption="../workflow/report/differences.rst",
            category="Table 2",
        ),
        scores=report(
            f"{RESULTS}/tables/table2_scores.csv",
            caption="../workflow/report/scores.rst",
            category="Table 2",
        ),
        markdown=f"{RESULTS}/tables/table2.md",
        latex=f"{RESULTS}/tables/table2.tex",
    log:
        f"{RESULTS}/tables/logs/table2.log",
    benchmark:
        f"{RESULTS}/tables/logs/table2.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    params:
        folder=folder_of,
    shell:
        "logged {log} python -m datpo table2 --metrics {input.metrics} --logs {input.logs}"
        " --published {input.published} --out {params.folder}"


# The same table, of checkpoints that have spent equally many steps, tokens or updates.
use rule table2 as table_at with:
    input:
        config=rules.table_config.output,
        metrics=expand(
            "{folder}/metrics/{benchmark}.json",
            folder=[*BASE_MODELS, *(f"{run}/at-{{unit}}" for run in TRAINED_RUNS)],
            benchmark=config["benchmarks"],
            allow_missing=True,
        ),
        logs=TRAINING_LOGS,
        published=str(ROOT / "config/published.yaml"),
    output:
        csv=f"{RESULTS}/tables/at-{{unit}}/table2.csv",
        differences=f"{RESULTS}/tables/at-{{unit}}/table2_differences.csv",
        scores=f"{RESULTS}/tables/at-{{unit}}/table2_scores.csv",
        markdown=f"{RESULTS}/tables/at-{{unit}}/table2.md",
        latex=f"{RESULTS}/tables/at-{{unit}}/table2.tex",
    log:
        f"{RESULTS}/tables/logs/at-{{unit}}.log",
    benchmark:
        f"{RESULTS}/tables/logs/at-{{unit}}.tsv"
    wildcard_constraints:
        unit=one_of(BUDGETS),


# One table of them all, if there are any.
BUDGET_TABLE = [f"{RESULTS}/tables/budgets.md"] if BUDGETS else []


rule budgets:
    input:
        tables=tables_at("csv"),
        differences=tables_at("differences"),
    output:
        report(
            f"{RESULTS}/tables/budgets.md",
            caption="../workflow/report/budgets.rst",
            category="Equal budgets",
        ),
    log:
        f"{RESULTS}/tables/logs/budgets.log",
    benchmark:
        f"{RESULTS}/tables/logs/budgets.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    shell:
        "logged {log} python -m datpo budgets --tables {input.tables} --differences {input.differences}"
        " --out {output}"


rule figure_passk:
    input:
        config=rules.table_config.output,
        metrics=METRICS_FILES,
    output:
        png=f"{RESULTS}/figures/pass_at_k.png",
        svg=report(
            f"{RESULTS}/figures/pass_at_k.svg",
            caption="../workflow/report/pass_at_k.rst",
            category="Figures",
        ),
    log:
        f"{RESULTS}/figures/logs/pass_at_k.log",
    benchmark:
        f"{RESULTS}/figures/logs/pass_at_k.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    shell:
        "logged {log} python -m datpo figure-passk --metrics {input.metrics} --out {output.png}"


rule figure_curves:
    input:
        config=rules.table_config.output,
        logs=TRAINING_LOGS,
    output:
        png=f"{RESULTS}/figures/learning_curves.png",
        svg=report(
            f"{RESULTS}/figures/learning_curves.svg",
            caption="../workflow/report/learning_curves.rst",
            category="Figures",
        ),
    log:
        f"{RESULTS}/figures/logs/learning_curves.log",
    benchmark:
        f"{RESULTS}/figures/logs/learning_curves.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        runtime=30,
        mem_mb=2000,
    shell:
        "logged {log} python -m datpo figure-curves --logs {input.logs} --out {output.png}"
