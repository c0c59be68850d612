"""What a training took: tokens, updates, time; and what it had left to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datpo.core.errors import InputError
from datpo.report.runs import Results, Run
from datpo.report.training import Training

END_SHARE = 0.1  # the end of a training is its last tenth of steps, since a single step is noisy


@dataclass(frozen=True)
class Account:
    """What a run had to learn from and what it took, each a mean over its seeds.

    Attributes:
        tokens_per_question: generated tokens per question, a shared prefix counted once.
        leaves: rollouts per question, those that are not trained included.
        trained_tokens: tokens in the losses of all updates, a shared one counted once for each unit it is trained in.
        entropy_at_end: nats per token (mean of the last tenth of the steps).
        zero_signal: share of questions whose leaves all had the same reward.
        seconds: wall time.
    """

    steps: float
    tokens_per_question: float
    leaves: float
    generated_tokens: float
    trained_tokens: float
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
    return {
        run: account([log.until(results.at) for log in training if log.run == run])
        for run in results.runs
        if run.method != "base"
    }


def account(steps: Sequence[pd.DataFrame]) -> Account:
    """What a run took, from the steps of each of its seeds."""

    def per_question(column: str) -> float:
        return float(np.mean([np.average(frame[column], weights=frame["prompts"]) for frame in steps]))

    def end(column: str) -> float:
        return float(np.mean([frame[column].iloc[-1] for frame in steps]))

    def last(column: str) -> float:
        tails = [frame[column].tail(max(1, round(END_SHARE * len(frame)))) for frame in steps]
        return float(np.mean([tail.mean() for tail in tails]))

    return Account(
        steps=float(np.mean([len(frame) for frame in steps])),
        tokens_per_question=per_question("tokens_per_question"),
        leaves=per_question("leaves"),
        generated_tokens=end("total_tokens"),
        trained_tokens=float(np.mean([frame["trained_tokens"].sum() for frame in steps])),
        updates=end("total_updates"),
        entropy_at_end=last("entropy"),
        zero_signal=per_question("zero_signal"),
        seconds=end("seconds"),
    )
