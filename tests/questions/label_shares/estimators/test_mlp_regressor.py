"""Networks on all features at once."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import flat_features
from overheard.questions.label_shares.estimators.mlp_regressor import (
    LARGEST_COMPONENT_DEVIATION,
    MlpRegressor,
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


@pytest.fixture(scope="module")
def reader() -> MlpRegressor:
    shares = draw_shares()
    return fit_mlp_regressor(informative_readings(shares), shares, ROWS, STEPS, Seed(2))


def test_every_network_finds_the_shares_of_new_clients(reader):
    fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
    guess = mean_l1(fresh.mean(0).expand_as(fresh), fresh)
    for told in reader.estimate_shares(informative_readings(fresh, seed=6)):
        assert mean_l1(told, fresh) < 0.6 * guess


def test_uninformative_readings_are_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    reader = fit_mlp_regressor(noise_readings(), shares, ROWS, STEPS, Seed(2))
    guess = mean_l1(shares.mean(0).expand_as(shares), shares)
    for told in reader.estimate_shares(noise_readings(7)):
        assert mean_l1(told, shares) > 0.97 * guess


def test_a_network_does_not_depend_on_clients_outside_its_rows(reader):
    # The last 60 are rows of the second network only.
    others = draw_shares()
    others[100:] = others[100:].roll(1, 1)
    again = fit_mlp_regressor(informative_readings(draw_shares()), others, ROWS, STEPS, Seed(2))
    told, changed = (
        reader.estimate_shares(noise_readings(7)),
        again.estimate_shares(noise_readings(7)),
    )
    assert torch.equal(told[0], changed[0])
    assert not torch.equal(told[1], changed[1])


def test_the_largest_component_has_a_fixed_deviation(reader):
    numbers = flat_features(informative_readings(draw_shares()))
    for own, scale, ways in zip(ROWS, reader.scales, reader.components, strict=True):
        spread = (scale.standardize(numbers[own]) @ ways).std(0, correction=0)
        assert float(spread[0]) == pytest.approx(LARGEST_COMPONENT_DEVIATION, rel=1e-4)
        assert torch.equal(spread.argsort(descending=True)[:5], torch.arange(5))
