"""Networks on one token per class."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import Readings
from overheard.questions.label_shares.estimators.inversion import learn_inversion
from overheard.questions.label_shares.estimators.token_reader import (
    SLICE,
    TokenReader,
    learn_tokens,
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
)

ROWS = [torch.arange(0, 100), torch.arange(60, CLIENTS)]


def learned(readings: Readings, shares: torch.Tensor, steps: int = STEPS) -> TokenReader:
    inversion = learn_inversion(readings, shares, ROWS)
    return learn_tokens(readings, shares, inversion, ROWS, steps, Seed(2))


@pytest.fixture(scope="module")
def reader() -> TokenReader:
    return learned(informative_readings(draw_shares()), draw_shares())


def test_every_network_finds_the_shares_of_new_clients(reader):
    fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
    guess = mean_l1(fresh.mean(0).expand_as(fresh), fresh)
    for told in reader.read(informative_readings(fresh, seed=6)):
        assert mean_l1(told, fresh) < 0.5 * guess


def test_uninformative_readings_are_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    reader = learned(noise_readings(), shares)
    guess = mean_l1(shares.mean(0).expand_as(shares), shares)
    for told in reader.read(noise_readings(7)):
        assert mean_l1(told, shares) > 0.97 * guess


def test_a_network_does_not_depend_on_clients_outside_its_rows(reader):
    # The last 60 are rows of the second network only.
    others = draw_shares()
    others[100:] = others[100:].roll(1, 1)
    again = learned(informative_readings(draw_shares()), others)
    told, changed = reader.read(noise_readings(7)), again.read(noise_readings(7))
    assert torch.equal(told[0], changed[0])
    assert not torch.equal(told[1], changed[1])


def test_one_scale_serves_all_classes(reader):
    # Each number of each pair of classes has one scale, whichever the pair.
    assert reader.entries.mean.dim() == 1
    assert [scale.mean.dim() for scale in reader.scales] == [1, 1]


def test_estimates_do_not_depend_on_the_number_of_clients(reader):
    few = informative_readings(draw_shares())
    many = Readings(
        few.change.repeat(3, 1, 1),
        few.answers.repeat(3, 1, 1),
        few.before,
        few.pull.repeat(3, 1, 1),
    )
    assert CLIENTS < SLICE < 3 * CLIENTS
    told = reader.read(many).unflatten(1, (3, CLIENTS))
    for place in range(3):
        torch.testing.assert_close(told[:, place], reader.read(few), rtol=1e-4, atol=1e-5)


def test_an_extreme_client_gets_finite_shares(reader):
    assert bool(reader.read(outlying_readings()).isfinite().all())


def test_restoring_from_tensors_is_exact(reader):
    again = TokenReader.from_tensors(reader.tensors(), CLASSES, reader.inversion)
    assert torch.equal(again.read(noise_readings(7)), reader.read(noise_readings(7)))
