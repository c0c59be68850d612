"""Text embedders by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datpo.core.errors import InputError
from datpo.core.tree import Floats
from datpo.credit.diversity import Embed, lexical
from datpo.data.packages import INSTALLED, folder_in_package


def embedder(
    name: str, revision: str | None = None, remote_code: bool = False, code_revision: str | None = None
) -> Embed:
    """`lexical`, or a sentence-transformers model that gives unit vectors.

    It is a name on the hub, a folder, or `package:NAME==VERSION`, an installed package with the folder of one.

    A model's code may lie in another repository than its weights, so each is pinned to a commit of its own.

    Raises:
        InputError: remote code is asked for without pinned revisions, or the model cannot be loaded.
    """
    if name == "lexical":
        return lexical
    if remote_code and not (revision and code_revision):
        raise InputError(
            f"embedder {name}: embedder_remote_code runs code from the hub, so it needs embedder_revision and "
            "embedder_code_revision, the commits of weights and code that you trust"
        )
    if name.startswith(INSTALLED):
        name = str(folder_in_package(name.removeprefix(INSTALLED), "modules.json"))
    from sentence_transformers import SentenceTransformer

    pinned = {"code_revision": code_revision} if remote_code else {}
    try:
        model = SentenceTransformer(
            name, revision=revision, trust_remote_code=remote_code, model_kwargs=pinned, config_kwargs=pinned
        )
    except (OSError, ValueError) as error:
        raise InputError(f"embedder {name}: cannot be loaded ({error})") from error

    def embed(texts: Sequence[str]) -> Floats:
        vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=float)

    return embed
