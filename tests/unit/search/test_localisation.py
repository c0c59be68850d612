import math

import numpy as np
import pytest
from tests.trees import branch, tree, tree_a, tree_b

from datpo.search.localisation import (
    clustering_ratio,
    fork_positions,
    mean_pairwise_distance,
    nearest_neighbour_distance,
)

LENGTH = 1_000_000
TRIALS = 20_000


def test_by_hand():
    # 10, 14, 20, 50 of 100 tokens; nearest: 4, 4, 6, 30; pairs: 4, 10, 40, 6, 36, 30
    at = np.array([20, 10, 50, 14])
    assert nearest_neighbour_distance(at, 100) == pytest.approx(44 / 4 / 100)
    assert mean_pairwise_distance(at, 100) == pytest.approx(126 / 6 / 100)
    assert clustering_ratio(at, 100, 5) == pytest.approx(1 / 6)
    assert clustering_ratio(at, 100, 10) == pytest.approx(3 / 6)  # a distance of just 10 % counts
    assert clustering_ratio(at, 100, 9.9) == pytest.approx(2 / 6)


def test_every_pair_counts_and_not_only_the_neighbours():
    # all three pairs of 0, 1, 2 lie within 2 of 20 tokens, two of them are neighbours
    assert clustering_ratio(np.array([0, 1, 2]), 20, 10) == 1.0
    assert clustering_ratio(np.array([0, 1, 2]), 20, 5) == pytest.approx(2 / 3)


@pytest.mark.parametrize("at", [[], [3]])
def test_a_lonely_fork_point_has_no_distance(at):
    at = np.array(at, dtype=np.int64)
    assert math.isnan(nearest_neighbour_distance(at, 10))
    assert math.isnan(mean_pairwise_distance(at, 10))
    assert math.isnan(clustering_ratio(at, 10, 5))


def means_of_uniform_points(points):
    """NND, MPD, WCR@5 and WCR@10 over many trajectories with fork points anywhere."""
    rows = np.random.default_rng(0).integers(0, LENGTH, (TRIALS, points))
    measures = [
        (
            nearest_neighbour_distance(row, LENGTH),
            mean_pairwise_distance(row, LENGTH),
            clustering_ratio(row, LENGTH, 5),
            clustering_ratio(row, LENGTH, 10),
        )
        for row in rows
    ]
    return np.mean(measures, axis=0)


def test_four_points_anywhere():
    # NND = (2/5 + 2/10)/4 = 0.15; MPD = 1/3; WCR@P = 1 - (1 - P)^2. The standard errors are below 0.001.
    assert means_of_uniform_points(4) == pytest.approx([0.15, 1 / 3, 0.0975, 0.19], abs=0.005)


def test_three_points_anywhere_are_further_from_each_other():
    # NND = (2/4 + 1/8)/3 = 0.208: published 0.157 for random forks therefore speaks for four of them
    assert means_of_uniform_points(3) == pytest.approx([0.2083, 1 / 3, 0.0975, 0.19], abs=0.005)


def test_fork_points_of_each_base_rollout():
    read = [[(at.tolist(), length) for at, length in fork_positions(grown)] for grown in (tree_a(), tree_b())]
    assert read == [[([4], 10), ([6], 12)], [([3, 7], 10)]]


def test_only_forks_of_the_base_rollout_itself_count_and_no_end_token():
    grown = tree(branch(None, 0, 9, 1, finish="stop"), branch(None, 0, 4, 0), branch(0, 5, 6, 0), branch(2, 7, 3, 1))
    (forked, length), (bare, other) = fork_positions(grown)
    assert (forked.tolist(), length) == ([5], 8)
    assert (bare.tolist(), other) == ([], 4)
