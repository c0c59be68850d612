"""The room that the plan says vLLM takes for keys and values is what its engine takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from datpo.engines import build
from datpo.engines import vllm as engine
from datpo.plan.memory import Memory, Rows, sampling_memory, training_memory
from datpo.plan.sizes import Size, size_of
from tests.models import small_policy

ROWS = Rows(8, 40, paged=True)
BUDGETS = 64, 2000  # of tokens and of logits
SETTINGS = {
    "engine": "vllm",
    "temperature": 1.0,
    "precision": "bfloat16",
    "token_budget": BUDGETS[0],
    "logit_budget": BUDGETS[1],
}
EMBEDDER = 1000  # parameters


def taken(monkeypatch: pytest.MonkeyPatch, free: float, make: Any, *arguments: Any) -> int:
    """Bytes for keys and values that an engine asks for which finds so many free."""
    found = []

    def made(policy: Any, temperature: float, precision: str, exact: Any = None, reserved: int = 0) -> None:
        found.append(engine._room(policy, precision, reserved, "cuda")[0])

    monkeypatch.setattr(build, "VLLMEngine", made)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (int(free), int(free)))
    make(small_policy(), *arguments)
    return found[0]


def small_size() -> Size:
    policy = small_policy()
    size = size_of(policy.model.config.to_dict(), "here")
    assert size.parameters == policy.model.num_parameters()
    return size


def device_of(memory: Memory, size: Size) -> float:
    """As large as leaves room for three full windows, so that neither the least nor the most of rows is met."""
    assert memory.spared is not None
    windows = 3 * size.cached_bytes(2) * (small_policy().context_window + engine.SPARE)
    return memory.spared + memory.weights + engine.GRAPHS["cuda"] + windows / engine.SHARE["cuda"]


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_beside_a_training(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    size = small_size()
    memory = training_memory(size, ROWS, precision, *BUDGETS, embedder=EMBEDDER)
    device = device_of(memory, size)
    free = device - memory.masters - memory.embedder  # both are there before the engine; moments come
    found = taken(monkeypatch, free, build.rollout_engine, SETTINGS | {"precision": precision}, True)
    assert memory.pages(device) == pytest.approx(found, abs=1)
    assert found > size.cached_bytes(2)


def test_of_an_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    size = small_size()
    memory = sampling_memory(size, ROWS, "bfloat16", EMBEDDER, BUDGETS)
    device = device_of(memory, size)
    found = taken(monkeypatch, device - memory.masters, build.rollout_engine, SETTINGS, False)  # the embedder comes
    assert memory.pages(device) == pytest.approx(found, abs=1)


def test_of_an_evaluation_that_has_the_device_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    size = small_size()
    memory = sampling_memory(size, ROWS, "bfloat16")
    device = device_of(memory, size)
    assert memory.pages(device) == pytest.approx(taken(monkeypatch, device, build.sampling_engine, SETTINGS), abs=1)


def test_another_engine_takes_none_and_no_room_is_none() -> None:
    size = small_size()
    assert training_memory(size, replace(ROWS, paged=False), "bfloat16", *BUDGETS).pages(1e12) is None
    assert training_memory(size, ROWS, "bfloat16", *BUDGETS).pages(1e6) == 0
