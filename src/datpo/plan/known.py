"""What a plan is made from beside the configuration, and what it assumes where nothing is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.files import read_jsonl
from datpo.plan.needs import TRAIN, Settings
from datpo.plan.ranges import Range
from datpo.plan.sizes import Size

# How much a response takes of what is allowed, where nothing is known: 0.53 in the paper's Table 8 (GRPO's 8,755.7
# tokens are 16 responses of at most 1,024), 0.41 at the tiny scale.
LENGTH = Range(0.25, 0.5, 0.75)
# Around a mean length that is known of other trainings.
KNOWN_LENGTH = Range(0.85, 1, 1.15)
# In evaluation more is allowed, and models differ: trained ones come to an end, others ramble to the limit.
EVALUATED = Range(0.2, 0.35, 0.75)
# The share of base rollouts that are right where nothing is known, and the least and most that are reckoned with.
SOLVED = Range(0.02, 0.5, 0.98)
# Mean and longest tokens of a prompt that nothing is known of, and of one that wraps a multiple-choice question.
PROMPT, LONGEST_PROMPT = 150, 512


@dataclass(frozen=True)
class Known:
    """What is known beside the configuration.

    Attributes:
        sizes: of each model.
        lengths: mean tokens of a response in trainings of a model, where they were measured or published.
        per_question: generated tokens a question by (model, run), in the same way.
        solved: mean share of right base rollouts in trainings of a model, where it was measured.
        embedders: parameters of embedding models by name.
        bands: problems in a band of a model's difficulty, where it has been made.
    """

    sizes: Mapping[str, Size]
    lengths: Mapping[str, float]
    per_question: Mapping[tuple[str, str], Range]
    solved: Mapping[str, float]
    embedders: Mapping[str, float]
    bands: Mapping[tuple[str, str], int]


def length_of(known: Known, model: str, limit: int) -> tuple[float, Range]:
    """Mean tokens of a base rollout in training, and how far the truth may lie from it, as factors."""
    if model in known.lengths:
        return min(known.lengths[model], LENGTH.high * limit), KNOWN_LENGTH
    return LENGTH.mid * limit, LENGTH * (1 / LENGTH.mid)


def solved_of(known: Known, model: str) -> float:
    """The share of base rollouts that are right."""
    return min(max(known.solved.get(model, SOLVED.mid), SOLVED.low), SOLVED.high)


def asked_of(benchmark: str, config: Settings) -> tuple[int, int]:
    """How many problems a benchmark has, and samples for each."""
    if benchmark == TRAIN:
        taken = config["data"]["validation"].get("from_train") or 0
        return count_of(config["data"]["train"], "data.train") - taken, config["difficulty"]["samples"]
    if benchmark in config["out_of_domain"]:
        entry = config["out_of_domain"][benchmark]
        asked = entry["stratified"] or entry["count"]
        if not asked:
            raise InputError(f"config: the plan needs out_of_domain.{benchmark}.count, how many questions there are")
        return asked, entry["samples"]
    entry = config["benchmarks"][benchmark]
    return count_of(entry["problems"], f"benchmarks.{benchmark}.problems"), entry["samples"]


def count_of(entry: Mapping[str, Any], place: str) -> int:
    """How many problems a set has: as it says, or as many as its file has.

    Raises:
        InputError: neither says so.
    """
    if entry.get("count"):
        return int(entry["count"]) - len(entry.get("drop") or ())
    if entry.get("path") and Path(entry["path"]).exists():
        return len(read_jsonl(entry["path"])) - len(entry.get("drop") or ())
    raise InputError(f"config: the plan needs {place}.count, how many problems there are")


def prompt_of(config: Settings, model: str) -> int:
    """Tokens of a mean prompt."""
    limit = config["prompt_limits"].get(model)
    return min(PROMPT, limit // 2) if limit else PROMPT


def longest_prompt(config: Settings) -> int:
    """Tokens of the longest prompt that is reckoned with."""
    return max((limit or LONGEST_PROMPT for limit in config["prompt_limits"].values()), default=LONGEST_PROMPT)
