"""Both theorems: identities in fractions, worked numbers, and estimates that are right on average over all outcomes."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datpo.__main__ import main
from datpo.core.errors import InputError
from datpo.report.theory import checks as checks
from datpo.report.theory.figure import mean_gap, shown_runs
from datpo.report.theory.gap import (
    any_right,
    beta_gap,
    beta_pass,
    beta_variance,
    decompose,
    jensen_gap,
    power_of_mean,
    second_order,
)
from datpo.report.theory.page import theory_page
from datpo.report.theory.runs import measure
from datpo.report.theory.signal import (
    CENTRED,
    ESTIMATORS,
    GRPO,
    UNIT,
    curvature,
    expected_step,
    gain_per_mixed_group,
    growth,
    growth_of_growth,
    mixed_chance,
    remainder,
    simulated_step,
    step_variance,
)

SIZES = (2, 4, 8, 16)
chances = st.fractions(min_value=0, max_value=1, max_denominator=60)


# Theorem A.1


@given(chances, st.integers(1, 24))
def test_differences_of_the_chance_of_a_mixed_group_are_exact(p, size):
    psi = [mixed_chance(p, size + more) for more in range(3)]
    assert psi[1] - psi[0] == growth(p, size) >= 0
    assert psi[2] - 2 * psi[1] + psi[0] == growth_of_growth(p, size) <= 0


@given(chances, st.integers(1, 6))
def test_the_chance_of_a_mixed_group_counts_its_outcomes(p, size):
    mixed = [outcome for outcome in product((0, 1), repeat=size) if len(set(outcome)) == 2]
    assert mixed_chance(p, size) == sum(math.prod(p if right else 1 - p for right in outcome) for outcome in mixed)


@pytest.mark.parametrize(
    ("estimator", "worked"),
    [
        (UNIT, (0.42, 0.7518, 0.9423, 0.9967)),
        (GRPO, (0.210, 0.343, 0.412, 0.439)),
        (CENTRED, [0.3 * 0.7 * (1 - 1 / size) for size in SIZES]),
    ],
)
def test_worked_steps(estimator, worked):
    for size, step in zip(SIZES, worked, strict=True):
        assert expected_step(estimator, 0.3, size) == pytest.approx(step, abs=6e-4)


def test_steps_in_closed_form():
    for p, size in product((0.05, 0.3, 0.5, 0.9), (2, 3, 8, 20)):
        assert expected_step(UNIT, p, size) == pytest.approx(mixed_chance(p, size), abs=1e-12)
        assert expected_step(CENTRED, p, size) == pytest.approx(p * (1 - p) * (1 - 1 / size), abs=1e-12)


@pytest.mark.parametrize("estimator", [GRPO, CENTRED])
def test_the_closed_form_of_a_step_is_what_the_credit_of_the_project_gives(estimator):
    """Mean of advantage times score, for every number of right ones; the score of y is y - p, whatever p is."""
    for size, p in product((2, 5, 16), (0.2, 0.7)):
        for right in range(size + 1):
            rewards = np.array([1.0] * right + [0.0] * (size - right))
            step = np.mean(estimator.advantages(rewards) * (rewards - p))
            assert step == pytest.approx(estimator.step(right / size), rel=5e-4, abs=1e-15)


def test_simulated_steps_are_within_their_noise():
    """The numbers that were once simulated for the unit update lie within that noise as well."""
    for size, once in zip(SIZES, (0.4196, 0.7524, 0.9424, 0.9971), strict=True):
        exact = expected_step(UNIT, 0.3, size)
        found, error = simulated_step(UNIT, 0.3, size, 1e-5, 100_000, np.random.default_rng(size))
        assert error == pytest.approx(math.sqrt(exact * (1 - exact) / 100_000))
        assert abs(found - exact) < 4 * error
        assert abs(once - exact) < 1e-3
    assert step_variance(GRPO, 0.5, 2) == pytest.approx(1 / 16)  # 0 or a half, equally often


def test_what_the_first_order_leaves_out_is_of_second_order():
    for estimator in ESTIMATORS:
        off = [abs(remainder(estimator, 0.3, 8, rate) - curvature(estimator, 0.3, 8)) for rate in (0.4, 0.2, 0.1)]
        assert off[0] > 1.5 * off[1] > 2.25 * off[2] > 0


def test_assumption_a2_holds_for_the_unit_update_alone():
    def gains(estimator, p):
        return [gain_per_mixed_group(estimator, p, size) for size in SIZES]

    for p in (0.1, 0.3, 0.5):
        assert gains(UNIT, p) == pytest.approx([p * (1 - p)] * 4)
        for estimator in (GRPO, CENTRED):
            small, *others = gains(estimator, p)
            assert all(other < 0.97 * small for other in others), (estimator.name, p)
    assert gains(GRPO, 0.3) == pytest.approx([0.105, 0.09588, 0.09186, 0.09259], abs=1e-5)  # neither does it fall on
    assert gains(CENTRED, 0.3) == pytest.approx([0.0525, 0.04399, 0.04095, 0.04148], abs=1e-5)


def test_the_expected_step_grows_with_the_group_all_the_same():
    for estimator, p in product(ESTIMATORS, (0.05, 0.3, 0.5)):
        steps = [expected_step(estimator, p, size) for size in range(2, 40)]
        assert all(after > before for before, after in pairwise(steps))


# Theorem A.2


@given(st.lists(chances, min_size=1, max_size=5), st.integers(1, 12))
def test_the_gap_is_never_negative_and_zero_only_for_equal_problems(problems, k):
    gap = jensen_gap(problems, k)
    assert gap >= 0
    assert (gap == 0) == (k == 1 or len(set(problems)) == 1)


def test_worked_gaps_of_beta_populations():
    a, b = Fraction(3, 10), Fraction(2)
    for k, gap in ((1, 0), (4, 0.122), (16, 0.386), (256, 0.2206)):
        assert float(beta_gap(a, b, k)) == pytest.approx(gap, abs=5e-4)
    assert float(beta_gap(Fraction(1, 20), Fraction(1, 2), 256)) == pytest.approx(0.691, abs=5e-4)
    for k in (1, 7, 256):  # the moments of a Beta by the gamma function
        moment = math.lgamma(2.3) + math.lgamma(2 + k) - math.lgamma(2) - math.lgamma(2.3 + k)
        assert float(beta_pass(a, b, k)) == pytest.approx(1 - math.exp(moment), abs=1e-12)


def test_the_second_order_is_exact_for_two_tries_and_useless_for_256():
    for a, b in checks.BETAS:
        mu, variance = float(a / (a + b)), float(beta_variance(a, b))
        assert second_order(mu, variance, 1) == 0
        assert second_order(mu, variance, 2) == pytest.approx(float(beta_gap(a, b, 2)))
        assert second_order(mu, variance, 16) > 1.5 * float(beta_gap(a, b, 16))
        assert second_order(mu, variance, 256) < 1e-6 < 0.2 < float(beta_gap(a, b, 256))
    mu, variance = 0.3 / 2.3, float(beta_variance(Fraction(3, 10), Fraction(2)))
    assert [second_order(mu, variance, k) for k in (4, 16)] == pytest.approx([0.156, 0.583], abs=5e-4)


def test_polarised_populations_share_their_mean_and_solve_less_and_less():
    populations = [population for _, population in checks.polarised()]
    assert {a / (a + b) for a, b in populations} == {checks.MEAN}
    variances = [beta_variance(a, b) for a, b in populations]
    assert variances == sorted(set(variances))
    for k in (2, 16, 256):
        passed = [beta_pass(a, b, k) for a, b in populations]
        assert all(after < before for before, after in pairwise(passed))
        assert passed[-1] > checks.MEAN


@pytest.mark.parametrize(
    ("problems", "n"),
    [
        ((Fraction(1, 4),), (3,)),
        ((Fraction(1, 10), Fraction(1, 2)), (4, 4)),
        ((Fraction(0), Fraction(2, 3), Fraction(1)), (3, 2, 4)),
        ((Fraction(1, 5), Fraction(1, 5), Fraction(7, 10)), (3, 3, 3)),
    ],
)
def test_every_estimate_is_right_on_average_over_all_outcomes(problems, n):
    mean = sum(problems) / len(problems)
    for k in range(1, min(n) + 1):
        found = checks.expected_decomposition(problems, n, k)
        exact = {
            "mu": mean,
            "variance": sum(p**2 for p in problems) / len(problems) - mean**2,
            "f_mu": any_right(mean, k),
            "jensen": jensen_gap(problems, k),
            "passed": any_right(mean, k) - jensen_gap(problems, k),
        }
        assert {name: found[name] for name in exact} == pytest.approx(
            {name: float(value) for name, value in exact.items()}, abs=1e-12
        )


def test_plug_in_sees_a_gap_between_equal_problems():
    found = checks.expected_decomposition([Fraction(1, 2)] * 2, (2, 2), 2)
    # shares 0, 1/2, 1 with 1/4, 1/2, 1/4: two of them differ by variance 1/8 each, the gap at k = 2 is half of that
    assert found["jensen"] == pytest.approx(0, abs=1e-12)
    assert found["jensen_plug_in"] == pytest.approx(1 / 16)
    assert found["f_mu_plug_in"] == pytest.approx(3 / 4 - 1 / 16)


def test_one_problem_has_no_gap_and_two_can_be_worked_out():
    (one,) = decompose([5], [2], [3])
    assert (one.jensen, one.variance) == pytest.approx((0, 0), abs=1e-12)
    # wrong: 1 of 2 and 2 of 2, so q1 = 1/2, q1² = 0, q2 = q2² = 1: (q1² + 2 q1 q2 + q2²) / 4 = 1/2, less (0 + 1) / 2
    (two,) = decompose([2, 2], [1, 0], [2])
    assert (two.mu, two.f_mu, two.passed, two.jensen) == pytest.approx((1 / 4, 1 / 2, 1 / 2, 0))
    assert two.f_mu_plug_in == pytest.approx(1 - (3 / 4) ** 2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_powers_of_known_numbers_give_the_power_of_their_mean(values):
    power_PK = np.array([[value**k for k in range(40)] for value in values])
    assert power_of_mean(power_PK) == pytest.approx(np.mean(values) ** np.arange(40), rel=1e-9, abs=1e-12)


def test_a_single_sample_says_nothing_of_the_variance():
    (part,) = decompose([1, 1], [1, 0], [1])
    assert math.isnan(part.variance)
    assert (part.mu, part.f_mu, part.jensen) == pytest.approx((0.5, 0.5, 0))


def test_more_tries_than_samples_name_the_problem():
    with pytest.raises(InputError, match="pass@3 cannot be estimated for problem '1'"):
        decompose([4, 2], [1, 1], [1, 3])


# The verb


@pytest.fixture
def made(golden, tmp_path):
    config = tmp_path / "theory.yaml"
    config.write_text("{scale: tiny, seed: 0, draws: 2000}")

    def made(out, *, metrics=None):
        files = [str(path) for path in (golden.metrics if metrics is None else metrics)]
        return main(["theory", "--metrics", *files, "--config", str(config), "--out", str(tmp_path / out)])

    return made


def test_theory_writes_a_table_a_figure_and_a_page(made, tmp_path):
    assert made("a") == made("b") == 0
    for name in ("theory.csv", "theory.png", "theory.svg", "theory.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    frame = pd.read_csv(tmp_path / "a" / "theory.csv")
    assert (frame.error[frame.what.str.startswith("Psi")] == 0).all()
    assert np.allclose(frame.error, frame.compared - frame.value, atol=1e-12)
    simulated = frame[frame.standard_error > 0]
    assert len(simulated) > 40 and (abs(simulated.error) < 5 * simulated.standard_error).all()
    text = "".join(ET.parse(tmp_path / "a" / "theory.svg").getroot().itertext())
    for word in ("Theorem A.1", "Theorem A.2", "GRPO", "Base", "second order"):
        assert word in text
    page = (tmp_path / "a" / "theory.html").read_text()
    assert "What fails: assumption A2" in page and 'src="data:image/png;base64,' in page
    assert "http" not in page


def test_the_table_has_every_part_of_every_run(made, golden, tmp_path):
    assert made("out") == 0
    frame = pd.read_csv(tmp_path / "out" / "theory.csv")
    rows = frame[frame.what == "Jensen gap of a run: second order"]
    assert len(rows) == len(golden.metrics) * 3  # of k = 1, 2, 4
    assert np.allclose(rows.f_mu - rows.jensen, rows.passed)
    # GRPO, seed 0, on moves: 1 and 3 right of 4. wrong² = 1/2 and 0, (1/2 + 2 · 3/4 · 1/4 + 0) / 4 = 7/32
    (row,) = rows[(rows.run == "grpo") & (rows.seed == 0) & (rows.benchmark == "moves") & (rows.k == 2)].itertuples()
    assert (row.mu, row.f_mu, row.passed, row.jensen) == pytest.approx((1 / 2, 25 / 32, 3 / 4, 1 / 32))
    # the base model: 0 and 2 right. wrong² = 1 and 1/6, (1 + 2 · 1 · 1/2 + 1/6) / 4 = 13/24, pass@2 = (0 + 5/6) / 2
    change = frame[frame.what.str.startswith("change of pass@k")]
    (row,) = change[(change.seed == 0) & (change.benchmark == "moves") & (change.k == 2)].itertuples()
    assert (row.f_mu, row.passed) == pytest.approx((25 / 32 - 11 / 24, 3 / 4 - 5 / 12))
    assert np.allclose(change.error, 0, atol=1e-12)
    assert set(change.run) == {"grpo"}


def test_runs_need_not_be_comparable_but_each_stands_once(golden):
    other = golden.add_metrics([1, 2, 3], method="datpo", benchmark="other", n=8, ks=(1, 8), at="tokens-100")
    found = measure(golden.metrics, "tiny")
    assert [(each.at, each.change) for each in found if each.benchmark == "other"] == [("tokens-100", ())]
    with pytest.raises(InputError, match="same checkpoint and benchmark"):
        measure([other, other], "tiny")


def test_a_file_of_another_scale_or_none_is_refused(made, golden, capsys):
    document = json.loads(golden.metrics[0].read_text())
    document["header"]["scale"] = "paper"
    golden.metrics[0].write_text(json.dumps(document))
    assert made("out") == 2
    assert "of the scale 'paper', not 'tiny'" in capsys.readouterr().err
    assert made("out", metrics=[]) == 2
    assert "at least one" in capsys.readouterr().err


def test_names_are_escaped(golden):
    golden.add_metrics([1, 2], method="<b>$x_1$", benchmark="a&b")
    settings = {"scale": "<i>", "seed": 0, "draws": 10}
    page = theory_page(checks.all_checks(10, 0), measure(golden.metrics, "tiny"), settings, b"")
    assert "&lt;b&gt;$x_1$" in page and "a&amp;b" in page
    assert "<b>" not in page and "<i>" not in page


def test_the_figure_shows_one_model_and_benchmark_at_the_end_of_training(golden):
    golden.add_metrics([1, 1], method="grpo", run="far", seed=3, benchmark="far", n=8, ks=(1, 8))
    golden.add_metrics([8, 0], method="grpo", run="far", seed=4, benchmark="far", n=8, ks=(1, 8))
    path = golden.add_metrics([1, 2], method="grpo", run="far", seed=5, benchmark="far", n=8, ks=(1, 8), at="steps")
    drawn = shown_runs(measure(golden.metrics, "tiny"))
    assert [(each.run.run, each.seed) for each in drawn] == [("far", 3), ("far", 4)]
    ks, gaps = mean_gap(drawn)
    # seed 4: q = 0 and 1, so (q^8) of the mean is the chance that all of 8 come from the second, 1/256
    assert ks == [1, 8] and gaps[1] == pytest.approx(
        np.mean([decompose([8, 8], [1, 1], [8])[0].jensen, 1 - 1 / 256 - 1 / 2])
    )
    assert [each.at for each in shown_runs(measure([path], "tiny"))] == ["steps"]


def test_the_page_s_table_of_gaps_is_what_the_formulas_give() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/theory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
    assert len(rows) == 5
    for k, *told in rows:
        worked: list[float] = []
        for a, b in ((Fraction(3, 10), Fraction(2)), (Fraction(1, 20), Fraction(1, 2))):
            mu, variance = float(a / (a + b)), float(beta_variance(a, b))
            worked += [float(beta_gap(a, b, int(k))), second_order(mu, variance, int(k))]
        assert [float(number) for number in told] == pytest.approx(worked, rel=0.2 if int(k) == 256 else 0, abs=5.1e-5)
