"""What jobs do that sample without reinforcement learning, and the pre-training of a small model."""

from __future__ import annotations

import math

import numpy as np

from datpo.methods import load
from datpo.plan.known import EVALUATED, Known, asked_of, length_of, longest_prompt, prompt_of, solved_of
from datpo.plan.made_step import Shape, made_trees, solved_shares
from datpo.plan.memory import Rows, sampling_memory, training_memory
from datpo.plan.needs import Job, Settings
from datpo.plan.ranges import Range
from datpo.plan.work import Work

PRETRAINED_LENGTH = 40  # tokens that one token of a pre-training text looks at, about half a text


def sampling_work(job: Job, config: Settings, known: Known) -> Work:
    """What it takes to sample a checkpoint on a benchmark."""
    size, decoding = known.sizes[job.model], config["evaluation"]
    problems, samples = asked_of(job.subject, config)
    limit = decoding["max_new_tokens"]
    sampled = EVALUATED * (problems * samples * limit)
    prompt = prompt_of(config, job.model)
    count = min(decoding["generation_batch"], problems * samples)
    rows = Rows(count, longest_prompt(config) + limit, paged=decoding["engine"] == "vllm")
    attended = sampled.mid * (prompt + sampled.mid / (problems * samples) / 2)
    return Work(
        questions=problems,
        sampled=sampled,
        trained=0.0,
        updates=0.0,
        operations=(size.forward(sampled.mid + problems * prompt, sampled.mid, attended), 0.0),
        memory=sampling_memory(size, rows, decoding["precision"]),
        generated=sampled,
    )


def exploring_work(job: Job, config: Settings, known: Known) -> Work:
    """The base rollouts of the largest structure, once for all, and the branches of each."""
    exploration, size = config["explorations"][job.subject], known.sizes[job.model]
    train = config["trainings"].get(job.run, config)["train"]
    problems = min(asked_of(exploration["benchmark"], config)[0], exploration["problems"] or math.inf)
    tries = problems * exploration["repeats"]
    limit, prompt = train["max_new_tokens"], prompt_of(config, job.model)
    length, spread = length_of(known, job.model, limit)
    shape = Shape(prompt, length, train["prompts_per_step"], solved_of(known, job.model), 1, "units", 1, 1, limit)
    methods = [load(each["method"], each["numbers"]) for each in exploration["structures"].values()]
    roots = max(method.roots for method in methods)
    tokens, branches = roots * length, 0.0
    for method in methods:
        trees = made_trees(method, shape, solved_shares(shape.problems, shape.solved), np.random.default_rng(0))
        grown = [sum(len(b.tokens) for b in tree.branches if b.parent is not None) for tree in trees]
        tokens += float(np.mean(grown))
        branches = max(branches, *(len(tree.branches) - len(tree.roots) for tree in trees))
    sampled = spread * (tokens * tries)
    count = min(train["generation_batch"], math.ceil(max(roots, branches) * train["prompts_per_step"]))
    rows = Rows(count, longest_prompt(config) + 2 * limit, paged=train["engine"] == "vllm")
    attended = sampled.mid * (prompt + length * 0.75)
    embedder = known.embedders.get(train["embedder"], 0.0)
    budgets = train["token_budget"], min(train["logit_budget"], train["token_budget"] * size.vocabulary)
    return Work(
        questions=tries,
        sampled=sampled,
        trained=0.0,
        updates=0.0,
        operations=(size.forward(sampled.mid + tries * prompt, sampled.mid, attended), 0.0),
        memory=sampling_memory(size, rows, train["precision"], embedder, budgets),
        generated=sampled,
    )


def pretraining_work(job: Job, config: Settings, known: Known) -> Work:
    """What the pre-training of a small model does."""
    recipe, size = config["models"][job.model]["pretrain"], known.sizes[job.model]
    tokens = float(recipe["steps"] * recipe["tokens_per_step"])
    nothing = Range.exactly(0)
    memory = training_memory(
        size, Rows(0, 0), "float32", recipe["tokens_per_step"], recipe["tokens_per_step"] * size.vocabulary
    )
    operations = size.training(tokens, tokens, tokens * PRETRAINED_LENGTH)
    return Work(0.0, nothing, tokens, float(recipe["steps"]), (0.0, operations), memory, nothing)
