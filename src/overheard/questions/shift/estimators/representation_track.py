"""Tracks how far a target moves the representations, compared with virtual clients."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer


@dataclass(frozen=True, slots=True)
class RepresentationTrack:
    """How much further a client moves mean representations than virtual clients do.

    Inputs unlike any that the model was trained on move its representations further. New
    examples also move them further than familiar ones. A client that trained for many rounds
    moves them less than virtual clients, whose examples are new, and jumps to their level at an
    exchange. That is not a shift. Therefore distances below the mean of virtual clients count
    as that mean, and only larger ones are evidence.

    Args:
        virtual_distances: distances of virtual clients, in standard deviations; 0 = their mean
            or below.
        scale: the scale of the log-distance of each round.

    """

    virtual_distances: Float[Tensor, "virtual rounds one"]
    scale: Standardizer

    def read(self, numbers: Float[Tensor, "rounds numbers"]) -> Float[Tensor, "rounds one"]:
        """Return the same distances for a target."""
        return self.scale.standardize(_log_distance(numbers)[None]).clamp(min=0).T


def fit_representation_track(
    numbers: Float[Tensor, "virtual rounds numbers"],
) -> RepresentationTrack:
    """Fit how far virtual clients move representations in each round."""
    distances = _log_distance(numbers)  # (virtual, rounds)
    scale = fit_standardizer(distances)
    return RepresentationTrack(scale.standardize(distances).clamp(min=0)[:, :, None], scale)


def _log_distance(numbers: Float[Tensor, "*many numbers"]) -> Float[Tensor, "*many"]:
    squares = numbers.double().square().sum(-1)
    return squares.clamp(min=torch.finfo(torch.float64).tiny).log() / 2
