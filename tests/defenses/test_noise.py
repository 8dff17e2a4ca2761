"""Plain noise hides short updates but not long ones, and makes no formal promise."""

import math

import pytest
import torch

from overheard.core.defense import DefenseContext, RunParameters
from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.noise import Noise

MOMENT = DefenseContext(2, client(3), Seed(11))


def defended(
    defense: Noise, start: torch.Tensor, moment: DefenseContext = MOMENT
) -> torch.Tensor:
    return defense.on_update(Update({"a": start}), moment).delta["a"]


def test_noise_has_its_deviation_and_no_bias() -> None:
    noise = defended(Noise(0.5), torch.full((40_000,), 2.0)).double() - 2
    # Five standard errors: of the mean 5 * 0.5 / 200 = 0.0125, of the deviation
    # 5 * 0.5 / sqrt(80,000) = 0.0088.
    assert abs(float(noise.mean())) < 0.0125
    assert abs(float(noise.std()) - 0.5) < 0.0088


def test_twice_the_deviation_is_twice_the_noise() -> None:
    nothing = torch.zeros(5)
    assert torch.equal(2 * defended(Noise(0.25), nothing), defended(Noise(0.5), nothing))


def test_a_long_update_is_not_clipped_and_exceeds_the_noise() -> None:
    got = defended(Noise(0.01), torch.tensor([1e4, -1e4]))
    # Five deviations and the rounding of float32 at 10,000, which is 0.0005.
    assert torch.allclose(got, torch.tensor([1e4, -1e4]), rtol=0, atol=0.051)


@pytest.mark.parametrize("variance", [1e-2, 1e-1, 1e0, 1e1, 1e2])
def test_every_published_variance_gives_noise_of_that_variance(variance: float) -> None:
    # Orekondy et al. 2018, section 7.2. Five standard errors: 5 * sqrt(2 / 40,000) = 3.6 %.
    noise = defended(Noise(math.sqrt(variance)), torch.zeros(40_000)).double()
    assert float(noise.var()) == pytest.approx(variance, rel=0.036)


def test_draws_different_noise_in_each_round() -> None:
    later = DefenseContext(3, client(3), MOMENT.seed.child("later"))
    nothing = torch.zeros(3)
    assert not torch.equal(defended(Noise(), nothing), defended(Noise(), nothing, later))


def test_averaging_rounds_removes_the_noise() -> None:
    # The mean of 400 rounds has a deviation of 0.1 / 20 = 0.005; five of them.
    rounds = [
        defended(Noise(0.1), torch.tensor([0.2]), DefenseContext(n, client(3), Seed(n)))
        for n in range(400)
    ]
    assert abs(float(torch.stack(rounds).mean()) - 0.2) < 0.025


def test_says_why_there_is_no_epsilon() -> None:
    promise = Noise().promise(RunParameters(rounds=3, participation=1.0))
    assert "no formal promise (epsilon infinite)" in promise
    assert "not clipped" in promise


@pytest.mark.parametrize("deviation", [0.0, -1.0, math.inf, math.nan])
def test_refuses_a_deviation_that_is_not_positive_and_finite(deviation: float) -> None:
    with pytest.raises(ValueError, match="deviation must be above 0"):
        Noise(deviation)
