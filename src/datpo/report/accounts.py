"""What a training took: tokens, updates, time; and what it had left to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datpo.core.errors import InputError
from datpo.report.runs import Results, Run, Training

END_SHARE = 0.1  # the end of a training is its last tenth of steps, since a single step is noisy


@dataclass(frozen=True)
class Account:
    """What a run had to learn from and what it took, each a mean over its seeds.

    Attributes:
        tokens_per_question: generated tokens per question, a shared prefix counted once, mean over steps.
        entropy_at_end: nats per token (mean of the last tenth of the steps).
        zero_signal: share of questions whose leaves all had the same reward, mean over steps.
        seconds: wall time.
    """

    steps: float
    tokens_per_question: float
    generated_tokens: float
    updates: float
    entropy_at_end: float
    zero_signal: float
    seconds: float


def accounts(results: Results, training: Sequence[Training]) -> dict[Run, Account]:
    """What each trained run took.

    Raises:
        InputError: a seed with scores but without a training log, the other way round, or with two logs.
    """
    scored = {(run, seed) for run in results.runs for seed in results.seeds(run) if run.method != "base"}
    logs: dict[tuple[Run, int], Training] = {}
    for log in training:
        if (log.run, log.seed) not in scored:
            raise InputError(f"{log.path}: {log.run} seed {log.seed} has a training log but no metrics file")
        if logs.setdefault((log.run, log.seed), log) is not log:
            raise InputError(f"{log.path}: a second training log of {log.run} seed {log.seed}")
    for run, seed in sorted(scored - set(logs), key=str):
        raise InputError(f"{run} seed {seed}: no training log given for its metrics; add its metrics.jsonl")
    return {run: _account([log for log in training if log.run == run]) for run in results.runs if run.method != "base"}


def _account(logs: Sequence[Training]) -> Account:
    steps = [log.steps for log in logs]

    def end(column: str) -> float:
        return float(np.mean([frame[column].iloc[-1] for frame in steps]))

    def mean(column: str, share: float = 1.0) -> float:
        tails = [frame[column].tail(max(1, round(share * len(frame)))) for frame in steps]
        return float(np.mean([tail.mean() for tail in tails]))

    return Account(
        steps=float(np.mean([len(frame) for frame in steps])),
        tokens_per_question=mean("tokens_per_question"),
        generated_tokens=end("total_tokens"),
        updates=end("total_updates"),
        entropy_at_end=mean("entropy", END_SHARE),
        zero_signal=mean("zero_signal"),
        seconds=end("seconds"),
    )
