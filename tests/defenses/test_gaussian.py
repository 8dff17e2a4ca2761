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
