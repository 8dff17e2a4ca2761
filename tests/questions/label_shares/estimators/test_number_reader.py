"""Networks on all features at once."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import plain_numbers
from overheard.questions.label_shares.estimators.number_reader import (
    MOST_DIRECTIONS,
    STEEPNESS,
    NumberReader,
    learn_numbers,
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
def reader() -> NumberReader:
    shares = draw_shares()
    return learn_numbers(informative_readings(shares), shares, ROWS, STEPS, Seed(2))


def test_every_network_finds_the_shares_of_new_clients(reader):
    fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
    guess = mean_l1(fresh.mean(0).expand_as(fresh), fresh)
    for told in reader.read(informative_readings(fresh, seed=6)):
        assert mean_l1(told, fresh) < 0.6 * guess


def test_uninformative_readings_are_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    reader = learn_numbers(noise_readings(), shares, ROWS, STEPS, Seed(2))
    guess = mean_l1(shares.mean(0).expand_as(shares), shares)
    for told in reader.read(noise_readings(7)):
        assert mean_l1(told, shares) > 0.97 * guess


def test_a_network_does_not_depend_on_clients_outside_its_rows(reader):
    # The last 60 are rows of the second network only.
    others = draw_shares()
    others[100:] = others[100:].roll(1, 1)
    again = learn_numbers(informative_readings(draw_shares()), others, ROWS, STEPS, Seed(2))
    told, changed = reader.read(noise_readings(7)), again.read(noise_readings(7))
    assert torch.equal(told[0], changed[0])
    assert not torch.equal(told[1], changed[1])


def test_the_largest_component_has_a_fixed_deviation(reader):
    numbers = plain_numbers(informative_readings(draw_shares()))
    for own, scale, ways in zip(ROWS, reader.scales, reader.directions, strict=True):
        spread = (scale.of(numbers[own]) @ ways).std(0, correction=0)
        assert float(spread[0]) == pytest.approx(STEEPNESS, rel=1e-4)
        assert torch.equal(spread.argsort(descending=True)[:5], torch.arange(5))


def test_reads_at_most_as_many_components_as_clients():
    shares = draw_shares()
    few = [torch.arange(10), torch.arange(10, 30)]
    reader = learn_numbers(informative_readings(shares), shares, few, 1, Seed(2))
    numbers = plain_numbers(informative_readings(shares)).shape[1]
    assert 10 < numbers < MOST_DIRECTIONS
    assert [ways.shape for ways in reader.directions] == [(numbers, 10)] * 2


def test_equal_clients_give_finite_shares():
    reader = learn_numbers(zero_readings(), draw_shares(), ROWS, STEPS, Seed(2))
    assert all(bool((ways == 0).all()) for ways in reader.directions)
    told = reader.read(noise_readings(7))
    assert bool(told.isfinite().all())
    assert torch.equal(told[:, 0], told[:, 1])


def test_an_extreme_client_gets_finite_shares(reader):
    assert bool(reader.read(outlying_readings()).isfinite().all())


def test_restoring_from_tensors_is_exact(reader):
    again = NumberReader.from_tensors(reader.tensors(), CLASSES, networks=2)
    assert torch.equal(again.read(noise_readings(7)), reader.read(noise_readings(7)))
