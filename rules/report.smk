# Tables and figures over all runs of the scale.
CHECKPOINTS = [*BASE_MODELS, *TRAINED_RUNS]
METRICS_FILES = expand("{folder}/metrics/{benchmark}.json", folder=CHECKPOINTS, benchmark=BENCHMARKS)
TRAINING_LOGS = expand("{folder}/metrics.jsonl", folder=TRAINED_RUNS)
CURVES = ["steps", "tokens", "hours"]  # what training is shown against


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


rule write_table2:
    input:
        config=rules.table_config.output,
        metrics=METRICS_FILES,
        logs=TRAINING_LOGS,
        published=str(ROOT / "config/published.yaml"),
    output:
        csv=f"{RESULTS}/tables/table2.csv",
        differences=report(
            f"{RESULTS}/tables/table2_differences.csv",
            caption="../workflow/report/differences.rst",
            category="Table 2, number by number",
        ),
        scores=report(
            f"{RESULTS}/tables/table2_scores.csv",
            caption="../workflow/report/scores.rst",
            category="Table 2, number by number",
        ),
        html=report(
            f"{RESULTS}/tables/table2.html",
            caption="../workflow/report/table2.rst",
            category="Tables",
            labels=labels_of("table2"),
        ),
        markdown=f"{RESULTS}/tables/table2.md",
        latex=f"{RESULTS}/tables/table2.tex",
    log:
        f"{RESULTS}/tables/logs/table2.log",
    benchmark:
        f"{RESULTS}/tables/logs/table2.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        folder=folder_of,
    shell:
        "logged {log} python -m datpo table2 --metrics {input.metrics} --logs {input.logs}"
        " --published {input.published} --out {params.folder}"


rule run_card:
    input:
        config=f"{RUN}/config.yaml",
        metrics=expand(f"{EVALUATED}/metrics/{{benchmark}}.json", benchmark=BENCHMARKS, allow_missing=True),
        log=log_of,
        data=ancient(expand(f"{RESULTS}/data/{{set}}.card.json", set=["train", *map(set_of, BENCHMARKS)])),
    output:
        report(
            f"{EVALUATED}/card.md",
            caption="../workflow/report/card.rst",
            category="Run cards",
            labels={"model": "{model}", "run": "{run}", "seed": "{seed}", "at": "{at}"},
        ),
    log:
        f"{EVALUATED}/logs/card.log",
    benchmark:
        f"{EVALUATED}/logs/card.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo card --config {input.config} --metrics {input.metrics}"
        " --logs {input.log} --data {input.data} --out {output}"


rule compare_checkers:
    input:
        scores=expand("{folder}/scores/{benchmark}.jsonl", folder=CHECKPOINTS, benchmark=BENCHMARKS),
        others=expand("{folder}/scores-other/{benchmark}.jsonl", folder=CHECKPOINTS, benchmark=BENCHMARKS),
        problems=ancient([f"{RESULTS}/data/{set_of(b)}.jsonl" for b in BENCHMARKS] * len(CHECKPOINTS)),
    output:
        report(
            f"{RESULTS}/tables/checkers.md",
            caption="../workflow/report/checkers.rst",
            category="Checkers",
        ),
        f"{RESULTS}/tables/checkers.csv",
    log:
        f"{RESULTS}/tables/logs/checkers.log",
    benchmark:
        f"{RESULTS}/tables/logs/checkers.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=4000),
    params:
        folder=folder_of,
    shell:
        "logged {log} python -m datpo checkers --scores {input.scores} --others {input.others}"
        " --problems {input.problems} --out {params.folder}"


rule draw_passk:
    input:
        config=rules.table_config.output,
        metrics=METRICS_FILES,
    output:
        png=f"{RESULTS}/figures/pass_at_k.png",
        svg=report(
            f"{RESULTS}/figures/pass_at_k.svg",
            caption="../workflow/report/pass_at_k.rst",
            category="Figures",
            labels={"number": "", "shows": "pass@k of all runs"},
        ),
    log:
        f"{RESULTS}/figures/logs/pass_at_k.log",
    benchmark:
        f"{RESULTS}/figures/logs/pass_at_k.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo figure-passk --metrics {input.metrics} --out {output.png}"


rule draw_curves:
    input:
        config=rules.table_config.output,
        logs=TRAINING_LOGS,
    output:
        png=f"{RESULTS}/figures/learning_curves_{{against}}.png",
        svg=report(
            f"{RESULTS}/figures/learning_curves_{{against}}.svg",
            caption="../workflow/report/learning_curves.rst",
            category="Training",
            labels={"figure": "learning curves", "against": "{against}"},
        ),
    log:
        f"{RESULTS}/figures/logs/learning_curves_{{against}}.log",
    benchmark:
        f"{RESULTS}/figures/logs/learning_curves_{{against}}.tsv"
    wildcard_constraints:
        against=one_of(CURVES),
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo figure-curves --against {wildcards.against} --logs {input.logs}"
        " --out {output.png}"


rule draw_gained:
    input:
        config=rules.table_config.output,
        metrics=METRICS_FILES,
    output:
        png=f"{RESULTS}/figures/gained.png",
        svg=report(
            f"{RESULTS}/figures/gained.svg",
            caption="../workflow/report/gained.rst",
            category="Figures",
            labels={"number": "", "shows": "Problems gained and lost"},
        ),
    log:
        f"{RESULTS}/figures/logs/gained.log",
    benchmark:
        f"{RESULTS}/figures/logs/gained.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo figure-gained --metrics {input.metrics} --out {output.png}"


# The named targets. The problem sets stand beside what is asked for: a job behind a planned one is not looked at, so a
# set that is to be made anew would hide, behind `ancient` inputs, all that is missing.
rule table2:
    input:
        rules.write_table2.output,
        rules.data.input,
    localrule: True


rule cards:
    input:
        expand("{folder}/card.md", folder=CHECKPOINTS),
        rules.data.input,
    localrule: True


# Not part of `all`: where our checker and the release's differ.
rule checkers:
    input:
        rules.compare_checkers.output,
        rules.data.input,
    localrule: True


rule figure_passk:
    input:
        rules.draw_passk.output,
        rules.data.input,
    localrule: True


rule figure_curves:
    input:
        expand(rules.draw_curves.output, against=CURVES),
        rules.data.input,
    localrule: True


rule figure_gained:
    input:
        rules.draw_gained.output,
        rules.data.input,
    localrule: True
