"""Networks on one token per class."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.cross_fit import fit_scaled_inversion
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    CLIENTS_AT_ONCE,
    DeepSetRegressor,
    fit_deep_set_regressor,
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


def learned(
    readings: ProbeReadings, shares: torch.Tensor, steps: int = STEPS
) -> DeepSetRegressor:
    return fit_deep_set_regressor(readings, shares, solutions(readings), ROWS, steps, Seed(2))


def solutions(readings: ProbeReadings) -> torch.Tensor:
    """Return the solutions of the equation of the output bias, for each set."""
    inversion = fit_scaled_inversion(informative_readings(draw_shares()), draw_shares(), ROWS)
    return inversion.estimate_shares(readings)


def estimate(reader: DeepSetRegressor, readings: ProbeReadings) -> torch.Tensor:
    return reader.estimate_shares(readings, solutions(readings))


@pytest.fixture(scope="module")
def reader() -> DeepSetRegressor:
    return learned(informative_readings(draw_shares()), draw_shares())


def test_every_network_finds_the_shares_of_new_clients(reader):
    fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
    guess = mean_l1(fresh.mean(0).expand_as(fresh), fresh)
    for told in estimate(reader, informative_readings(fresh, seed=6)):
        assert mean_l1(told, fresh) < 0.5 * guess


def test_uninformative_readings_are_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    reader = learned(noise_readings(), shares)
    guess = mean_l1(shares.mean(0).expand_as(shares), shares)
    for told in estimate(reader, noise_readings(7)):
        assert mean_l1(told, shares) > 0.97 * guess


def test_a_network_does_not_depend_on_clients_outside_its_rows(reader):
    # The last 60 are rows of the second network only.
    others = draw_shares()
    others[100:] = others[100:].roll(1, 1)
    again = learned(informative_readings(draw_shares()), others)
    told, changed = (
        estimate(reader, noise_readings(7)),
        estimate(again, noise_readings(7)),
    )
    assert torch.equal(told[0], changed[0])
    assert not torch.equal(told[1], changed[1])


def test_estimates_do_not_depend_on_the_number_of_clients(reader):
    few = informative_readings(draw_shares())
    many = ProbeReadings(
        few.last_layer_change.repeat(3, 1, 1),
        few.outputs.repeat(3, 1, 1),
        few.broadcast_outputs,
        few.class_gradients.repeat(3, 1, 1),
    )
    assert CLIENTS < CLIENTS_AT_ONCE < 3 * CLIENTS
    told = estimate(reader, many).unflatten(1, (3, CLIENTS))
    for place in range(3):
        torch.testing.assert_close(told[:, place], estimate(reader, few), rtol=1e-4, atol=1e-5)
