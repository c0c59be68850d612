"""What a training does, and what it needs."""

from __future__ import annotations

import math
from functools import cache
from json import dumps, loads

import numpy as np

from datpo.methods import load
from datpo.plan.known import Known, count_of, length_of, longest_prompt, prompt_of, solved_of
from datpo.plan.made_step import Shape, StepWork, made_step, mean_problems
from datpo.plan.memory import Memory, Rows, training_memory
from datpo.plan.needs import Job, Settings
from datpo.plan.ranges import Range
from datpo.plan.work import Work

# The paper's smallest band of difficulty holds 1,433 of 12,000 problems (appendix B).
BAND = 1433 / 12_000


def training_work(job: Job, config: Settings, known: Known) -> Work:
    """What a training does, its looks at the validation split included."""
    run, size = config["trainings"][job.run], known.sizes[job.model]
    train, limit = run["train"], run["train"]["max_new_tokens"]
    length, spread = length_of(known, job.model, limit)
    shape = Shape(
        prompt=prompt_of(config, job.model),
        length=length,
        problems=train["prompts_per_step"],
        solved=solved_of(known, job.model),
        **{key: train[key] for key in ("epochs", "minibatch", "minibatch_size", "token_budget")},
        max_new_tokens=limit,
    )
    step = cached_step(run["method"], dumps(run["numbers"], sort_keys=True), shape)
    tokens = known.per_question.get((job.model, job.run), spread * step.generated)
    problems = _problems(job, config, known)
    steps = _steps(train, step, tokens, problems)
    step = step.of(mean_problems(load(run["method"], run["numbers"]), shape, round(steps.mid)))
    steps = _steps(train, step, tokens, problems)
    times = tokens.mid / step.generated  # longer responses are so much more of everything that is counted in tokens
    questions = steps.mid * step.questions
    generated = tokens * steps * step.questions
    validation = spread * (_looks(train, config, steps.mid) * length)
    sampled = generated + validation
    attended = step.sampled_attended * times * questions + validation.mid * (shape.prompt + length / 2)
    packed, scored, seen = (number * steps.mid * times for number in (step.packed, step.scored, step.attended))
    return Work(
        questions=questions,
        sampled=sampled,
        trained=step.trained * steps.mid * times,
        updates=step.updates * steps.mid,
        operations=(
            size.forward(sampled.mid + questions * shape.prompt, sampled.mid, attended),
            size.training(packed, scored, seen, recomputed=train["activation_checkpointing"]),
        ),
        memory=_memory(job, config, known, step, shape),
        generated=generated,
    )


def _memory(job: Job, config: Settings, known: Known, step: StepWork, shape: Shape) -> Memory:
    run, size = config["trainings"][job.run], known.sizes[job.model]
    train = run["train"]
    compared = load(run["method"], run["numbers"]).groups is not None
    return training_memory(
        size,
        _rows(train, step, shape, config),
        train["precision"],
        train["token_budget"],
        min(train["logit_budget"], train["token_budget"] * size.vocabulary),
        known.embedders.get(train["embedder"], 0.0) if compared else 0.0,
        train["activation_checkpointing"],
    )


@cache
def cached_step(method: str, numbers: str, shape: Shape) -> StepWork:
    """`made_step` of a method with these numbers, as JSON."""
    return made_step(load(method, loads(numbers)), shape)


def _steps(train: Settings, step: StepWork, tokens: Range, problems: float) -> Range:
    """How many steps a training has, until all that its duration names is spent: at so few, so many, ... tokens."""
    per_step = {
        "steps": Range.exactly(1),
        "tokens": tokens * step.questions,
        "updates": Range.exactly(step.updates),
        "passes": Range.exactly(step.questions / problems),
    }
    spent = [
        [math.ceil(round(amount / each, 9)) for each in per_step[unit]] for unit, amount in train["duration"].items()
    ]
    return Range(*np.max(spent, axis=0).tolist())


def _problems(job: Job, config: Settings, known: Known) -> float:
    """The problems that a training goes through in a pass."""
    train = config["trainings"][job.run]["train"]
    if "passes" not in train["duration"]:
        return 1.0
    taken = config["data"]["validation"].get("from_train") or 0
    count = count_of(config["data"]["train"], "data.train") - taken
    if train["subset"]:
        there = known.bands.get((job.model, train["subset"]))
        count = there or config["difficulty"]["subset_size"] or round(BAND * count)
    return float(min(count, train["problems"] or count))


def _looks(train: Settings, config: Settings, steps: float) -> float:
    """Samples that all looks at the validation split take together."""
    if not train["validate_every"]:
        return 0.0
    split = config["data"]["validation"]
    problems = split.get("from_train") or count_of(split, "data.validation")
    return float(math.ceil(steps / train["validate_every"]) * problems * train["validation_samples"])


def _rows(train: Settings, step: StepWork, shape: Shape, config: Settings) -> Rows:
    """The rows of the larger of a step's two batches: its base rollouts, or its branches when no problem is solved."""
    longest, limit = longest_prompt(config), train["max_new_tokens"]
    batch, paged = train["generation_batch"], train["engine"] == "vllm"
    roots = round(step.roots * step.questions)
    if not step.widest:
        return Rows(min(batch, roots), longest + limit, paged=paged)
    prefixed = longest + limit * (2 if train["length_limit"] == "branch" else 1)
    waiting = roots * (shape.prompt + shape.length)
    return Rows(min(batch, max(roots, math.ceil(step.widest))), prefixed, waiting, paged)
