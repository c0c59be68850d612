"""Text embedders by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datpo.core.errors import InputError
from datpo.core.tree import Floats
from datpo.credit.diversity import Embed, lexical
from datpo.data.packages import INSTALLED, folder_in_package


def embedder_of(train: Mapping[str, Any]) -> Embed:
    """The embedder that the settings of a training name; errors as of `embedder`."""
    keys = ("embedder_revision", "embedder_remote_code", "embedder_code_revision")
    return embedder(train["embedder"], *map(train.get, keys))


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

    if remote_code:
        from datpo.learn.remote_code import mend

        mend(model)

    def embed(texts: Sequence[str]) -> Floats:
        vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=float)

    _try_out(embed, name)
    return embed


def _try_out(embed: Embed, name: str) -> None:
    """Refuse an embedder that does not work with the installed packages: now, and not after hours of sampling.

    Raises:
        InputError: it ends in an error, or a text's vector hangs on the texts beside it.
    """
    short, long = "So x = 3.", "Then we add 2 to both sides of the equation, and so the answer is 12."
    try:
        alone, beside = embed([short])[0], embed([long, short])
    except Exception as error:  # of foreign code: any
        raise InputError(f"embedder {name}: does not work here ({type(error).__name__}: {error})") from error
    if not np.allclose(alone, beside[1], atol=1e-2):
        raise InputError(f"embedder {name}: does not work here (a text's vector depends on the texts beside it)")
