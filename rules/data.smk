# Problems and base models.
#
# Problem files are `ancient` inputs everywhere: what a job reads from them is fixed by its settings file, which holds
# the recipe of its own problem set. So another benchmark, or a touched file, re-runs no training and no sampling.
BENCHMARK_FILES = [f"{RESULTS}/data/benchmarks/{name}.jsonl" for name in config["benchmarks"]]


rule data_config:
    output:
        f"{RESULTS}/data/config.yaml",
    log:
        f"{RESULTS}/data/logs/config.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(data_settings),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule data:
    input:
        config=rules.data_config.output,
    output:
        f"{RESULTS}/data/train.jsonl",
        f"{RESULTS}/data/validation.jsonl",
        f"{RESULTS}/data/manifest.json",
        BENCHMARK_FILES,
    log:
        f"{RESULTS}/data/logs/data.log",
    benchmark:
        f"{RESULTS}/data/logs/data.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        runtime=60,
        mem_mb=4000,
    params:
        folder=folder_of,
    shell:
        "logged {log} python -m datpo data --config {input.config} --out {params.folder}"


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
    retries: 3
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
    retries: 3
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "logged {log} python -m datpo fetch-model --config {input.config} --out {output}"
