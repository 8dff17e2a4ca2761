"""Networks on all features at once."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import flat_features
from overheard.questions.label_shares.estimators.mlp_regressor import (
    LARGEST_COMPONENT_DEVIATION,
    MOST_COMPONENTS,
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
    outlying_readings,
    zero_readings,
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


def test_reads_at_most_as_many_components_as_clients():
    shares = draw_shares()
    few = [torch.arange(10), torch.arange(10, 30)]
    reader = fit_mlp_regressor(informative_readings(shares), shares, few, 1, Seed(2))
    numbers = flat_features(informative_readings(shares)).shape[1]
    assert 10 < numbers < MOST_COMPONENTS
    assert [ways.shape for ways in reader.components] == [(numbers, 10)] * 2


def test_equal_clients_give_finite_shares():
    reader = fit_mlp_regressor(zero_readings(), draw_shares(), ROWS, STEPS, Seed(2))
    assert all(bool((ways == 0).all()) for ways in reader.components)
    told = reader.estimate_shares(noise_readings(7))
    assert bool(told.isfinite().all())
    assert torch.equal(told[:, 0], told[:, 1])


def test_an_extreme_client_gets_finite_shares(reader):
    assert bool(reader.estimate_shares(outlying_readings()).isfinite().all())


def test_restoring_from_tensors_is_exact(reader):
    again = MlpRegressor.from_tensors(reader.tensors(), CLASSES, networks=2)
    assert torch.equal(
        again.estimate_shares(noise_readings(7)), reader.estimate_shares(noise_readings(7))
    )
