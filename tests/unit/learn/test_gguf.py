"""A model from a GGUF file: its weights, its tokens and where a response ends, as they were before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from datpo.config import write_settings
from datpo.core.errors import InputError
from datpo.data.files import file_hash
from datpo.learn.gguf import unpack_model
from datpo.learn.policy import load_policy

HEADS, GROUPS, SIZE, WIDTH, LAYERS = 4, 2, 8, 32, 2
END = "<|im_end|>"
# Spaces alone, and a space before a digit, are tokens that the cut by single digits tells apart.
TOKENS = ["<|endoftext|>", "<|im_start|>", END, *sorted(pre_tokenizers.ByteLevel.alphabet()), "ĠĠ", "Ġ4", "48", "eg"]
MERGES = ["Ġ Ġ", "Ġ 4", "4 8", "e g"]
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": LAYERS, "vocab_size": len(TOKENS)}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "max_position_embeddings": 64}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=True)).to(torch.bfloat16)


@pytest.fixture(scope="module")
def file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(model, tmp_path_factory.mktemp("gguf") / "model.gguf", "smollm")


def write_gguf(model: Any, path: Path, cut: str) -> Path:
    """A model as llama.cpp keeps it: the rows of queries and keys with their two halves laced into each other."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(48)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(SIZE)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(cut)
    writer.add_token_list(TOKENS)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    for add, token in ((writer.add_bos_token_id, 1), (writer.add_eos_token_id, 2), (writer.add_pad_token_id, 2)):
        add(token)
    writer.add_chat_template(TEMPLATE)
    weights = {name: value.float().numpy() for name, value in model.state_dict().items()}
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    for layer in range(LAYERS):
        for ours, theirs in LAYER.items():
            value = weights[f"model.layers.{layer}.{ours}.weight"]
            if theirs in ("attn_q", "attn_k"):
                value = value.reshape(-1, 2, SIZE // 2, WIDTH).swapaxes(1, 2).reshape(value.shape)
            writer.add_tensor(f"blk.{layer}.{theirs}.weight", np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def settings(folder: Path, **source: str | None) -> Path:
    write_settings(json.dumps({"source": source}), folder / "config.yaml")
    return folder / "config.yaml"


def test_weights_tokens_and_the_end_of_a_response_are_kept(model: Any, file: Path, tmp_path: Path) -> None:
    unpack_model(settings(tmp_path, gguf=str(file), package=None, sha256=file_hash(file)), tmp_path / "checkpoint")
    policy = load_policy(tmp_path / "checkpoint", torch.bfloat16)
    found = policy.model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in model.state_dict().items())
    assert policy.end_tokens == {TOKENS.index(END)} and policy.tokenizer.pad_token == END
    assert policy.context_window == 64
    ids = policy.tokenizer.apply_chat_template([{"role": "user", "content": "eg"}], return_dict=False)
    assert ids == [1, TOKENS.index("eg"), 2]
    assert policy.decode(ids) == "eg"


def test_a_text_is_cut_as_the_tokenizer_was_trained(model: Any, file: Path, tmp_path: Path) -> None:
    """Digits one by one, so that spaces before them stay together; transformers alone reads all as GPT-2's."""
    unpack_model(settings(tmp_path, gguf=str(file)), tmp_path / "digits")
    other = write_gguf(model, tmp_path / "other.gguf", "gpt-2")
    unpack_model(settings(tmp_path, gguf=str(other)), tmp_path / "gpt-2")
    cut = {name: load_policy(tmp_path / name).tokenizer.tokenize("  48 eg") for name in ("digits", "gpt-2")}
    assert cut == {"digits": ["ĠĠ", "4", "8", "Ġ", "eg"], "gpt-2": ["Ġ", "Ġ4", "8", "Ġ", "eg"]}


def test_another_file_than_was_asked_for_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.gguf has the SHA-256 [0-9a-f]{64}, not the `sha256` 000"):
        unpack_model(settings(tmp_path, gguf=str(file), sha256="0" * 64), tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_what_is_no_model_is_refused(file: Path, model: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.gguf: no such file"):
        unpack_model(settings(tmp_path, gguf=str(tmp_path / "nowhere.gguf")), tmp_path / "checkpoint")
    (tmp_path / "text.gguf").write_text("no model, but long enough to be looked into")
    with pytest.raises(InputError, match=r"text\.gguf: not a GGUF model"):
        unpack_model(settings(tmp_path, gguf=str(tmp_path / "text.gguf")), tmp_path / "checkpoint")
    unknown = write_gguf(model, tmp_path / "unknown.gguf", "martian")
    with pytest.raises(InputError, match=r"its tokenizer 'martian' cuts a text is not known; known: gpt-2, smollm"):
        unpack_model(settings(tmp_path, gguf=str(unknown)), tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
