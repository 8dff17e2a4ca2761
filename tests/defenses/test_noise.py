"""Plain noise hides short updates but not long ones, and makes no formal promise."""

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


def test_a_long_update_is_not_clipped_and_exceeds_the_noise() -> None:
    got = defended(Noise(0.01), torch.tensor([1e4, -1e4]))
    # Five deviations and the rounding of float32 at 10,000, which is 0.0005.
    assert torch.allclose(got, torch.tensor([1e4, -1e4]), rtol=0, atol=0.051)


def test_says_why_there_is_no_epsilon() -> None:
    promise = Noise().promise(RunParameters(rounds=3, participation=1.0))
    assert "no formal promise (epsilon infinite)" in promise
    assert "not clipped" in promise
