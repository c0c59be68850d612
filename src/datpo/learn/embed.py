"""Text embedders by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datpo.core.errors import InputError
from datpo.core.tree import Floats
from datpo.credit.diversity import Embed, lexical


def embedder(name: str, revision: str | None = None, remote_code: bool = False) -> Embed:
    """`lexical`, or a sentence-transformers model (a hub name or a folder) that gives unit vectors.

    Raises:
        InputError: remote code is asked for without a pinned revision, or the model cannot be loaded.
    """
    if name == "lexical":
        return lexical
    if remote_code and not revision:
        raise InputError(f"embedder {name}: embedder_remote_code needs embedder_revision, a pinned commit")
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(name, revision=revision, trust_remote_code=remote_code)
    except (OSError, ValueError) as error:
        raise InputError(f"embedder {name}: cannot be loaded ({error})") from error

    def embed(texts: Sequence[str]) -> Floats:
        vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=float)

    return embed
