"""Rollouts as the settings of a training have them: in the training itself, and where a checkpoint is explored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datpo.engines.build import rollout_engine
from datpo.learn.grading import grader
from datpo.learn.policy import Policy
from datpo.learn.signals import signals_of
from datpo.search.rollout import Rollouts


def rollouts_of(policy: Policy, settings: Mapping[str, Any], trains: bool) -> Rollouts:
    """What grows the trees of a policy, one that `trains` or not, by `domain`, `prompt` and `train` of `settings`."""
    train = settings["train"]
    return Rollouts(
        engine=rollout_engine(policy, train, trains),
        grade=grader(
            settings["domain"],
            policy,
            settings["prompt"].get("stop") or [],
            train["graded_text"],
            train["truncated"],
            train["checker"],
        ),
        signals=signals_of(policy),
        max_new_tokens=train["max_new_tokens"],
        limit=train["length_limit"],
        context_window=policy.context_window,
    )
