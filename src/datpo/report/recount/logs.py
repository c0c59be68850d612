"""What a training took, counted anew from the rows of its log, one row a step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from datpo.core.errors import InputError
from datpo.core.files import Row, read_jsonl
from datpo.core.kinds import AMOUNT, check_kinds, whole
from datpo.report.recount.scores import Recount, spread

QUESTIONS = ("tokens_per_question", "leaves")  # means over the questions of a step
OF_SECONDS = {"hours": "`seconds` of the last step / 3600", "seconds_step": "`seconds` of the last step / their number"}


def recount_log(logs: Sequence[Path], column: str) -> Recount:
    """A number of what a training took: the mean over the logs of its seeds, and their spread.

    Raises:
        InputError: a log is missing or empty, or a step does not say it.
    """
    kinds = {"prompts": whole(1), "seconds" if column in OF_SECONDS else column: AMOUNT}
    seeds, steps_read = [], 0
    for log in logs:
        steps = read_jsonl(log)
        if not steps:
            raise InputError(f"{log}: no step in this log")
        for number, step in enumerate(steps, start=1):
            check_kinds(f"{log}: step {number}", step, kinds)
        seeds.append(_of_steps(steps, column))
        steps_read += len(steps)
    over = "questions: steps weighed by their `prompts`" if column in QUESTIONS else "steps"
    how = OF_SECONDS.get(column, f"mean of `{column}` over {over}")
    return Recount({"value": fmean(seeds), "seed_sd": spread(seeds)}, how, list(logs), steps_read)


def _of_steps(steps: Sequence[Row], column: str) -> float:
    if column in OF_SECONDS:
        return float(steps[-1]["seconds"]) / (3600 if column == "hours" else len(steps))
    weights = [step["prompts"] if column in QUESTIONS else 1 for step in steps]
    return fmean([step[column] for step in steps], weights)
