# Tables and figures over all runs of the scale.
METRICS_FILES = expand(
    "{folder}/metrics/{benchmark}.json",
    folder=[*BASE_MODELS, *TRAINED_RUNS],
    benchmark=config["benchmarks"],
)
TRAINING_LOGS = expand("{folder}/metrics.jsonl", folder=TRAINED_RUNS)


rule table2:
    input:
        metrics=METRICS_FILES,
        logs=TRAINING_LOGS,
        published="config/published.yaml",
    output:
        csv=report(
            f"{RESULTS}/tables/table2.csv", caption="../workflow/report/table2.rst", category="Table 2"
        ),
        differences=report(
            f"{RESULTS}/tables/table2_differences.csv",
            caption="../workflow/report/differences.rst",
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


rule figure_passk:
    input:
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
