"""How large a model is: parameters, operations per token, bytes per cached token; from its configuration alone.

A decoder with grouped-query attention and a gated MLP, as Qwen2, Qwen3 and Llama are. One multiplication with its
addition counts as two operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.files import read_json

SIZES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size"),
    "vocab_size",
)
# model_type -> (biases of query, key and value; norms of query and key heads)
FAMILIES = {"qwen2": (True, False), "qwen3": (False, True), "llama": (False, False)}
# Of a model that is pre-trained here: datpo.learn.pretrain makes Qwen2 models, and builds the tokenizer beside them,
# which has about so many entries.
PRETRAINED = {"model_type": "qwen2", "tie_word_embeddings": True, "vocab_size": 351}


@dataclass(frozen=True)
class Size:
    """The numbers of an architecture.

    Attributes:
        hidden: width of the residual stream.
        inner: width inside a layer's MLP.
        heads, groups: query heads, and key-value heads.
        head: width of a head.
        tied: whether the head is the embedding.
        biases: whether queries, keys and values have one.
        head_norms: whether query and key heads are normalised.
    """

    hidden: int
    inner: int
    layers: int
    heads: int
    groups: int
    head: int
    vocabulary: int
    tied: bool
    biases: bool
    head_norms: bool

    @property
    def queries(self) -> int:
        """Width of all query heads of a layer together."""
        return self.heads * self.head

    @property
    def keys(self) -> int:
        """Width of all key heads of a layer together; of its values too."""
        return self.groups * self.head

    @property
    def matrices(self) -> int:
        """Parameters of the layers' matrices: each is used once for a token."""
        attention = 2 * self.hidden * self.queries + 2 * self.hidden * self.keys
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @property
    def head_matrix(self) -> int:
        """Parameters that give a token's logits."""
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All parameters, a tied matrix counted once."""
        biases = (self.queries + 2 * self.keys) if self.biases else 0
        norms = 2 * self.hidden + (2 * self.head if self.head_norms else 0)
        embeddings = self.head_matrix * (1 if self.tied else 2)
        return self.matrices + self.layers * (biases + norms) + self.hidden + embeddings

    def cached_bytes(self, number: int) -> int:
        """Bytes that a token's keys and values take, at `number` bytes each."""
        return 2 * self.layers * self.keys * number

    def forward(self, tokens: float, logits: float, attended: float) -> float:
        """Operations of a forward pass: 2 for each parameter and token, and attention.

        Args:
            tokens: that run through the layers.
            logits: of these, how many whose logits are computed.
            attended: pairs of a token and one that it looks at; each costs a product with its key and one with its
                value.
        """
        return 2 * (self.matrices * tokens + self.head_matrix * logits) + 4 * self.layers * self.queries * attended

    def training(self, tokens: float, logits: float, attended: float, recomputed: bool = False) -> float:
        """Operations of a forward and backward pass, 6 for each parameter and token: the backward pass costs two.

        Logits are computed a second time in the backward pass (`datpo.learn.loss`), and so are the layers where they
        are `recomputed` (activation checkpointing).
        """
        once_more = self.forward(tokens if recomputed else 0, logits, attended if recomputed else 0)
        return 3 * self.forward(tokens, logits, attended) + once_more


def size_of(config: Mapping[str, Any], place: str) -> Size:
    """The sizes in a model's configuration, with the keys of transformers.

    Raises:
        InputError: a key is missing or no whole number, or the kind of model is unknown; it is named with its place.
    """
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        raise InputError(
            f"{place}: model_type {config.get('model_type')!r} has no formulas here; known: {', '.join(FAMILIES)}"
        )
    for key in SIZES:
        if type(config.get(key)) is not int or config[key] < 1:
            raise InputError(f"{place}: {key} must be a whole number from 1, not {config.get(key)!r}")
    hidden, layers, heads, groups, inner, vocabulary = (config[key] for key in SIZES)
    biases, norms = family
    return Size(
        hidden=hidden,
        inner=inner,
        layers=layers,
        heads=heads,
        groups=groups,
        head=config.get("head_dim") or hidden // heads,
        vocabulary=vocabulary,
        tied=bool(config.get("tie_word_embeddings", False)),
        biases=biases,
        head_norms=norms,
    )


def model_size(name: str, model: Mapping[str, Any], checkpoint: Path, known: Mapping[str, Mapping[str, Any]]) -> Size:
    """The sizes of an experiment's model: of its checkpoint if that is there, else of what it will be made from.

    Args:
        name: as in `models`.
        model: its settings, `pretrain` or `source`.
        checkpoint: the folder that holds it once it is fetched or pre-trained.
        known: configurations by repository or package.

    Raises:
        InputError: it is on the hub, not here, and its sizes are not known.
    """
    folders = [checkpoint, *([Path(model["source"]["path"])] if model.get("source", {}).get("path") else [])]
    for file in (folder / "config.json" for folder in folders):
        if file.exists():
            return size_of(read_json(file), str(file))
    if "pretrain" in model:
        return size_of({**PRETRAINED, **model["pretrain"]["model"]}, f"config: models.{name}.pretrain.model")
    source = model["source"]
    place = source.get("hub") or source.get("package") or source.get("path") or source.get("gguf")
    if place not in known:
        raise InputError(
            f"models.{name}: the sizes of {place!r} are not known; fetch the model first ({checkpoint}), or add its "
            "sizes to config/hardware.yaml (models)"
        )
    return size_of(known[place], f"config/hardware.yaml: models.{place}")
