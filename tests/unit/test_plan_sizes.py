"""Parameters, operations and memory, by hand and against known numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.plan.memory import Rows, sampling_memory, training_memory
from datpo.plan.sizes import Size, model_size, size_of

ROOT = Path(__file__).resolve().parents[2]
KNOWN = yaml.safe_load((ROOT / "config/hardware.yaml").read_text())["models"]

# Per layer: queries 4 x 4 and keys and values 2 (4 x 2), the output 4 x 4, the MLP 3 (4 x 6): 16 + 16 + 16 + 72 = 120.
SMALL: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 4,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 6,
    "vocab_size": 10,
    "tie_word_embeddings": True,
}
TINY = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 3}


@pytest.mark.parametrize(
    ("changed", "parameters"),
    [
        # matrices 240; biases 2 (4 + 2 x 2), norms 2 (2 x 4) and a last one of 4; the embedding 4 x 10
        ({}, 240 + 16 + 16 + 4 + 40),
        ({"tie_word_embeddings": False}, 240 + 16 + 16 + 4 + 80),
        ({"model_type": "llama"}, 240 + 16 + 4 + 40),
        ({"model_type": "qwen3"}, 240 + 2 * 4 + 16 + 4 + 40),  # norms of query and key heads of width 2
        # heads twice as wide: 32 + 32 + 32 + 72 a layer, biases 2 (8 + 2 x 4)
        ({"head_dim": 4}, 2 * 168 + 32 + 16 + 4 + 40),
    ],
)
def test_parameters_by_hand(changed: dict[str, Any], parameters: int) -> None:
    assert size_of(SMALL | changed, "here").parameters == parameters


@pytest.mark.parametrize(
    ("repository", "parameters"),
    [
        ("Qwen/Qwen2.5-3B", 3_085_938_688),  # 3.09 billion by its card, 2.77 without the embedding
        ("Qwen/Qwen2.5-3B-Instruct", 3_085_938_688),
        ("Qwen/Qwen3-4B-Base", 4_022_468_096),  # 4.0 billion, 3.6 without
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 134_515_008),
    ],
)
def test_models_of_the_hub_have_the_parameters_of_their_cards(repository: str, parameters: int) -> None:
    assert size_of(KNOWN[repository], repository).parameters == parameters


def test_a_model_that_is_pre_trained_here_has_the_size_of_its_recipe(tmp_path: Path) -> None:
    model = {"pretrain": {"model": {**TINY, "intermediate_size": 256}}}
    assert model_size("tiny", model, tmp_path, {}).parameters == pytest.approx(0.34e6, rel=0.01)


def test_a_checkpoint_speaks_for_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    model = {"source": {"hub": "somebody/else", "path": None}}
    assert model_size("mine", model, tmp_path, {}) == size_of(SMALL, "here")
    there = {"source": {"hub": None, "path": str(tmp_path)}}
    assert model_size("mine", there, tmp_path / "not yet", {}) == size_of(SMALL, "here")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"vocab_size": None}, "here: vocab_size must be a whole number from 1, not None"),
        ({"hidden_size": "4"}, "here: hidden_size must be a whole number from 1, not '4'"),
        ({"num_hidden_layers": True}, "here: num_hidden_layers must be a whole number from 1, not True"),
        ({"model_type": "mamba"}, "here: model_type 'mamba' has no formulas here; known: qwen2, qwen3, llama"),
    ],
)
def test_a_size_that_is_missing_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        size_of(SMALL | changed, "here")
    assert str(refused.value) == said


def test_a_model_of_unknown_size_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"models\.big: the sizes of 'some/model' are not known"):
        model_size("big", {"source": {"hub": "some/model"}}, tmp_path, KNOWN)


def test_operations_by_hand() -> None:
    size = size_of(SMALL, "here")
    # 10 tokens through 240 parameters, 3 of them through 40 more, 2 each; 55 pairs, 2 layers, width 4, 4 each
    assert size.forward(10, 3, 55) == 2 * (2400 + 120) + 4 * 2 * 4 * 55 == 6800
    assert size.training(10, 3, 55) == 3 * 6800 + 2 * 120  # logits once more
    assert size.training(10, 3, 55, recomputed=True) == 4 * 6800
    assert size.cached_bytes(2) == 2 * 2 * 2 * 2  # keys and values, layers, width, bytes


def test_a_dense_pass_costs_two_and_six_operations_for_each_parameter_and_token() -> None:
    size = size_of(KNOWN["Qwen/Qwen2.5-3B"], "here")
    assert size.forward(1, 1, 0) == pytest.approx(2 * size.parameters, rel=1e-3)
    assert size.training(1, 0, 0) == pytest.approx(6 * (size.parameters - size.head_matrix), rel=1e-3)


def test_memory_of_a_training_by_hand() -> None:
    size = size_of(SMALL, "here")
    memory = training_memory(size, Rows(3, 20, waiting=7), "bfloat16", 100, 50, embedder=5)
    n, largest = 316, 120  # a layer is more than the head here
    assert (memory.weights, memory.masters, memory.moments, memory.gradients) == (2 * n, 4 * n, 8 * n, 4 * n)
    assert memory.embedder == 20
    assert memory.copies == 2 * n + 6 * largest
    # two norms of 8 + 2 bytes x 4, attention 2 (3 x 4 + 2 x 2 x 2), the MLP 2 x 4 x 6: 80 + 40 + 48, and a layer more
    assert memory.activations == 100 * 3 * 168
    assert memory.logits == 50 * 14
    assert memory.cache == pytest.approx(1.8 * 3 * 20 * 16)
    assert memory.kept == 7 * 16
    assert memory.sampling == 3 * 10 * 38
    assert memory.standing == 12 * n + 20
    around = 4 * n + 2 * n + 720 + 700  # an update's gradients, copies and logits
    assert memory.peak == memory.standing + around + 50400
    room = memory.room(memory.standing + 2 * n + 5 * (1.8 * 20 * 16 + 380) + 7 * 16 + 0.5)
    assert room.rows == 5
    assert memory.room(memory.standing + around + 9.5 * 504).tokens == 9
    assert memory.room(memory.standing - 1) == (0, 0)


def test_activation_checkpointing_keeps_inputs_and_the_copies_of_one_matrix() -> None:
    size = size_of(SMALL, "here")
    memory = training_memory(size, Rows(3, 20), "bfloat16", 100, 50, recomputed=True)
    assert memory.activations == 100 * (2 * 4 * 4 + 2 * 168)
    assert memory.copies == (2 + 6) * 120
    assert memory.update == 4 * 316 + 960 + 36800 + 700
    rest = training_memory(size, Rows(3, 20), "bfloat16", 100, 50)
    assert memory.rollout == rest.rollout
    assert training_memory(size, Rows(3, 20), "float32", 1, 1, recomputed=True).copies == 0


def test_an_engine_with_pages_needs_one_row_and_a_pass_over_what_it_drew() -> None:
    size = size_of(SMALL, "here")
    memory = training_memory(size, Rows(3, 20, waiting=7, paged=True), "bfloat16", 100, 50)
    assert (memory.cache, memory.kept) == (20 * 16, 0)
    assert memory.sampling == 3 * 10 * 14 + 100 * 2 * 168 + 50 * 22
    assert memory.room(1e9).rows is None  # generation_batch takes what there is
    assert sampling_memory(size, Rows(3, 20, paged=True), "bfloat16").sampling == 3 * 10 * 14


def test_in_float32_the_weights_are_the_masters_and_sampling_has_nothing_else() -> None:
    size = size_of(SMALL, "here")
    assert training_memory(size, Rows(1, 1), "float32", 1, 1).weights == 0
    memory = sampling_memory(size, Rows(2, 8), "float32")
    assert memory.standing == 0
    assert memory.peak == memory.rollout == 4 * 316 + memory.cache + memory.sampling
    assert memory.room(1e9).tokens is None


@pytest.mark.parametrize(
    ("vocabulary", "budget", "measured"), [(1024, 2048, 163), (32_000, 4096, 684), (152_000, 4096, 740)]
)
def test_an_update_s_memory_agrees_with_what_was_measured(vocabulary: int, budget: int, measured: float) -> None:
    """MB that a process grew by (docs/performance.md), of a model of 1 million parameters."""
    size = replace(size_of(SMALL, "here"), hidden=128, inner=384, layers=4, heads=8, groups=4, head=16)
    size = replace(size, vocabulary=vocabulary)
    assert isinstance(size, Size)
    memory = training_memory(size, Rows(0, 0), "float32", budget, min(2**25, budget * vocabulary))
    assert (memory.activations + memory.logits) / 1e6 == pytest.approx(measured, rel=0.15)
