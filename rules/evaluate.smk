# Samples, scores and metrics of a checkpoint. Sampling is dear and scoring cheap, so they are separate files: a better
# verifier or another k draws no sample again.


rule sample_config:
    output:
        f"{EVALUATED}/settings/{{benchmark}}.yaml",
    log:
        f"{EVALUATED}/logs/config.{{benchmark}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(sample_settings, "model", "method", "run", "seed", "benchmark", "at"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule sample:
    input:
        config=rules.sample_config.output,
        problems=ancient(problems_of),
        model=checkpoint_of,
    output:
        f"{EVALUATED}/samples/{{benchmark}}.jsonl",
    log:
        f"{EVALUATED}/logs/sample.{{benchmark}}.log",
    benchmark:
        f"{EVALUATED}/logs/sample.{{benchmark}}.tsv"
    retries: RETRIES
    conda:
        LEARN
    threads: config["jobs"]["threads"]
    resources:
        **model_job(hours=24),
    params:
        model=checkpoint_at,
        work=f"{EVALUATED}/work/{{benchmark}}",
    shell:
        "logged {log} python -m datpo sample --config {input.config} --problems {input.problems}"
        " --model {params.model} --work {params.work} --out {output}"


rule score_config:
    output:
        f"{RESULTS}/settings/score/{{benchmark}}.yaml",
    log:
        f"{RESULTS}/settings/logs/score.{{benchmark}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(score_settings, "benchmark"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule score:
    input:
        config=rules.score_config.output,
        samples=rules.sample.output,
        problems=ancient(problems_of),
    output:
        f"{EVALUATED}/scores/{{benchmark}}.jsonl",
    log:
        f"{EVALUATED}/logs/score.{{benchmark}}.log",
    benchmark:
        f"{EVALUATED}/logs/score.{{benchmark}}.tsv"
    retries: RETRIES
    conda:
        "../envs/score.yaml"
    resources:
        **light_job(minutes=60, mem_mb=4000),
    shell:
        "logged {log} python -m datpo score --config {input.config} --samples {input.samples}"
        " --problems {input.problems} --out {output}"


# The same samples by the other checker: target `checkers`.
use rule score_config as other_score_config with:
    output:
        f"{RESULTS}/settings/score-other/{{benchmark}}.yaml",
    log:
        f"{RESULTS}/settings/logs/score-other.{{benchmark}}.log",
    params:
        settings=settings(other_score_settings, "benchmark"),


use rule score as other_score with:
    input:
        config=rules.other_score_config.output,
        samples=rules.sample.output,
        problems=ancient(problems_of),
    output:
        f"{EVALUATED}/scores-other/{{benchmark}}.jsonl",
    log:
        f"{EVALUATED}/logs/score-other.{{benchmark}}.log",
    benchmark:
        f"{EVALUATED}/logs/score-other.{{benchmark}}.tsv"


rule metrics_config:
    output:
        f"{RESULTS}/settings/metrics/{{benchmark}}.yaml",
    log:
        f"{RESULTS}/settings/logs/metrics.{{benchmark}}.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(metrics_settings, "benchmark"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule metrics:
    input:
        config=rules.metrics_config.output,
        scores=rules.score.output,
        problems=ancient(problems_of),
    output:
        f"{EVALUATED}/metrics/{{benchmark}}.json",
    log:
        f"{EVALUATED}/logs/metrics.{{benchmark}}.log",
    benchmark:
        f"{EVALUATED}/logs/metrics.{{benchmark}}.tsv"
    retries: RETRIES
    conda:
        "../envs/score.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo metrics --config {input.config} --scores {input.scores}"
        " --problems {input.problems} --out {output}"
