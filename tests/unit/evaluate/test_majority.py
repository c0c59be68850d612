import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datpo.core.errors import InputError
from datpo.evaluate.majority import NO_VOTE, maj_at_k


def brute(correct, classes, k):
    """The mean over all subsets of size k of the accuracy of the winner, ties shared."""
    accuracy = {c: np.mean([r for r, d in zip(correct, classes, strict=True) if d == c]) for c in set(classes)}
    values = []
    for subset in itertools.combinations(classes, k):
        votes = [c for c in subset if c != NO_VOTE]
        most = max((votes.count(c) for c in votes), default=0)
        winners = {c for c in votes if votes.count(c) == most}
        values.append(np.mean([accuracy[c] for c in winners]) if winners else 0.0)
    return float(np.mean(values))


def test_the_class_with_most_votes_wins():
    # 3 votes for class 0 (right), 2 for class 1 (wrong)
    assert maj_at_k([[1, 1, 1, 0, 0]], [[0, 0, 0, 1, 1]], [5]) == [[1.0]]


def test_a_tie_is_shared_whatever_the_order():
    # two votes each, one class right: 1/2
    assert maj_at_k([[1, 0, 1, 0]], [[0, 1, 0, 1]], [4]) == [[0.5]]
    assert maj_at_k([[0, 1, 0, 1]], [[0, 1, 0, 1]], [4]) == [[0.5]]
    # three classes tied, two of them right (move puzzles have several right answers): 2/3
    assert maj_at_k([[1, 0, 1]], [[0, 1, 2]], [3])[0, 0] == pytest.approx(2 / 3)


def test_no_answer_does_not_vote():
    assert maj_at_k([[0, 0, 0, 1, 1]], [[-1, -1, -1, 0, 0]], [5]) == [[1.0]]
    assert maj_at_k([[0, 0, 0]], [[-1, -1, -1]], [3]) == [[0.0]]


def test_maj_at_1_is_exactly_the_mean():
    correct = [[1, 0, 0, 1, 0, 0, 1, 0]]
    classes = [[0, 1, NO_VOTE, 0, 2, 3, 4, NO_VOTE]]
    assert maj_at_k(correct, classes, [1])[0, 0] == pytest.approx(3 / 8)


def test_problems_with_different_numbers_of_samples():
    values = maj_at_k([[1, 1, 0], [1, 0]], [[0, 0, 1], [0, 1]], [1, 2])
    # k = 2: problem 1 over {00, 01, 01}: 1, 1/2, 1/2; problem 2: the tie
    assert values == pytest.approx(np.array([[2 / 3, 2 / 3], [1 / 2, 1 / 2]]), abs=0.03)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=1, max_size=8), st.data())
def test_close_to_all_subsets(classes, data):
    k = data.draw(st.integers(1, len(classes)))
    right = data.draw(st.sets(st.integers(0, 3)))
    correct = [c in right for c in classes]
    value = maj_at_k([correct], [classes], [k])[0, 0]
    # 256 subsets have a standard error of at most 0.5 / 16; k = n and k = 1 are exact
    tolerance = 1e-9 if k in (1, len(classes)) else 0.15
    assert value == pytest.approx(brute(correct, classes, k), abs=tolerance)


def test_the_estimate_has_no_bias():
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 3, 9).tolist()
    correct = [c == 0 for c in classes]
    values = [maj_at_k([correct], [classes], [4], seed=seed)[0, 0] for seed in range(60)]
    assert np.mean(values) == pytest.approx(brute(correct, classes, 4), abs=0.01)


def test_a_problem_s_value_does_not_depend_on_its_neighbours():
    correct, classes = [[1, 0, 0, 1]], [[0, 1, 1, 0]]
    alone = maj_at_k(correct, classes, [2])
    together = maj_at_k([[0, 0, 0, 0], *correct], [[0, 1, 2, 3], *classes], [2])
    assert alone[0] == together[1]


@pytest.mark.parametrize("k", [[], [0], [3]])
def test_impossible_k(k):
    with pytest.raises(InputError, match="maj@k"):
        maj_at_k([[1, 0]], [[0, 1]], k)
