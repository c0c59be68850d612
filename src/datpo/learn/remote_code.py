"""Models whose code comes from the hub and was written for transformers 4, as the paper's embedder."""

from __future__ import annotations

import torch
from accelerate import init_empty_weights
from torch import Tensor, nn
from transformers import PreTrainedModel


def mend(model: nn.Module) -> None:
    """Give the models inside `model` whose code came from the hub what transformers 5 no longer does for them.

    It builds a model without memory and fills in what the weights' file holds. Buffers that stand in no file, such as
    positions, are then whatever was in memory: here they are computed again. And it has no
    `get_extended_attention_mask` any more.
    """
    for each in [part for part in model.modules() if isinstance(part, PreTrainedModel)]:
        if not type(each).__module__.startswith("transformers_modules."):
            continue
        with init_empty_weights(include_buffers=False):
            anew = type(each)(each.config)
        saved = set(anew.state_dict())
        for name, buffer in anew.named_buffers():
            if name not in saved:
                owner, _, own = name.rpartition(".")
                each.get_submodule(owner).register_buffer(own, buffer.to(each.device), persistent=False)
        if not hasattr(each, "get_extended_attention_mask"):
            type(each).get_extended_attention_mask = extended_attention_mask


def extended_attention_mask(
    model: PreTrainedModel, attention_mask: Tensor, input_shape: object = None, device: object = None
) -> Tensor:
    """What is added to attention scores, (B, 1, 1, T): 0 at tokens, and as good as minus infinity at padding.

    Args:
        model: whose type of numbers it has.
        attention_mask: 1 at tokens, 0 at padding (B, T).
        input_shape: not needed, nor is `device`; callers give them by place.
        device: see `input_shape`.
    """
    visible = attention_mask[:, None, None, :].to(model.dtype)
    return (1 - visible) * torch.finfo(model.dtype).min
