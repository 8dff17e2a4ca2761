"""Noise is seeded by the context and the name of the parameter."""

import torch

from overheard.core.defense import DefenseContext
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses._gaussian import draw_gaussian

MOMENT = DefenseContext(2, client(3), Seed(11))


def test_noise_depends_only_on_name_and_context() -> None:
    part = torch.zeros(3)
    one = draw_gaussian(part, "a", MOMENT)
    assert torch.equal(one, draw_gaussian(part, "a", MOMENT))
    assert not torch.equal(one, draw_gaussian(part, "b", MOMENT))
    assert not torch.equal(
        one, draw_gaussian(part, "a", DefenseContext(2, client(3), Seed(12)))
    )


def test_noise_has_the_shape_and_dtype_of_the_parameter() -> None:
    noise = draw_gaussian(torch.full((2, 3), 1e6, dtype=torch.float64), "a", MOMENT)
    assert noise.shape == (2, 3)
    assert noise.dtype == torch.float64
    assert float(noise.abs().max()) < 10
    assert draw_gaussian(torch.zeros(()), "a", MOMENT).shape == ()


def test_noise_has_mean_0_and_deviation_1() -> None:
    noise = draw_gaussian(torch.zeros(40_000), "a", MOMENT).double()
    # Five standard errors: of the mean 5 / 200 = 0.025, of the deviation 5 / sqrt(80,000).
    assert abs(float(noise.mean())) < 0.025
    assert abs(float(noise.std()) - 1) < 0.018
