import numpy as np
import pytest
from tests.trees import branch, tree

from datpo.search.budget import Plan
from datpo.search.forks import fork_bounds, sentence_entropy, sentence_scores

RNG = np.random.default_rng(0)


def spoken(entropies, sentences, finish="length", start=0):
    signals = {"entropy": np.array(entropies, dtype=float), "sentence": np.array(sentences, dtype=float)}
    return branch(None, start, len(entropies), 1, finish=finish, signals=signals)


# sentence:      0    0    1    1    1    2    3    3
# mean entropy:  0.3       0.5            0.9  0.2         ranks: 2, 1, 0, 3
BASE = spoken([0.1, 0.5, 0.6, 0.0, 0.9, 0.9, 0.2, 0.2], [0, 0, 1, 1, 1, 2, 3, 3])


def positions(base, forks, after_first_token):
    return [f.at for f in sentence_entropy(after_first_token)(tree(base), Plan(forks, 2), RNG)]


def test_scores_by_hand():
    starts, scores = sentence_scores(BASE)
    assert starts.tolist() == [0, 2, 5, 6]
    assert scores == pytest.approx([0.3, 0.5, 0.9, 0.2])


@pytest.mark.parametrize(
    ("forks", "after", "expected"),
    [
        (1, False, [5]),
        (2, False, [2, 5]),
        (3, False, [2, 5, 6]),  # the first sentence starts at 0, where no fork may lie
        (9, False, [2, 5, 6]),  # more forks than sentences
        (1, True, [6]),
        (2, True, [3, 6]),
        (3, True, [1, 3, 6]),  # keeping its first token, the first sentence can be forked
        (4, True, [1, 3, 6, 7]),
    ],
)
def test_forks_at_the_most_uncertain_sentences(forks, after, expected):
    assert positions(BASE, forks, after) == expected


def test_each_fork_gets_the_plans_siblings_and_every_base_is_forked():
    forks = sentence_entropy(False)(tree(BASE, BASE), Plan(1, 4), RNG)
    assert [(f.branch, f.at, f.siblings) for f in forks] == [(0, 5, 4), (1, 5, 4)]


def test_only_base_trajectories_are_forked():
    grown = tree(BASE, branch(0, 5, 3, 0))
    assert [f.branch for f in sentence_entropy(True)(grown, Plan(2, 1), RNG)] == [0, 0]


def test_a_tie_goes_to_the_earlier_sentence():
    assert positions(spoken([0.5] * 6, [0, 0, 1, 1, 2, 2]), 1, False) == [2]


def test_the_end_token_belongs_to_no_sentence_and_bounds_the_forks():
    base = spoken([0.1, 0.1, 0.2, 5.0], [0, 0, 1, -1], finish="stop")
    assert fork_bounds(base) == (1, 2)
    assert sentence_scores(base)[1] == pytest.approx([0.1, 0.2])
    assert positions(base, 3, False) == [2]
    # after its first token the second sentence would leave the end token alone behind the fork
    assert positions(base, 3, True) == [1]


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_responses_too_short_to_fork(length, after):
    base = spoken([0.4] * length, [0] * (length - 1) + [-1], finish="stop")
    assert positions(base, 3, after) == []
