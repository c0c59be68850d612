"""How different a block is from its siblings: 1 - mean cosine similarity of their embedded texts (DATPO, eq. 6, 8).

Which blocks are compared with each other is a choice (`Groups`); a text is embedded without what stands before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from datpo.core.tree import Floats, Ints, RolloutTree

Decode = Callable[[Ints], str]
Embed = Callable[[Sequence[str]], Floats]  # texts -> unit vectors, one row each
Groups = Callable[[RolloutTree], Sequence[Sequence[int]]]  # a tree -> blocks that are compared with each other
Vectors = Mapping[int, Floats | None]  # block -> the unit vector of its text; None: it has no text


def siblings(tree: RolloutTree) -> Sequence[Sequence[int]]:
    """The blocks that start at the same fork, the base continuation included; the root is no fork (eq. 8)."""
    return tree.siblings


def branches_alone(tree: RolloutTree) -> Sequence[Sequence[int]]:
    """The blocks that start at the same fork, without the continuation of the trajectory that was forked."""
    return [group[1:] for group in tree.siblings]  # blocks come branch by branch, a branch behind what it forked from


def released_groups(tree: RolloutTree) -> Sequence[Sequence[int]]:
    """What the released DATPO code compares: the first blocks of the base rollouts, and the branches of each fork.

    So later blocks of a base rollout have no diversity. The release compares branches by their whole text; as it
    does not fork a branch again, that is a branch's only block.
    """
    first = [index for index, block in enumerate(tree.blocks) if block.parent is None]
    return [first, *branches_alone(tree)]


def sibling_diversity(
    trees: Sequence[RolloutTree], decode: Decode, embed: Embed, groups: Groups = siblings
) -> list[Floats]:
    """Div(b) of every block (`block_diversity`), one array (B,) per tree; all texts are embedded in one call."""
    vectors = embedded(trees, decode, embed, groups)
    return [block_diversity(tree, known, groups) for tree, known in zip(trees, vectors, strict=True)]


def embedded(trees: Sequence[RolloutTree], decode: Decode, embed: Embed, groups: Groups = siblings) -> list[Vectors]:
    """The vectors of the blocks that stand in a group, for each tree; one call for all the trees' distinct texts."""
    texts = [
        {block: decode(tree.block_tokens(tree.blocks[block])).strip() for group in groups(tree) for block in group}
        for tree in trees
    ]
    distinct = sorted({text for own in texts for text in own.values() if text})
    vectors = dict(zip(distinct, embed(distinct), strict=True)) if distinct else {}
    return [{block: vectors.get(text) for block, text in own.items()} for own in texts]


def block_diversity(tree: RolloutTree, vectors: Vectors, groups: Groups = siblings) -> Floats:
    """Div(b) = 1 - mean over the other blocks b' of its group of cos(e_b, e_b'), (B,) (eq. 8).

    A block without text is nobody's sibling; a block without a sibling has diversity 0.
    """
    diversity_B = np.zeros(len(tree.blocks))
    for group in groups(tree):
        spoken, distance = _distances(group, vectors)
        if len(spoken) > 1:
            diversity_B[spoken] = distance.sum(axis=1) / (len(spoken) - 1)
    return diversity_B


def tree_diversity(tree: RolloutTree, vectors: Vectors, groups: Groups = siblings) -> float:
    """SibDiv = 1 - mean over forks f of the mean over pairs i < j of f's blocks of cos(e_i, e_j) (eq. 6).

    With `branches_alone` for the groups the base continuation stays out. Blocks without text make no pair, and a
    fork without a pair does not count; nan if none does.
    """
    means = []
    for group in groups(tree):
        spoken, distance = _distances(group, vectors)
        if len(spoken) > 1:
            means.append(distance.sum() / (len(spoken) * (len(spoken) - 1)))
    return float(np.mean(means)) if means else math.nan


def lexical(texts: Sequence[str]) -> Floats:
    """Cheap embeddings for tests and tiny models: hashed counts of runs of 1 to 3 characters, unit length."""
    vectorizer = HashingVectorizer(
        analyzer="char", ngram_range=(1, 3), n_features=1024, alternate_sign=False, norm="l2"
    )
    return np.asarray(vectorizer.transform(texts).toarray(), dtype=float)


def _distances(group: Sequence[int], vectors: Vectors) -> tuple[list[int], Floats]:
    """The blocks of a group that have a text, and 1 - cos of each pair of them; unit vectors make the diagonal 0."""
    known = [(block, vector) for block in group if (vector := vectors[block]) is not None]
    if not known:
        return [], np.zeros((0, 0))
    rows = np.stack([vector for _, vector in known])
    return [block for block, _ in known], 1.0 - rows @ rows.T
