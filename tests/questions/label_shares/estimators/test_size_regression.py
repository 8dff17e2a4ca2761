"""Size regression with a known relation of length and size."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.size_regression import (
    SizeRegression,
    fit_size_regression,
)

CLASSES = 4


class World:
    """Clients of 50 to 1600 examples with updates of length size^power, times noise.

    Three lengths are read of each, of one noise and a little of their own.

    Args:
        power: 1: twice the size, twice the length.
        noise: deviation of a length, on a log scale.
        unevenness: by how much more one label alone moves a client than labels all alike.

    """

    def __init__(self, power: float = 1.0, noise: float = 0.1, unevenness: float = 0.0) -> None:
        self._power, self._noise, self._unevenness = power, noise, unevenness

    def draw(self, count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draw log lengths, shares and sizes."""
        random = Seed(seed).numpy()
        logs = torch.from_numpy(random.uniform(math.log(50), math.log(1600), count))
        shares = torch.from_numpy(random.dirichlet([0.5] * CLASSES, count))
        norms = self._power * logs + self._noise * torch.from_numpy(random.normal(size=count))
        norms = norms + self._unevenness * shares.square().sum(1).sqrt()
        own = 0.01 * torch.from_numpy(random.normal(size=(count, 3)))
        return (norms[:, None] + own).float(), shares, logs.exp()

    def reader(self, count: int = 400) -> SizeRegression:
        norms, shares, sizes = self.draw(count, 1)
        return fit_size_regression(norms, shares, sizes, torch.arange(count) % 2)


def covered(world: World, fresh: World) -> float:
    """Return the fraction of 300 new clients whose size is inside the interval."""
    reader = world.reader()
    held = []
    for norms, shares, size in zip(*fresh.draw(300, 2), strict=True):
        told = reader.estimate_size(norms[None], shares[None])
        held.append(told.low <= float(size) <= told.high)
    return sum(held) / len(held)


# 300 tries of 0.9 have a deviation of 0.017; the quantiles of 400 residuals one of 0.015.
@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_intervals_contain_nine_true_facts_in_ten(power, noise):
    world = World(power, noise)
    assert 0.83 < covered(world, world) < 0.97


def test_intervals_are_not_valid_for_clients_of_another_kind():
    # Their updates are 3 times as long as virtual ones of the same size.
    assert covered(World(1.0), World(1.0, unevenness=math.log(9))) < 0.5


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_finds_twice_the_size_for_any_power_law(power):
    reader = World(power, noise=0.01).reader()
    even = torch.full((1, CLASSES), 0.25)
    told = [
        reader.estimate_size(torch.full((1, 3), power * math.log(size)), even).examples
        for size in (200, 400)
    ]
    assert told == pytest.approx([200, 400], rel=0.05)


def test_label_imbalance_is_not_mistaken_for_size():
    reader = World(unevenness=2.0, noise=0.01).reader()
    one_label = torch.eye(CLASSES)[:1]
    even = torch.full((1, CLASSES), 0.25)
    # 300 examples: lengths of e^2 and e^1 times that.
    told = [
        reader.estimate_size(torch.full((1, 3), math.log(300) + lean), shares).examples
        for lean, shares in ((2.0, one_label), (1.0, even))
    ]
    assert told == pytest.approx([300, 300], rel=0.15)


def test_uninformative_lengths_give_the_whole_range():
    told = (
        World(power=0.0)
        .reader()
        .estimate_size(torch.zeros(1, 3), torch.full((1, CLASSES), 0.25))
    )
    # 90 % of 50 to 1600 on a log scale: a factor of 32^0.9 = 22.6.
    assert told.high / told.low == pytest.approx(22.6, rel=0.2)


def test_residuals_are_out_of_sample():
    # Clients of the second half go twice as far: by the law of the other half each is taken for
    # twice or half as large.
    norms, shares, sizes = World(noise=0.01).draw(400, 1)
    halves = torch.arange(400) % 2
    reader = fit_size_regression(norms + math.log(2) * halves[:, None], shares, sizes, halves)
    assert float(reader.residuals.abs().median()) == pytest.approx(math.log(2), rel=0.1)


@pytest.mark.parametrize("length", [-1e6, -27.6, 1e6])
def test_an_extreme_length_gives_a_finite_size(length):
    # log 1e-12 = -27.6 is how the length of no change at all is read.
    told = (
        World()
        .reader()
        .estimate_size(torch.full((1, 3), length), torch.full((1, CLASSES), 0.25))
    )
    # 50 to 1600, and as far again beyond on either side.
    assert 1 < told.low <= told.high < 100_000
    assert (told.examples > 300) == (length > 0)


def test_clients_of_equal_size_give_that_size():
    norms, shares, _ = World().draw(40, 1)
    reader = fit_size_regression(norms, shares, torch.full((40,), 70), torch.arange(40) % 2)
    told = reader.estimate_size(norms[:1], shares[:1])
    assert [told.low, told.examples, told.high] == pytest.approx([70, 70, 70])


@given(st.integers(4, 60), st.integers(0, 10**6), st.floats(-30, 30))
def test_the_estimated_size_is_inside_its_interval(count, seed, length):
    norms, shares, sizes = World(noise=1.0).draw(count, seed)
    reader = fit_size_regression(norms, shares, sizes, torch.arange(count) % 2)
    told = reader.estimate_size(torch.full((1, 3), length), shares[:1])
    assert 0 < told.low <= told.examples <= told.high < math.inf
