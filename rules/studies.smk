# Tables and figures over trainings, as config/studies/ describes them: what is trained and evaluated for each, and how it
# is shown. Each is a target of its name.


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
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
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
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
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
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
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
