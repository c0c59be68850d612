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
        problems=f"{RESULTS}/data/{{set}}.jsonl",
        card=f"{RESULTS}/data/{{set}}.card.json",
        set_aside=f"{RESULTS}/data/{{set}}.set_aside.jsonl",
    log:
        f"{RESULTS}/data/logs/{{set}}.log",
    benchmark:
        f"{RESULTS}/data/logs/{{set}}.tsv"
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "online; logged {log} python -m datpo data --config {input.config} --apart-from {input.apart_from}"
        " --out {output.problems} --card {output.card} --set-aside {output.set_aside}"


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
    retries: RETRIES
    conda:
        LEARN
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
        model=one_of(
            name for name, model in config["models"].items() if "source" in model and not packed(model)
        ),
    retries: config["jobs"]["retries"]
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "online; logged {log} python -m datpo fetch-model --config {input.config} --out {output}"


# From one file in llama.cpp's format, which takes what jobs with models have to be unpacked.
rule unpack_model:
    input:
        config=rules.model_config.output,
    output:
        directory(f"{BASE}/checkpoint"),
    log:
        f"{BASE}/logs/unpack.log",
    benchmark:
        f"{BASE}/logs/unpack.tsv"
    wildcard_constraints:
        model=one_of(name for name, model in config["models"].items() if packed(model)),
    retries: config["jobs"]["retries"]
    localrule: True
    conda:
        "../envs/learn.yaml"
    shell:
        "online; logged {log} python -m datpo unpack-model --config {input.config} --out {output}"


rule embedder_config:
    output:
        f"{RESULTS}/settings/embedders/{{run}}.yaml",
    log:
        f"{RESULTS}/settings/logs/embedders/{{run}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(embedder_settings, "run"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


# Into the hub's cache: an embedder may bring code from a second repository, which is found nowhere else.
rule fetch_embedder:
    input:
        config=rules.embedder_config.output,
    output:
        f"{RESULTS}/embedders/{{run}}.json",
    log:
        f"{RESULTS}/embedders/logs/{{run}}.log",
    benchmark:
        f"{RESULTS}/embedders/logs/{{run}}.tsv"
    retries: config["jobs"]["retries"]
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "online; logged {log} python -m datpo fetch-embedder --config {input.config} --out {output}"
