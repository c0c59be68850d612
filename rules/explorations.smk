# Rollout trees without training: what a checkpoint finds where it is forked by one rule or another (Tables 1, 6 and 7,
# Figures 2, 8 and 9), and trees to be looked at (Figure 3 and the viewer). config/explorations/ says which.


rule explore_config:
    output:
        f"{RESULTS}/settings/explorations/{{exploration}}.yaml",
    log:
        f"{RESULTS}/settings/logs/explorations/{{exploration}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(explore_settings, "exploration"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


# The same, with how its numbers are counted.
use rule explore_config as explored_config with:
    output:
        f"{RESULTS}/settings/explorations/{{exploration}}.shown.yaml",
    log:
        f"{RESULTS}/settings/logs/explorations/{{exploration}}.shown.log",
    params:
        settings=settings(explored_settings, "exploration"),


rule explore:
    input:
        config=rules.explore_config.output,
        problems=ancient(explored_problems),
        model=lambda wildcards: explored(wildcards.exploration),
        embedder=lambda wildcards: fetched_embedder(config["explorations"][wildcards.exploration]["run"]),
    output:
        directory(f"{TREES}/{{exploration}}"),
    log:
        f"{TREES}/logs/{{exploration}}.log",
    benchmark:
        f"{TREES}/logs/{{exploration}}.tsv"
    retries: RETRIES
    conda:
        LEARN
    threads: config["jobs"]["threads"]
    resources:
        **model_job(hours=24),
    params:
        work=f"{TREES}/work/{{exploration}}",
    shell:
        "logged {log} python -m datpo explore --config {input.config} --problems {input.problems}"
        " --model {input.model} --work {params.work} --out {output}"


rule write_fork_table:
    input:
        config=f"{RESULTS}/settings/explorations/forks.shown.yaml",
        rollouts=f"{TREES}/forks",
        published=str(ROOT / "config/published.yaml"),
    output:
        html=report(
            f"{RESULTS}/tables/{{table}}.html",
            caption="../workflow/report/caption.rst",
            category="Tables",
            labels=lambda wildcards: labels_of(wildcards.table),
        ),
        csv=f"{RESULTS}/tables/{{table}}.csv",
        markdown=f"{RESULTS}/tables/{{table}}.md",
        latex=f"{RESULTS}/tables/{{table}}.tex",
    log:
        f"{RESULTS}/tables/logs/{{table}}.log",
    benchmark:
        f"{RESULTS}/tables/logs/{{table}}.tsv"
    wildcard_constraints:
        table=one_of(FORK_TABLES),
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        folder=folder_of,
        caption=lambda wildcards: caption_of(wildcards.table),
    shell:
        "logged {log} python -m datpo fork-table --config {input.config} --rollouts {input.rollouts}/rollouts.csv"
        " --published {input.published} --table {wildcards.table} --out {params.folder}"


rule draw_tokens:
    input:
        config=f"{RESULTS}/settings/explorations/tokens.shown.yaml",
        rollouts=f"{TREES}/tokens",
    output:
        png=f"{RESULTS}/figures/figure2.png",
        svg=report(
            f"{RESULTS}/figures/figure2.svg",
            caption="../workflow/report/caption.rst",
            category="Figures",
            labels=labels_of("figure2"),
        ),
    log:
        f"{RESULTS}/figures/logs/figure2.log",
    benchmark:
        f"{RESULTS}/figures/logs/figure2.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        caption=caption_of("figure2"),
    shell:
        "logged {log} python -m datpo figure2 --config {input.config} --rollouts {input.rollouts}/rollouts.csv"
        " --out {output.png}"


# Drawn from real rollouts, chosen by a rule that each verb states.
rule draw_forks:
    input:
        trees=f"{TREES}/forks",
        model=lambda wildcards: explored("forks"),
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
        figure="figure8|figure9",
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        trees=lambda wildcards, input: f"--trees {input.trees}/trees",
        caption=lambda wildcards: caption_of(wildcards.figure),
    shell:
        "logged {log} python -m datpo {wildcards.figure} {params.trees} --model {input.model} --out {output.png}"


use rule draw_forks as draw_tree with:
    input:
        trees=f"{TREES}/trees",
        model=lambda wildcards: explored("trees"),
    wildcard_constraints:
        figure="figure3",
    conda:
        "../envs/learn.yaml"
    params:
        trees=lambda wildcards, input: f"--trees {input.trees}/trees/datpo.jsonl --method datpo",
        caption=caption_of("figure3"),


rule write_pages:
    input:
        trees=f"{TREES}/trees",
        model=lambda wildcards: explored("trees"),
    output:
        # The first pages alone are part of the report; all stand beside the index.
        pages=report(
            expand(f"{RESULTS}/viewer/tree-{{number:04d}}.html", number=range(SHOWN_TREES)),
            caption="../workflow/report/viewer.rst",
            category="Trees",
        ),
        index=f"{RESULTS}/viewer/index.html",
    log:
        f"{RESULTS}/viewer/logs/viewer.log",
    benchmark:
        f"{RESULTS}/viewer/logs/viewer.tsv"
    retries: RETRIES
    conda:
        "../envs/learn.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        folder=lambda wildcards, output: str(Path(output.index).parent),
    shell:
        "logged {log} python -m datpo view --trees {input.trees}/trees/datpo.jsonl --model {input.model}"
        " --method datpo --out {params.folder}"


for name in FORK_TABLES:

    rule:
        name:
            name
        input:
            expand(rules.write_fork_table.output, table=name),
            rules.data.input,
        localrule: True


rule figure2:
    input:
        rules.draw_tokens.output,
        rules.data.input,
    localrule: True


rule figure3:
    input:
        expand(rules.draw_tree.output, figure="figure3"),
        rules.data.input,
    localrule: True


for name in ["figure8", "figure9"]:

    rule:
        name:
            name
        input:
            expand(rules.draw_forks.output, figure=name),
            rules.data.input,
        localrule: True


rule viewer:
    input:
        rules.write_pages.output,
        rules.data.input,
    localrule: True
