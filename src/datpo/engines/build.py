"""The engine that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

from datpo.engines.hf import HFEngine
from datpo.engines.vllm import VLLMEngine, installed_version
from datpo.learn.exact import exact
from datpo.learn.policy import Policy

MOMENTS = 8  # bytes that AdamW's two have for each parameter
SCORED_LOGIT = 22  # bytes of a logit at the highest point of the policy's own pass (datpo.learn.exact)


def rollout_engine(policy: Policy, settings: Mapping[str, Any], trains: bool) -> HFEngine | VLLMEngine:
    """For rollouts, whose tokens have log-probabilities and entropies; `settings` as of `train:`.

    Beside a policy that `trains` room is left for its optimiser.
    """
    if settings["engine"] == "hf":
        return HFEngine(policy, settings["generation_batch"], settings["temperature"])
    score = partial(
        exact,
        policy,
        token_budget=settings["token_budget"],
        logit_budget=settings["logit_budget"],
        temperature=settings["temperature"],
    )
    head = policy.model.lm_head.weight.numel()
    # Scoring takes a chunk of logits and a copy of the head. Moments come with the first update.
    reserved = SCORED_LOGIT * settings["logit_budget"] + 2 * head
    reserved += MOMENTS * policy.model.num_parameters() if trains else 0
    return VLLMEngine(policy, settings["temperature"], settings["precision"], score, reserved)


def sampling_engine(policy: Policy, settings: Mapping[str, Any]) -> HFEngine | VLLMEngine:
    """For tokens alone; `settings` as of `evaluation:`."""
    if settings["engine"] == "hf":
        return HFEngine(policy, settings["generation_batch"], settings["temperature"])
    return VLLMEngine(policy, settings["temperature"], settings["precision"])


def engine_versions(name: str) -> dict[str, str]:
    """The versions of the packages that an engine samples with.

    Raises:
        InputError: one is not installed.
    """
    versions = {package: version(package) for package in ("torch", "transformers")}
    return versions | {"vllm": installed_version()} if name == "vllm" else versions
