# What the scale will take, before it is begun: memory, tokens, updates, operations and hours of every job that loads a
# model (docs/plan.md). Nothing waits for it.


rule plan_config:
    output:
        f"{RESULTS}/settings/plan.yaml",
    log:
        f"{RESULTS}/settings/logs/plan.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(plan_settings),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


# In the environment of training: steps are counted with the methods' own code.
rule write_plan:
    input:
        config=rules.plan_config.output,
        published=str(ROOT / "config/published.yaml"),
        hardware=str(ROOT / "config/hardware.yaml"),
    output:
        f"{RESULTS}/plan.md",
        f"{RESULTS}/plan.csv",
        f"{RESULTS}/plan.html",
        f"{RESULTS}/plan.tex",
    log:
        f"{RESULTS}/logs/plan.log",
    benchmark:
        f"{RESULTS}/logs/plan.tsv"
    localrule: True
    conda:
        "../envs/learn.yaml"
    params:
        out=lambda wildcards, output: str(Path(output[0]).with_suffix("")),
        results=folder_of,
        measured=measured_files(),
    shell:
        "logged {log} python -m datpo plan --config {input.config} --results {params.results} --out {params.out}"


rule plan:
    input:
        rules.write_plan.output,
    localrule: True
