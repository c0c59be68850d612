# The main table, of checkpoints that have spent equally many steps, tokens or updates.
use rule write_table2 as write_table2_at with:
    input:
        config=rules.table_config.output,
        metrics=expand(
            "{folder}/metrics/{benchmark}.json",
            folder=[*BASE_MODELS, *(f"{run}/at-{{unit}}" for run in TRAINED_RUNS)],
            benchmark=BENCHMARKS,
            allow_missing=True,
        ),
        logs=TRAINING_LOGS,
        published=str(ROOT / "config/published.yaml"),
    output:
        csv=f"{RESULTS}/tables/at-{{unit}}/table2.csv",
        html=f"{RESULTS}/tables/at-{{unit}}/table2.html",
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


rule write_budgets:
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
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo budgets --tables {input.tables} --differences {input.differences}"
        " --out {output}"


rule budgets:
    input:
        rules.write_budgets.output,
        rules.data.input,
    localrule: True
