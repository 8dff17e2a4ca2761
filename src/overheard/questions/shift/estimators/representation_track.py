"""How far a target moves mean representations, compared with simulated targets."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer


@final
@dataclass(frozen=True, slots=True)
class RepresentationTrack:
    """How much further a target moves mean representations than simulated targets do.

    Inputs unlike any that the model was trained on move its representations further. New
    examples also move them further than familiar ones, and simulated targets exchange examples
    too. Distances below the mean of simulated targets count as that mean, and only larger ones
    are evidence.

    Args:
        scale: the scale of the log-distance of each round.

    """

    scale: Standardizer

    def read(
        self, changes: Float[Tensor, "runs rounds features"]
    ) -> Float[Tensor, "runs rounds one"]:
        """Return the distances in standard deviations; 0 = the mean of simulated targets."""
        return self.scale.standardize(_log_distance(changes)).clamp(min=0)[..., None]


def fit_representation_track(
    changes: Float[Tensor, "runs rounds features"],
) -> RepresentationTrack:
    """Fit how far simulated targets without a shift move representations in each round."""
    return RepresentationTrack(fit_standardizer(_log_distance(changes)))


def _log_distance(changes: Float[Tensor, "*many features"]) -> Float[Tensor, "*many"]:
    squares = changes.double().square().sum(-1)
    return squares.clamp(min=torch.finfo(torch.float64).tiny).log() / 2
