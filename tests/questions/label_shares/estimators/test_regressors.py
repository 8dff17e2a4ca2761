"""Networks that read shares from all features at once, or from one token per class."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import (
    ProbeReadings,
    flat_features,
)
from overheard.questions.label_shares.estimators.cross_fit import fit_scaled_inversion
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    CLIENTS_AT_ONCE,
    fit_deep_set_regressor,
)
from overheard.questions.label_shares.estimators.mlp_regressor import (
    LARGEST_COMPONENT_DEVIATION,
    fit_mlp_regressor,
)
from tests.linkage.share_readings import (
    CLASSES,
    CLIENTS,
    STEPS,
    draw_shares,
    informative_readings,
    mean_l1,
    noise_readings,
)

ROWS = [torch.arange(0, 100), torch.arange(60, CLIENTS)]

Estimate = Callable[[ProbeReadings], torch.Tensor]


def solutions(readings: ProbeReadings) -> torch.Tensor:
    """Return the solutions of the equation of the output bias, for each set."""
    inversion = fit_scaled_inversion(informative_readings(draw_shares()), draw_shares(), ROWS)
    return inversion.estimate_shares(readings)


def mlp(readings: ProbeReadings, shares: torch.Tensor) -> Estimate:
    return fit_mlp_regressor(readings, shares, ROWS, STEPS, Seed(2)).estimate_shares


def deep_set(readings: ProbeReadings, shares: torch.Tensor) -> Estimate:
    reader = fit_deep_set_regressor(readings, shares, solutions(readings), ROWS, STEPS, Seed(2))
    return lambda read: reader.estimate_shares(read, solutions(read))


@dataclass(frozen=True)
class Regressor:
    """A kind of network, and what it estimates after it was fitted to informative readings."""

    fit: Callable[[ProbeReadings, torch.Tensor], Estimate]
    estimate: Estimate
    largest_error: float
    """Relative to the error of the mean."""


@pytest.fixture(scope="module", params=[(mlp, 0.6), (deep_set, 0.5)], ids=["mlp", "deep set"])
def regressor(request) -> Regressor:
    fit, largest_error = request.param
    return Regressor(
        fit, fit(informative_readings(draw_shares()), draw_shares()), largest_error
    )


def test_every_network_finds_the_shares_of_new_clients(regressor):
    fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
    guess = mean_l1(fresh.mean(0).expand_as(fresh), fresh)
    for told in regressor.estimate(informative_readings(fresh, seed=6)):
        assert mean_l1(told, fresh) < regressor.largest_error * guess


def test_uninformative_readings_are_no_better_than_the_mean(regressor):
    shares = draw_shares(alpha=1.0)
    estimate = regressor.fit(noise_readings(), shares)
    guess = mean_l1(shares.mean(0).expand_as(shares), shares)
    for told in estimate(noise_readings(7)):
        assert mean_l1(told, shares) > 0.97 * guess


def test_a_network_does_not_depend_on_clients_outside_its_rows(regressor):
    # The last 60 are rows of the second network only.
    others = draw_shares()
    others[100:] = others[100:].roll(1, 1)
    again = regressor.fit(informative_readings(draw_shares()), others)
    told, changed = regressor.estimate(noise_readings(7)), again(noise_readings(7))
    assert torch.equal(told[0], changed[0])
    assert not torch.equal(told[1], changed[1])


def test_the_largest_component_has_a_fixed_deviation():
    readings = informative_readings(draw_shares())
    reader = fit_mlp_regressor(readings, draw_shares(), ROWS, 1, Seed(2))
    numbers = flat_features(readings)
    for own, scale, ways in zip(ROWS, reader.scales, reader.components, strict=True):
        spread = (scale.standardize(numbers[own]) @ ways).std(0, correction=0)
        assert float(spread[0]) == pytest.approx(LARGEST_COMPONENT_DEVIATION, rel=1e-4)
        assert torch.equal(spread.argsort(descending=True)[:5], torch.arange(5))


def test_estimates_do_not_depend_on_the_number_of_clients():
    few = informative_readings(draw_shares())
    estimate = deep_set(few, draw_shares())
    many = ProbeReadings(
        few.last_layer_change.repeat(3, 1, 1),
        few.outputs.repeat(3, 1, 1),
        few.broadcast_outputs,
        few.class_gradients.repeat(3, 1, 1),
    )
    assert CLIENTS < CLIENTS_AT_ONCE < 3 * CLIENTS
    told = estimate(many).unflatten(1, (3, CLIENTS))
    for place in range(3):
        torch.testing.assert_close(told[:, place], estimate(few), rtol=1e-4, atol=1e-5)
