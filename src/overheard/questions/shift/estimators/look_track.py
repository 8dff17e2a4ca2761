"""Follows how far a target moves the representations, beside clients alike."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.fitting.standard import Standard, standard_of


@dataclass(frozen=True, slots=True)
class LookTrack:
    """By how much a client moves mean representations further than virtual clients do.

    Examples that look otherwise than all that the model has met move its representations
    further. So do fresh examples beside familiar ones: a client that the model has met for many
    rounds moves them less than virtual clients, who are met for the first time, and leaps up to
    them at an exchange. That is no shift. Hence what lies below the mean of virtual clients
    counts as that mean, and only what lies above it tells.

    Args:
        of_virtual: of virtual clients, in standard deviations; 0 = as their mean, or below.
        scale: of the logarithm of the distance, of each round.

    """

    of_virtual: Float[Tensor, "virtual rounds one"]
    scale: Standard

    def read(self, numbers: Float[Tensor, "rounds numbers"]) -> Float[Tensor, "rounds one"]:
        """The same of a target."""
        return self.scale.of(_distance(numbers)[None]).clamp(min=0).T


def look_track(numbers: Float[Tensor, "virtual rounds numbers"]) -> LookTrack:
    """Learn how far virtual clients move representations in each round."""
    distances = _distance(numbers)  # (virtual, rounds)
    scale = standard_of(distances)
    return LookTrack(scale.of(distances).clamp(min=0)[:, :, None], scale)


def _distance(numbers: Float[Tensor, "*many numbers"]) -> Float[Tensor, "*many"]:
    squares = numbers.double().square().sum(-1)
    return squares.clamp(min=torch.finfo(torch.float64).tiny).log() / 2
