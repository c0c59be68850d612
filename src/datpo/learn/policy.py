"""The policy: a Hugging Face decoder whose attention we lay out ourselves, and its tokenizer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedTokenizerFast
from transformers.utils import GENERATION_CONFIG_NAME
from transformers.utils.logging import disable_progress_bar

from datpo.core.errors import InputError
from datpo.core.tree import Ints
from datpo.learn.attention import Attend, ChainAttention
from datpo.learn.flex import FlexTreeAttention
from datpo.learn.loss import token_logprobs
from datpo.learn.pack import Pack

disable_progress_bar()  # of reading and writing weights: a job has one bar, its own


@dataclass(frozen=True)
class Policy:
    """A model and its tokenizer; `stop_tokens` end a response beside those that the model declares."""

    model: Any
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: frozenset[int] = frozenset()

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        device: torch.device = self.model.device
        return device

    @property
    def end_tokens(self) -> frozenset[int]:
        """Every token id that ends a response: those of the generation config, the tokenizer's own and those added."""
        declared = self.model.generation_config.eos_token_id
        ids = declared if isinstance(declared, list) else [declared]
        return self.stop_tokens | {int(i) for i in [*ids, self.tokenizer.eos_token_id] if i is not None}

    def ending_at(self, texts: Sequence[str]) -> Policy:
        """The same policy, whose responses end at these tokens too.

        Raises:
            InputError: a text is not a single token of this tokenizer.
        """
        ids = frozenset(_single_token(self.tokenizer, text) for text in texts)
        return replace(self, stop_tokens=self.stop_tokens | ids)

    @property
    def context_window(self) -> int:
        """Tokens the model can look at."""
        return int(self.model.config.max_position_embeddings)

    def recompute_layers(self) -> None:
        """From now on a pack's decoder layers keep their inputs alone, and are computed again in the backward pass."""
        self.model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
        self.model.disable_input_require_grads()  # a hook for frozen embeddings, which would change sampling too

    def decode(self, tokens: Sequence[int] | Ints) -> str:
        """The text of tokens, end and other special tokens left out."""
        # the tokenizer's own decode costs five times this in conversions; rollouts decode thousands of branches a step
        text: str = self.tokenizer.backend_tokenizer.decode(list(map(int, tokens)), skip_special_tokens=True)
        return text

    def hidden(self, token_T: Tensor, position_T: Tensor, attend: Attend) -> Tensor:
        """Last hidden states (rows, T, D) of a batch whose attention `attend` lays out."""
        out = self.model.model(
            input_ids=token_T, position_ids=position_T, use_cache=False, attend=attend
        ).last_hidden_state
        assert isinstance(out, Tensor)
        return out

    def pack_logprobs(self, pack: Pack, logit_budget: int, temperature: float) -> Tensor:
        """Log-probabilities (S,) of a pack's scored tokens, each read at its parent token.

        No more than `logit_budget` logits, tokens x vocabulary, exist at one time.
        """
        hidden_SD, token_S = self.scored_hidden(pack)
        chunk = max(1, logit_budget // self.model.config.vocab_size)
        return token_logprobs(hidden_SD, self.model.lm_head, token_S, chunk, temperature)

    def scored_hidden(self, pack: Pack) -> tuple[Tensor, Tensor]:
        """Last hidden states (S, D) of the parents of a pack's scored tokens, and those tokens (S,)."""
        device = self.device
        attend = FlexTreeAttention(pack, device) if device.type == "cuda" else ChainAttention(pack, device)
        filler = (0, attend.length - len(pack.token_T))
        token_T = functional.pad(torch.as_tensor(pack.token_T, device=device), filler)
        position_T = functional.pad(torch.as_tensor(pack.position_T, device=device), filler)
        # transformers recomputes layers in training mode only; sampling stays as it is
        self.model.train(self.model.is_gradient_checkpointing)
        hidden_TD = self.hidden(token_T[None], position_T[None], attend)[0]
        self.model.eval()
        hidden_SD = hidden_TD.index_select(0, torch.as_tensor(pack.parent_S, device=device))
        return hidden_SD, token_T[torch.as_tensor(pack.scored_S, device=device)]


def _single_token(tokenizer: PreTrainedTokenizerFast, text: str) -> int:
    """The id of the token that `text` is, whether the vocabulary spells it so ("<|im_end|>") or in its own way."""
    known = tokenizer.get_vocab().get(text)
    if known is not None:
        return int(known)
    ids = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
    if len(ids) != 1 or tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False) != text:
        raise InputError(
            f"prompt.stop_tokens: {text!r} is not one token of this model's tokenizer; name one that it has, or give "
            "the text under prompt.stop, before which responses are cut"
        )
    return int(ids[0])


def checkpoint_hash(folder: Path) -> str:
    """SHA-256 over everything in a checkpoint folder that its answers depend on: weights, configuration, tokenizer.

    Raises:
        InputError: the folder holds no weights.
    """
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise InputError(f"{folder}: no checkpoint here (*.safetensors is missing)")
    digest = hashlib.sha256()
    for path in [*sorted(folder.glob("*.json")), *sorted(folder.glob("*.jinja")), *weights]:
        with open(path, "rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def load_policy(folder: str | Path, dtype: torch.dtype = torch.float32) -> Policy:
    """Load a checkpoint folder (config, safetensors, tokenizer); nothing is looked up on the network.

    Raises:
        InputError: the folder is no whole checkpoint.
    """
    folder = Path(folder)
    if not (folder / "config.json").exists():
        raise InputError(f"{folder}: no checkpoint here (config.json is missing)")
    try:
        # the tokens that end a response stand there; loading the model passes over a damaged file
        if GENERATION_CONFIG_NAME in os.listdir(folder):
            GenerationConfig.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, attn_implementation="datpo", local_files_only=True
        )
        # AutoTokenizer would put the splitting rules of the model family over those of the file
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise InputError(f"{folder}: not a whole checkpoint ({error})") from error
    return Policy(model.eval(), tokenizer)


def save_policy(policy: Policy, folder: Path) -> None:
    """Write the checkpoint: safetensors, config, generation config, tokenizer."""
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
