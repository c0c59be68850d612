"""Hours of a job by what the paper says of its own: Tables 5 and 9 of trainings, Tables 8 and 10 of sampling.

The paper's hours are those of one A100 and of Qwen2.5-3B. They grow with a model's parameters and with the tokens that
a training generates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from datpo.config_studies import rows_of
from datpo.core.errors import InputError
from datpo.plan.needs import Job, Settings
from datpo.plan.ranges import Range
from datpo.plan.sizes import Size
from datpo.plan.work import Work
from datpo.report.runs import METHOD_LABELS
from datpo.report.studies.published import MODEL, STUDIED, load_published

PARAMETERS = 3_085_938_688  # of the paper's Qwen2.5-3B
PROBLEMS, A_STEP, A_PASS, PASSES = 12_000, 16, 1_400, 5
HOUR = 3600

# How far the truth may lie from a number, as factors; guesses, each said in the plan's notes.
AS_PUBLISHED = Range(0.5, 1, 1.2)  # the same training: other code on the same kind of device
BY_METHOD = Range(0.45, 1, 1.3)  # a training of the same method with other numbers
LARGER = 1.5  # another model: hours grow with parameters to this power at worst, and not at all at best
SAMPLING = Range(0.15, 1, 1.5)  # an engine for serving is several times as fast as the paper's rollouts
OTHER_METHOD = Range(0.5, 1, 1.5)  # a method that the paper does not train, at the speed of those it does


@dataclass(frozen=True)
class Paper:
    """What the paper reports of time.

    Attributes:
        hours: of a training, by (the experiment's name of a run, whether its model is the one of the group study).
        of_method: the same by method, of each as it is.
        per_question: generated tokens a question, by run.
        of_question: the same by method.
        sampled: new tokens a second in rollouts.
    """

    hours: Mapping[tuple[str, bool], float]
    of_method: Mapping[str, float]
    per_question: Mapping[str, float]
    of_question: Mapping[str, float]
    sampled: float


def read_paper(published: Path, config: Settings) -> Paper:
    """Match the published rows with the experiment's runs, by the rows of its own studies.

    Raises:
        InputError: the published numbers are missing or not as expected.
    """
    tables = {name: load_published(published, name) for name in ("table5", "table8", "table9", "table10", "table14")}
    by_method = {method: label for method, label in METHOD_LABELS.items() if method != "base"}

    def of_methods(table: str, column: str) -> dict[str, float]:
        found = {method: tables[table].value(MODEL, label, None, column) for method, label in by_method.items()}
        return {method: value for method, value in found.items() if value is not None}

    of_method, questions = of_methods("table9", "hours"), of_methods("table8", "tokens_per_question")
    # A run named like its method is the method as it is.
    hours, tokens = {(method, False): value for method, value in of_method.items()}, dict(questions)
    for study in sorted(set(tables) & set(config["studies"])):
        for label, run in rows_of(dict(config), study):
            named = label or by_method.get(run, run)
            for model in (MODEL, STUDIED):
                if (value := tables[study].value(model, named, None, "hours")) is not None:
                    hours[run, model == STUDIED] = value
            if (value := tables[study].value(MODEL, named, None, "tokens_per_question")) is not None:
                tokens[run] = value
    rollout = tables["table10"].value(MODEL, "DATPO", None, "seconds_rollout")
    if rollout is None or "datpo" not in questions:
        raise InputError(f"{published}: Tables 8 and 10 have no row DATPO, which tells how fast the paper samples")
    return Paper(hours, of_method, tokens, questions, A_STEP * questions["datpo"] / rollout)


def paper_hours(job: Job, work: Work, config: Settings, size: Size, paper: Paper) -> tuple[Range, str]:
    """Hours of a job on one A100, and what they are taken from."""
    larger = _larger(size)
    per_second = Range.exactly(1 / paper.sampled / HOUR) * larger
    if job.kind != "train":
        return work.sampled * per_second * SAMPLING, "rollouts of Table 10"
    run = config["trainings"][job.run]
    grouped = bool(run["train"]["subset"])
    watched = Range(*(all_ - own for all_, own in zip(work.sampled, work.generated, strict=True)))
    looks = watched * per_second * SAMPLING
    own = paper.hours.get((job.run, grouped))
    if own is not None:
        trained = own * work.questions / (A_PASS * PASSES if grouped else PROBLEMS)
        source = f"its row of Table {5 if grouped else 9}"
        factors = AS_PUBLISHED
    elif run["method"] in paper.of_method:
        theirs = paper.of_method[run["method"]] / (paper.of_question[run["method"]] * PROBLEMS)
        trained, factors = theirs * work.generated.mid, BY_METHOD
        source = f"{METHOD_LABELS[run['method']]} in Table 9, by tokens"
    else:
        rates = [paper.of_method[m] / (paper.of_question[m] * PROBLEMS) for m in paper.of_method]
        trained, factors = sum(rates) / len(rates) * work.generated.mid, OTHER_METHOD
        source = "mean of Table 9, by tokens"
    spread = work.generated * (1 / work.generated.mid)
    return spread * factors * larger * trained + looks, source


def _larger(size: Size) -> Range:
    """How much longer a model takes than the paper's 3B."""
    ratio = size.parameters / PARAMETERS
    return Range(*sorted((min(1.0, ratio), ratio, max(ratio, ratio**LARGER))))
