"""Fork rules: where a base trajectory is forked, read off its signals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from datpo.core.tree import Branch, Fork, Ints, RolloutTree
from datpo.search.budget import Plan

ForkRule = Callable[[RolloutTree, Plan, np.random.Generator], list[Fork]]

NO_SENTENCE = -1  # the "sentence" signal of an end token


def fork_bounds(branch: Branch) -> tuple[int, int]:
    """The first and last position a fork may lie at: never at the start, never behind the last token before EOS."""
    end_tokens = 1 if branch.finish == "stop" else 0
    return branch.start + 1, branch.stop - 1 - end_tokens


def no_forks(tree: RolloutTree, plan: Plan, rng: np.random.Generator) -> list[Fork]:
    """Parallel sampling: nothing is forked."""
    return []


def sentence_entropy(after_first_token: bool) -> ForkRule:
    """Fork at the starts of the sentences the policy was least sure of (DATPO, Algorithm 1).

    The score of a sentence is the mean entropy of its tokens; the K highest are taken, the earlier one on a tie.
    With `after_first_token` the sentence's first token stays in the prefix (the paper's algorithms read literally,
    and its code); without, it is sampled anew. Needs the signals "entropy" and "sentence".
    """

    def rule(tree: RolloutTree, plan: Plan, rng: np.random.Generator) -> list[Fork]:
        """At most `plan.forks` forks on each base trajectory, in order of position."""
        forks = []
        for root in tree.roots:
            branch = tree.branches[root]
            starts, scores = sentence_scores(branch)
            first, last = fork_bounds(branch)
            positions = branch.start + starts + int(after_first_token)
            allowed = (first <= positions) & (positions <= last)
            ranked = np.argsort(-scores[allowed], kind="stable")[: plan.forks]
            chosen = sorted(positions[allowed][ranked].tolist())
            forks += [Fork(root, at, plan.siblings) for at in chosen]
        return forks

    return rule


def sentence_scores(branch: Branch) -> tuple[Ints, np.ndarray]:
    """First token and mean token entropy (nats) of each sentence of a branch, in order; both (S,)."""
    sentence_T = np.asarray(branch.signals["sentence"], dtype=np.int64)
    entropy_T = np.asarray(branch.signals["entropy"], dtype=float)
    spoken = sentence_T != NO_SENTENCE
    if not spoken.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    labels, starts, group_T = np.unique(sentence_T[spoken], return_index=True, return_inverse=True)
    sums = np.bincount(group_T, weights=entropy_T[spoken], minlength=len(labels))
    counts = np.bincount(group_T, minlength=len(labels))
    return np.flatnonzero(spoken)[starts].astype(np.int64), sums / counts
