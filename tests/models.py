"""Small random models for tests."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from datpo.learn.policy import Policy

VOCABULARY, END = 50, 2
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": END,
    "pad_token_id": 0,
    "attn_implementation": "datpo",
}
FAMILIES = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
}


def small_policy(family="qwen2", seed=0, scale=8.0, dtype=torch.float32):
    """A random model with peaked distributions (the head scaled up), so that mistakes show."""
    config, model, more = FAMILIES[family]
    torch.manual_seed(seed)
    made = model(config(**SHAPE, **more)).to(dtype).eval()
    with torch.no_grad():
        made.model.embed_tokens.weight *= scale
    if dtype == torch.float64:
        for module in made.modules():
            if type(module).__name__.endswith("RMSNorm"):  # transformers' own casts to float32 inside
                module.forward = partial(_exact_rms_norm, module)
    made.generation_config.eos_token_id = END
    return Policy(made, SimpleNamespace(eos_token_id=END))


def _exact_rms_norm(module, x):
    return module.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + module.variance_epsilon)
