"""How different a block is from its siblings: 1 - mean cosine similarity of their embedded texts (DATPO, eq. 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from datpo.core.tree import Floats, Ints, RolloutTree

Embed = Callable[[Sequence[str]], Floats]  # texts -> unit vectors, one row each


def sibling_diversity(trees: Sequence[RolloutTree], decode: Callable[[Ints], str], embed: Embed) -> list[Floats]:
    """Div(b) = 1 - mean over the siblings b' of cos(e_b, e_b') for every block b, one array (B,) per tree.

    Siblings are the blocks that start at the same fork, the base continuation included; the root is no fork. A
    block without text has no embedding; a block without a valid sibling has diversity 0. All texts of all trees
    are embedded in one call.
    """
    groups = [(t, group) for t, tree in enumerate(trees) for group in tree.siblings]
    texts = [[decode(trees[t].block_tokens(trees[t].blocks[block])).strip() for block in group] for t, group in groups]
    unique = sorted({text for group in texts for text in group if text})
    rows = {text: row for row, text in enumerate(unique)}
    vectors = embed(unique) if unique else np.zeros((0, 1))
    diversity = [np.zeros(len(tree.blocks)) for tree in trees]
    for (t, group), words in zip(groups, texts, strict=True):
        valid = [(block, rows[word]) for block, word in zip(group, words, strict=True) if word]
        if len(valid) < 2:
            continue
        chosen = vectors[[row for _, row in valid]]
        cosine = chosen @ chosen.T
        others = (cosine.sum(axis=1) - np.diag(cosine)) / (len(valid) - 1)
        diversity[t][[block for block, _ in valid]] = 1.0 - others
    return diversity


def lexical(texts: Sequence[str]) -> Floats:
    """Cheap embeddings for tests and tiny models: hashed counts of runs of 1 to 3 characters, unit length."""
    vectorizer = HashingVectorizer(
        analyzer="char", ngram_range=(1, 3), n_features=1024, alternate_sign=False, norm="l2"
    )
    return np.asarray(vectorizer.transform(texts).toarray(), dtype=float)
