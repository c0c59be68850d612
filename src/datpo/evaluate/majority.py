"""maj@k: what the most frequent answer is worth.

Suffixes: P problems, N samples of a problem, C classes, K values of k, W windows (random subsets).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datpo.core.errors import InputError
from datpo.core.seeds import generator

NO_VOTE = -1
WINDOWS = 256  # random subsets of each size k < n, at least
CHUNK = 64  # problems at a time: their vote counts fit in a few megabytes


def maj_at_k(
    correct: Sequence[Sequence[bool]], classes: Sequence[Sequence[int]], k: Sequence[int], seed: int = 0
) -> NDArray[np.float64]:
    """The expected accuracy of the answer that most of k samples agree on.

    Votes are counted over equivalence classes of answers, not over strings. Where several classes have the
    most votes the tie is shared: the value is the mean of their accuracies, so it does not depend on the
    samples' order. The accuracy of a class is the share of its members graded right: 0 or 1, unless the
    checker contradicts itself within the class. A sample without an answer does not vote; if nobody votes the
    value is 0.

    k = n is exact. For k < n the value is an average over random subsets of size k: the samples are put in a
    random circle and each run of k neighbours is one subset. Such a subset is uniformly distributed, so the
    estimate has no bias, and every sample is used equally often, so that maj@1 is exactly the share of right
    votes. At least 256 subsets are drawn.

    Args:
        correct: for each problem whether each sample was graded right.
        classes: for each problem the class of each sample's answer, `NO_VOTE` without one.
        k: subset sizes (K,).
        seed: base seed of the random circles.

    Returns:
        One value for each problem and k (P, K).

    Raises:
        InputError: k above the number of samples of a problem, or below 1.
    """
    by_size: dict[int, list[int]] = {}
    for index, votes in enumerate(classes):
        by_size.setdefault(len(votes), []).append(index)
    if not k or min(k) < 1 or (by_size and max(k) > min(by_size)):
        raise InputError(f"maj@k needs k from 1 to the number of samples ({min(by_size, default=0)}), not {list(k)}")
    value_PK = np.empty((len(classes), len(k)))
    for size, members in by_size.items():
        # The same circles for every problem, so that its value does not depend on the others in the file.
        orders_WN = _circles(size, generator(seed, "maj", size))
        below = [subset for subset in k if subset < size]
        for at in range(0, len(members), CHUNK):
            some = members[at : at + CHUNK]
            votes_PN = np.array([_consecutive(classes[index]) for index in some])
            correct_PN = np.array([correct[index] for index in some], dtype=float)
            values = {size: _values(votes_PN, correct_PN, [size], np.arange(size)[None])[:, 0]}
            values |= dict(zip(below, _values(votes_PN, correct_PN, below, orders_WN).T, strict=True))
            value_PK[some] = np.stack([values[subset] for subset in k], axis=1)
    return value_PK


def _consecutive(votes: Sequence[int]) -> list[int]:
    """The same classes, numbered 0, 1, … in order of appearance."""
    numbers: dict[int, int] = {NO_VOTE: NO_VOTE}
    return [numbers.setdefault(vote, len(numbers) - 1) for vote in votes]


def _values(
    votes_PN: NDArray[np.int64],
    correct_PN: NDArray[np.float64],
    k: Sequence[int],
    orders_WN: NDArray[np.int64],
) -> NDArray[np.float64]:
    """For each problem and k the mean, over the windows, of what the first k samples of a window elect."""
    accuracy_PC = _class_accuracy(votes_PN, correct_PN)
    problems, columns = accuracy_PC.shape
    windows = len(orders_WN)
    shape = (problems, windows)
    count = np.zeros(problems * windows * columns, dtype=np.int16)
    row = (np.arange(problems * windows) * columns).reshape(shape)  # where the counts of a window begin
    most, tied = np.zeros(shape, dtype=np.int16), np.zeros(shape, dtype=np.int16)
    right = np.zeros(shape)
    value_PK = np.empty((problems, len(k)))
    # One vote is added after another: the value for every k is read on the way, at a cost linear in n.
    for drawn in range(1, max(k, default=0) + 1):
        vote = votes_PN[:, orders_WN[:, drawn - 1]]
        place = row + vote % columns  # NO_VOTE = -1 counts in the last column, which no class uses
        votes = count.take(place) + 1
        count[place] = votes
        votes[vote == NO_VOTE] = 0
        accuracy = np.take_along_axis(accuracy_PC, vote % columns, axis=1)
        ahead, level = votes > most, (votes == most) & (votes > 0)
        right = np.where(ahead, accuracy, right + level * accuracy)
        tied = np.where(ahead, 1, tied + level)
        most = np.maximum(most, votes)
        if drawn in k:
            value_PK[:, np.asarray(k) == drawn] = (right / np.maximum(tied, 1)).mean(axis=1, keepdims=True)
    return value_PK


def _class_accuracy(votes_PN: NDArray[np.int64], correct_PN: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of right members of each class (P, C + 1); the last column belongs to nobody."""
    problems, n = votes_PN.shape
    rows = np.broadcast_to(np.arange(problems)[:, None], (problems, n))
    members, right = np.zeros((2, problems, votes_PN.max() + 2))
    np.add.at(members, (rows, votes_PN), 1)
    np.add.at(right, (rows, votes_PN), correct_PN)
    return np.asarray(right / np.maximum(members, 1))


def _circles(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """At least `WINDOWS` orders of n samples: all rotations of random circles (W, N)."""
    circles = -(-WINDOWS // n)
    order = rng.permuted(np.broadcast_to(np.arange(n), (circles, n)), axis=1)
    turned = (np.arange(n)[:, None] + np.arange(n)) % n
    return np.asarray(order[:, turned].reshape(circles * n, n))
