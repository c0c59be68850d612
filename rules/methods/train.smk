# Training, in the abstract: `train` itself matches no method. Each file beside this one narrows it to one method,
# which inherits all that it does not name. A directive it names replaces the inherited one whole.


rule train_config:
    output:
        f"{RUN}/config.yaml",
    log:
        f"{RUN}/logs/config.log",
    wildcard_constraints:
        method=one_of(METHODS),
    localrule: True
    conda:
        "../../envs/data.yaml"
    params:
        settings=settings(train_settings, "model", "run", "seed"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule train:
    input:
        config=f"{RUN}/config.yaml",
        problems=ancient(made_problems_of),
        validation=ancient(validation_set_of),
        model=f"{BASE}/checkpoint",
        embedder=ancient(embedder_of),
    output:
        checkpoint=directory(f"{RUN}/checkpoint"),
        metrics=f"{RUN}/metrics.jsonl",
    log:
        f"{RUN}/logs/train.log",
    benchmark:
        f"{RUN}/logs/train.tsv"
    wildcard_constraints:
        method="(?!)",
    # Before the base model's samples, which nothing but tables waits for.
    priority: 1
    retries: RETRIES
    conda:
        LEARN
    threads: config["jobs"]["threads"]
    resources:
        **model_job(hours=48),
    params:
        problems=training_problems_of,
        # Not an output: Snakemake deletes a failed job's outputs, and the states to resume from live here.
        work=f"{RUN}/work",
    shell:
        "logged {log} python -m datpo train --config {input.config} --problems {params.problems}"
        " --validation {input.validation} --model {input.model} --work {params.work} --out {output.checkpoint} --log {output.metrics}"
