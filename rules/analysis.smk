# How difficult each training problem is for a base model: what the trainings of Figure 1 are told apart by.


rule difficulty_config:
    output:
        f"{RESULTS}/settings/difficulty.yaml",
    log:
        f"{RESULTS}/settings/logs/difficulty.log",
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(difficulty_settings),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule split_by_difficulty:
    input:
        config=rules.difficulty_config.output,
        problems=ancient(f"{RESULTS}/data/train.jsonl"),
        scores=f"{BASE}/scores/train.jsonl",
    output:
        directory(f"{RESULTS}/{{model}}/difficulty"),
    log:
        f"{BASE}/logs/difficulty.log",
    benchmark:
        f"{BASE}/logs/difficulty.tsv"
    retries: RETRIES
    conda:
        "../envs/score.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    shell:
        "logged {log} python -m datpo difficulty --config {input.config} --problems {input.problems}"
        " --scores {input.scores} --out {output}"


rule difficulty:
    input:
        expand(
            rules.split_by_difficulty.output,
            model=models_told_by_difficulty(config),
        ),
        rules.data.input,
    localrule: True
