import math

import numpy as np
import pytest

from datpo.core.errors import InputError
from datpo.evaluate.bootstrap import intervals


def test_an_interval_is_about_two_standard_errors():
    values = np.repeat([0.0, 1.0], 200)[:, None]
    value, low, high = intervals(values, draws=4000)[0]
    standard_error = 0.5 / math.sqrt(400)
    assert value == 0.5
    assert high - low == pytest.approx(2 * 1.96 * standard_error, rel=0.08)


def test_the_same_seed_gives_the_same_interval_and_all_metrics_the_same_draws():
    values = np.random.default_rng(1).random((30, 1))
    twice = intervals(np.hstack([values, values]), 500, seed=3)
    assert twice[0] == pytest.approx(twice[1])
    assert twice[0] == pytest.approx(intervals(values, 500, seed=3)[0])
    assert twice[0] != pytest.approx(intervals(values, 500, seed=4)[0])


def test_coverage_of_the_true_mean():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(300):
        _, low, high = intervals(rng.random((50, 1)) < 0.3, draws=300, seed=seed)[0]
        hits += low <= 0.3 <= high
    assert 0.88 <= hits / 300 <= 0.99


def test_one_problem_gives_no_interval():
    value, low, high = intervals([[0.25]])[0]
    assert value == 0.25
    assert math.isnan(low)
    assert math.isnan(high)


def test_nothing_has_no_mean():
    with pytest.raises(InputError):
        intervals(np.empty((0, 1)))
