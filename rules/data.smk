# Problems and base models.
#
# Problem files are `ancient` inputs everywhere: what a job reads from them is fixed by its settings file, which holds
# the recipe of its own problem set. So another benchmark, or a touched file, re-runs no training and no sampling.


rule problems_config:
    output:
        f"{RESULTS}/settings/data/{{set}}.yaml",
    log:
        f"{RESULTS}/settings/logs/data/{{set}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(problem_settings, "set"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


# One job for each set: a benchmark that fails takes no other set with it.
rule problems:
    input:
        config=rules.problems_config.output,
        apart_from=ancient(training_set_of),
    output:
        f"{RESULTS}/data/{{set}}.jsonl",
    log:
        f"{RESULTS}/data/logs/{{set}}.log",
    benchmark:
        f"{RESULTS}/data/logs/{{set}}.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        runtime=60,
        mem_mb=4000,
    shell:
        "logged {log} python -m datpo data --config {input.config} --apart-from {input.apart_from}"
        " --out {output}"


rule data:
    input:
        expand(rules.problems.output, set=SETS),
    localrule: True


rule model_config:
    output:
        f"{BASE}/config.yaml",
    log:
        f"{BASE}/logs/config.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(model_settings, "model"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule pretrain:
    input:
        config=rules.model_config.output,
    output:
        directory(f"{BASE}/checkpoint"),
    log:
        f"{BASE}/logs/pretrain.log",
    benchmark:
        f"{BASE}/logs/pretrain.tsv"
    wildcard_constraints:
        model=one_of(name for name, model in config["models"].items() if "pretrain" in model),
    retries: config["jobs"]["retries"]
    conda:
        "../envs/learn.yaml"
    threads: config["jobs"]["threads"]
    resources:
        **model_job(hours=12),
    params:
        work=f"{BASE}/work",
    shell:
        "logged {log} python -m datpo pretrain --config {input.config} --out {output} --work {params.work}"


rule fetch_model:
    input:
        config=rules.model_config.output,
    output:
        directory(f"{BASE}/checkpoint"),
    log:
        f"{BASE}/logs/fetch.log",
    benchmark:
        f"{BASE}/logs/fetch.tsv"
    wildcard_constraints:
        model=one_of(name for name, model in config["models"].items() if "source" in model),
    retries: config["jobs"]["retries"]
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "logged {log} python -m datpo fetch-model --config {input.config} --out {output}"
