"""The predicted error follows from who takes part, the noise and the prior."""

from dataclasses import replace

import numpy as np
import pytest

from overheard.core.errors import PlanError
from overheard.planning.cohorts import predicted_error
from overheard.planning.cohorts.design import MOST_ROUNDS, propose_cohorts
from overheard.planning.cohorts.predicted_error import (
    MeasuredClients,
    predict_error,
    stated_noise,
)
from overheard.planning.cohorts.schedules import propose_schedules


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw so few clients that a prediction takes milliseconds."""
    monkeypatch.setattr(predicted_error, "PRIOR_DRAWS", 2_000)
    monkeypatch.setattr(predicted_error, "TEST_DRAWS", 100)


ALONE = np.eye(4, dtype=bool)
"""Each of four clients alone, in one round."""


def test_noise_as_large_as_the_spread_leaves_half_of_the_variance():
    # Shares that are nearly Gaussian: half of the variance is left, so .71 of the error.
    found = predict_error(stated_noise(4, 100.0, 1.0), ALONE)
    assert found.of_guess == pytest.approx(0.5**0.5, abs=0.07)


def test_no_noise_leaves_no_error_and_much_noise_all_of_it():
    little, much = (stated_noise(4, 0.5, noise) for noise in (0.05, 50.0))
    assert predict_error(little, ALONE).of_guess < 0.15
    assert 0.95 < predict_error(much, ALONE).of_guess < 1.05


@pytest.mark.parametrize(("classes", "noise", "most"), [(10, 0.05, 0.1), (40, 1.0, 0.8)])
def test_draws_that_are_far_from_a_client_make_no_error(
    classes: int, noise: float, most: float
):
    # Theory leaves the noise of a client, or half of the variance.
    assert predict_error(stated_noise(classes, 0.5, noise), ALONE).of_guess < most


def test_clients_that_never_took_part_have_the_error_of_the_guess():
    noise = stated_noise(4, 0.5, 0.5)
    seen = predict_error(noise, ALONE)
    # One of four clients, in as many rounds of its own: not the median of all four.
    some = predict_error(noise, ALONE[:1])
    assert some.guess == seen.guess
    assert some.error == pytest.approx((seen.error + 3 * seen.guess) / 4)


def test_measured_errors_take_the_place_of_gaussian_ones():
    # All noise is of clients and lasts, so it is the measured error: none of it, or, as theory
    # takes it, as large as the spread of clients.
    stated = replace(stated_noise(4, 0.5, 1.0), of_client=1.0, lasting=1.0, of_sum=0.0)
    draws = np.random.default_rng(0)
    shares = draws.dirichlet(stated.prior, 100)
    numbers = (shares - 0.25) @ np.linalg.pinv(stated.directions).T

    def predicted(deviations: np.ndarray) -> float:
        measured = MeasuredClients(shares, deviations)
        return predict_error(replace(stated, measured=measured), ALONE).of_guess

    theory = predict_error(stated, ALONE).of_guess
    assert predicted(draws.normal(size=numbers.shape)) == pytest.approx(theory, abs=0.1)
    assert predicted(0 * numbers) < 0.7 * theory
    # Errors that point away from the shares hide them, as those of clients that respond less.
    assert predicted(-numbers) > 0.9


def test_the_range_is_wider_where_clients_differ_and_few_were_measured():
    stated = stated_noise(4, 0.5, 0.5)
    draws = np.random.default_rng(0)

    def width(clients: int, spread: float) -> float:
        shares = draws.dirichlet(stated.prior, clients)
        # Half of the clients deviate.
        deviations = np.outer(np.arange(clients) % 2, np.full(3, spread))
        noise = replace(stated, measured=MeasuredClients(shares, deviations))
        found = predict_error(noise, ALONE)
        assert found.low < found.error < found.high <= max(found.guess, found.error)
        return found.high / found.low

    assert width(100, 0.0) < width(100, 1.0) < width(4, 1.0)
    # What the prediction itself is wrong: 1.35 times up and down.
    assert width(100, 0.0) > 1.8


def test_a_client_that_is_never_alone_stays_hidden_among_its_group():
    random, *_, fixed = propose_schedules(8, 4, 32)
    noise = stated_noise(4, 0.5, 0.5)
    assert predict_error(noise, fixed.took_part).of_guess > 0.7
    assert predict_error(noise, random.took_part).of_guess < 0.4


def test_the_common_error_and_lasting_noise_are_in_the_covariance():
    stated = stated_noise(2, 1.0, 2.0)
    noise = replace(stated, of_client=1.0, lasting=0.5, common=0.25, of_sum=4.0)
    # Two rounds of clients {0, 1} and {1}. Each client adds 1 in a round, half of which is also
    # in the other round; the sum adds 4; the common error is .25 times both numbers of clients.
    expected = [[2 + 4 + 0.25 * 4, 0.5 + 0.25 * 2], [0.5 + 0.25 * 2, 1 + 4 + 0.25]]
    assert noise.covariance(np.array([[1.0, 1], [0, 1]])).tolist() == expected


def test_a_design_has_the_brackets_of_its_groups_and_falls_with_rounds():
    design = propose_cohorts(6, 2, 24, classes=3, noise=0.5)
    random, fair, fixed = design.schedules
    assert (fixed.name, fixed.group_at_least, fixed.group_at_most) == (
        "fixed groups of 2",
        2,
        2,
    )
    assert random.group_at_most == 1
    assert [one.rounds for one in random.predicted] == [3, 6, 12, 24]
    errors = [one.of_guess for one in fair.predicted]
    assert errors == sorted(errors, reverse=True)
    assert fixed.predicted[-1].of_guess > random.predicted[-1].of_guess
    assert [len(cohort) for cohort in random.cohorts] == [2] * 24


def test_federations_that_are_too_large_are_refused():
    with pytest.raises(PlanError, match="at most 3,000 clients"):
        propose_cohorts(3_001, 10, 4)
    with pytest.raises(PlanError, match="2,000 rounds"):
        propose_cohorts(10, 5, MOST_ROUNDS + 1)


@pytest.mark.parametrize(
    "stated", [{"alpha": 1e-6}, {"noise": -1.0}, {"noise": 1e-9}, {"classes": 1}]
)
def test_impossible_assumptions_are_refused(stated: dict[str, float]):
    with pytest.raises(PlanError, match=r"between 0\.001 and 1,000,000"):
        propose_cohorts(10, 5, 4, **stated)  # type: ignore[arg-type]
