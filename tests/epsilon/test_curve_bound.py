"""Bounds on epsilon for claims that are a trade-off curve, and the sharper estimate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from overheard.core.accounting.sampled_accountant import PoissonNoise
from overheard.epsilon.curve_bound import is_curve_refuted, largest_refuted_strength
from overheard.epsilon.guess_bound import epsilon_from_guesses
from overheard.epsilon.guess_estimate import estimate_gaussian_mu
from overheard.epsilon.threshold_bound import GuessCounts
from overheard.epsilon.trade_off import (
    GaussianFamily,
    SampledFamily,
    inverse_power_of_profile,
    repeated,
    repeated_pair,
)

GAUSSIAN = GaussianFamily()
SCORES = json.loads((Path(__file__).parent / "canary_scores.json").read_text())["files"]


def bound(canaries: int, guesses: int, right: int, level: float = 0.05) -> float:
    mu = largest_refuted_strength(GAUSSIAN, canaries, guesses, right, level=level)
    return GAUSSIAN.epsilon(mu, 1e-5) if mu else 0.0


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "expected", "at_quarter_level"),
    [
        (1000, 150, 90, 0.1464767, 0.0157109),
        (1000, 150, 110, 1.0528714, 0.8217397),
        (1000, 150, 130, 2.2850830, 1.9077402),
        (1000, 150, 149, 5.6415856, 4.7365165),
        (1000, 100, 100, 5.5490279, 4.5884288),
        (200, 60, 50, 1.7993293, 1.3407144),
        (500, 500, 350, 1.3519946, 1.0692929),
        (4000, 600, 480, 1.7748734, 1.5289088),
    ],
)
def test_bounds_by_counts_are_those_of_jax_privacy(
    canaries: int, guesses: int, right: int, expected: float, at_quarter_level: float
) -> None:
    # `_epsilon_one_run_fdp(0, canaries, guesses, right, level, 1e-5)` of
    # jax_privacy.auditing (8967688).
    assert bound(canaries, guesses, right) == pytest.approx(expected, rel=1e-4)
    at_level = bound(canaries, guesses, right, 0.0125)
    assert at_level == pytest.approx(at_quarter_level, rel=1e-3)


@pytest.mark.parametrize("file", SCORES, ids=range(len(SCORES)))
def test_bounds_of_score_files_are_those_of_jax_privacy(file: dict[str, Any]) -> None:
    # The file says which function of jax_privacy gave the numbers. It guesses "in" alone.
    inside, outside = np.array(file["in"]), np.array(file["out"])
    right = int((inside >= file["threshold"]).sum())
    guesses = right + int((outside >= file["threshold"]).sum())
    canaries = len(inside) + len(outside)
    assert bound(canaries, guesses, right) == pytest.approx(file["fdp"], rel=1e-4)
    by_guesses = epsilon_from_guesses(GuessCounts(right, guesses, 0, canaries), 1.0, 1e-5)
    assert by_guesses == pytest.approx(file["one_run"], abs=0.01)


def test_no_guess_and_no_right_guess_refute_nothing() -> None:
    assert bound(100, 30, 0) == 0
    assert bound(100, 30, 15) == 0


def test_a_curve_from_deltas_is_never_above_the_one_in_closed_form() -> None:
    epsilons = np.linspace(0, 10, 400)
    deltas = ndtr(0.5 - epsilons) - np.exp(epsilons) * ndtr(-0.5 - epsilons)  # mu = 1
    curve = inverse_power_of_profile(epsilons, deltas)
    for found in np.linspace(0.001, 0.999, 60):
        exact = float(ndtr(ndtri(found) - 1))
        assert exact - 2e-4 < curve(found) <= exact + 1e-12


def test_the_curve_of_samples_holds_for_adding_and_for_removing() -> None:
    noise = PoissonNoise(1.0, 0.01, 100, "add-or-remove")
    curve = SampledFamily(noise).inverse_power(1.0)
    # The sum of 100 sampled draws: a test by how much a record adds, in one direction or the
    # other, is worse than the curve allows.
    generator = np.random.default_rng(1)
    without = generator.normal(size=(20_000, 100))
    with_record = without + (generator.random((20_000, 100)) < 0.01)
    ratio = lambda draws: np.log1p(0.01 * np.expm1(draws - 0.5)).sum(1)  # noqa: E731
    less, more = ratio(without), ratio(with_record)
    for share in (0.01, 0.05, 0.3, 0.7, 0.95):
        said_in, said_out = np.quantile(less, 1 - share), np.quantile(more, share)
        assert curve((more > said_in).mean()) < share + 0.01
        assert curve((less <= said_out).mean()) < share + 0.01
    # It is no looser than the better direction by much: "add" alone would refute truths.
    assert curve((more > np.quantile(less, 0.7)).mean()) > 0.5 * 0.3


def test_two_steps_of_a_relation_double_mu() -> None:
    twice = repeated(GAUSSIAN.inverse_power(0.6), 2)
    assert twice(0.8) == pytest.approx(GAUSSIAN.inverse_power(1.2)(0.8))
    epsilon, delta = repeated_pair(1.0, 0.01, 2)
    pair = inverse_power_of_profile(np.array([1.0]), np.array([0.01]))
    both = inverse_power_of_profile(np.array([epsilon]), np.array([delta]))
    assert repeated(pair, 2)(0.5) == pytest.approx(both(0.5))


def test_errors_that_occur_together_fool_the_estimate_and_no_bound() -> None:
    # With chance 0.3 each canary is wrong with 0.28, else with 0.3208. On average each has the
    # trade-off curve of mu = 1 or a higher one, though all err together.
    wrong = 284
    assert estimate_gaussian_mu(1000, 1000, wrong) > 1
    assert 0.3 * binom.cdf(wrong, 1000, 0.28) + 0.7 * binom.cdf(wrong, 1000, 0.3208) > 0.19
    few = next(
        one
        for one in range(wrong, -1, -1)
        if is_curve_refuted(GAUSSIAN.inverse_power(1.0), 1000, 1000, 1000 - one, 0.05)
    )
    assert 0.3 * binom.cdf(few, 1000, 0.28) < 1e-4
    by_guesses = epsilon_from_guesses(GuessCounts(1000 - wrong, 500, 500, 1000), 1.0, 1e-5)
    assert by_guesses < GAUSSIAN.epsilon(1.0, 1e-5)


def test_the_estimate_has_its_level_where_canaries_are_independent() -> None:
    generator = np.random.default_rng(7)
    exceeded = 0
    for _ in range(40):
        is_in = generator.random(400) < 0.5
        scores = generator.normal(size=400) + 1.5 * (is_in - 0.5)
        surest = np.argsort(-np.abs(scores))[:80]
        wrong = int(((scores > 0) != is_in)[surest].sum())
        exceeded += estimate_gaussian_mu(400, 80, wrong) > 1.5
    assert exceeded <= 6
