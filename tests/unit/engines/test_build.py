"""Which engine the settings name, and what one of its own says of itself."""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from tests.models import small_policy

from datpo.core.engine import EngineReport
from datpo.core.errors import InputError
from datpo.engines.build import engine_versions, rollout_engine, sampling_engine
from datpo.engines.hf import HFEngine
from datpo.engines.vllm import compared

SETTINGS = {
    "engine": "hf",
    "generation_batch": 8,
    "temperature": 1.0,
    "precision": "float32",
    "token_budget": 64,
    "logit_budget": 1000,
}


def test_transformers_unless_something_else_is_asked_for():
    for build in (partial(rollout_engine, trains=True), sampling_engine):
        engine = build(small_policy(), SETTINGS)
        assert isinstance(engine, HFEngine) and engine.at_once == 8
        assert set(engine.report().row().values()) == {None}


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_that_is_not_installed_is_refused_with_a_way_out():
    for build in (partial(rollout_engine, trains=True), sampling_engine):
        with pytest.raises(InputError, match=r"not installed here; envs/learn_cuda.yaml .* set engine: hf"):
            build(small_policy(), {**SETTINGS, "engine": "vllm"})
    with pytest.raises(InputError, match="not installed"):
        engine_versions("vllm")


def test_reports_add_up():
    policy, engine = np.log([0.5, 0.2, 0.3]), np.log([0.5, 0.4, 0.2])
    whole = compared(policy, engine) + EngineReport(context=10, cached=4)
    assert whole == compared(policy[:1], engine[:1]) + compared(policy[1:], engine[1:]) + EngineReport(
        0, 0, 0, 0, 10, 4
    )
    assert whole.row() == {
        "engine_gap": pytest.approx((np.log(2) + np.log(1.5)) / 3),
        "engine_gap_max": pytest.approx(np.log(2)),
        "engine_ratio": pytest.approx((1 + 0.5 + 1.5) / 3),
        "engine_cached": 0.4,
    }
