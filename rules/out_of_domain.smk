# Multiple-choice benchmarks of another domain: lm-evaluation-harness words the prompts and reads the answers, the
# samples are drawn and kept like all others. Without entries in `out_of_domain` there is nothing to do here.
OUT_OF_DOMAIN = one_of(config["out_of_domain"])


rule out_of_domain_config:
    output:
        f"{RESULTS}/settings/out_of_domain/{{benchmark}}.yaml",
    log:
        f"{RESULTS}/settings/logs/out_of_domain.{{benchmark}}.log",
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,
    localrule: True
    conda:
        "../envs/data.yaml"
    params:
        settings=settings(question_settings, "benchmark"),
    shell:
        "logged {log} python -m datpo config --out {output} --settings {params.settings:q}"


rule out_of_domain_questions:
    input:
        config=rules.out_of_domain_config.output,
    output:
        f"{RESULTS}/data/out_of_domain/{{benchmark}}.jsonl",
    log:
        f"{RESULTS}/data/logs/out_of_domain/{{benchmark}}.questions.log",
    benchmark:
        f"{RESULTS}/data/logs/out_of_domain/{{benchmark}}.questions.tsv"
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,
    # Local, since compute nodes often see no network.
    localrule: True
    conda:
        "../envs/data.yaml"
    shell:
        "online; logged {log} python -m datpo out-of-domain-questions --config {input.config} --out {output}"


rule out_of_domain_prompts:
    input:
        questions=rules.out_of_domain_questions.output,
        task=task_of,
        shared=str(ROOT / TASKS / SHARED),
    output:
        f"{RESULTS}/data/benchmarks/{{benchmark}}.jsonl",
    log:
        f"{RESULTS}/data/logs/out_of_domain/{{benchmark}}.prompts.log",
    benchmark:
        f"{RESULTS}/data/logs/out_of_domain/{{benchmark}}.prompts.tsv"
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,
    retries: RETRIES
    conda:
        "../envs/evaluate.yaml"
    resources:
        **light_job(minutes=30, mem_mb=4000),
    shell:
        "logged {log} python -m datpo out-of-domain-prompts --questions {input.questions} --task {input.task}"
        " --out {output}"


# Drawn like the samples of every other benchmark, to the same places.
use rule sample_config as out_of_domain_sample_config with:
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,


use rule sample as out_of_domain_sample with:
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,


use rule metrics_config as out_of_domain_metrics_config with:
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,
    params:
        settings=settings(choice_settings, "benchmark"),


rule out_of_domain_metrics:
    input:
        config=rules.out_of_domain_metrics_config.output,
        task=task_of,
        shared=str(ROOT / TASKS / SHARED),
        # Paths, not `rules.….output`: `ancient` would mark that very object, and so the input of other rules too.
        questions=ancient(f"{RESULTS}/data/out_of_domain/{{benchmark}}.jsonl"),
        problems=ancient(problems_of),
        samples=rules.out_of_domain_sample.output,
    output:
        scores=f"{EVALUATED}/scores/{{benchmark}}.jsonl",
        metrics=f"{EVALUATED}/metrics/{{benchmark}}.json",
    log:
        f"{EVALUATED}/logs/metrics.{{benchmark}}.log",
    benchmark:
        f"{EVALUATED}/logs/metrics.{{benchmark}}.tsv"
    wildcard_constraints:
        benchmark=OUT_OF_DOMAIN,
    retries: RETRIES
    conda:
        "../envs/evaluate.yaml"
    resources:
        **light_job(minutes=30, mem_mb=4000),
    shell:
        "logged {log} python -m datpo out-of-domain --config {input.config} --task {input.task}"
        " --questions {input.questions} --problems {input.problems} --samples {input.samples}"
        " --scores {output.scores} --out {output.metrics}"


# What the subsets are made of, where not all questions are asked.
STRATIFIED = [name for name, entry in config["out_of_domain"].items() if entry["stratified"]]


rule draw_questions:
    input:
        expand(rules.out_of_domain_questions.output, benchmark=STRATIFIED),
    output:
        png=f"{RESULTS}/figures/figure10.png",
        svg=report(
            f"{RESULTS}/figures/figure10.svg",
            caption="../workflow/report/caption.rst",
            category="Figures",
            labels=labels_of("figure10"),
        ),
    log:
        f"{RESULTS}/figures/logs/figure10.log",
    benchmark:
        f"{RESULTS}/figures/logs/figure10.tsv"
    retries: RETRIES
    conda:
        "../envs/report.yaml"
    resources:
        **light_job(minutes=30, mem_mb=2000),
    params:
        caption=caption_of("figure10"),
    shell:
        "logged {log} python -m datpo figure10 --questions {input} --out {output.png}"


rule figure10:
    input:
        rules.draw_questions.output,
    localrule: True


rule out_of_domain:
    input:
        expand(
            "{folder}/metrics/{benchmark}.json",
            folder=[*BASE_MODELS, *TRAINED_RUNS],
            benchmark=config["out_of_domain"],
        ),
        expand(f"{RESULTS}/data/benchmarks/{{benchmark}}.jsonl", benchmark=config["out_of_domain"]),
        rules.data.input if config["out_of_domain"] else [],
    localrule: True
