"""Sets the alarm so that it goes off in as many runs without a shift as is stated."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.bank.change_point import ErrorModel, error_model, evidence, null_places, unrest
from overheard.core.seeds import Seed

RUNS = 2000
"""Imagined runs without a shift: of the alarms that 5 % of them raise, the rate is then known
to 0.5 % (one standard error)."""


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """Gives the evidence that a track changed on one scale for all rounds, and a threshold.

    Args:
        model: how readings err.
        usual: how far those of virtual clients step from round to round.
        mean: by round, of the root of the evidence in imagined runs.
        scale: its standard deviation.
        threshold: of the evidence on the common scale, for every round.

    """

    model: ErrorModel
    usual: float
    mean: Float[Tensor, " later"]
    scale: Float[Tensor, " later"]
    threshold: float

    def read(self, track: Float[Tensor, "rounds numbers"]) -> tuple[list[float], int]:
        """The statistic of each round but the first, and since which place all changed."""
        found = evidence(self.model, self.model.white(track))
        roots = _roots(self.model, self.usual, track)
        return ((roots - self.mean) / self.scale).tolist(), int(found.since[-1])


def alarm_set(
    errors: Float[Tensor, "virtual rounds numbers"], rate: float, seed: Seed
) -> Alarm:
    """Set the alarm by imagined runs, in which nothing but the errors of readings changes.

    Args:
        errors: of virtual clients' readings.
        rate: chance of an alarm in any round of an imagined run.
        seed: of what is imagined.

    """
    model = error_model(errors)
    usual = float(unrest(model, errors).median())
    places = null_places(len(errors), errors.shape[1], RUNS, seed)
    roots = _roots(model, usual, errors[places, torch.arange(errors.shape[1])])
    mean, scale = roots.mean(0), roots.std(0)
    peaks = ((roots - mean) / scale).amax(1).sort().values
    rank = min(RUNS, math.ceil((1 - rate) * (RUNS + 1)))
    return Alarm(model, usual, mean, scale, float(peaks[rank - 1]))


def _roots(
    model: ErrorModel, usual: float, tracks: Float[Tensor, "*many rounds numbers"]
) -> Float[Tensor, "*many later"]:
    """Cube roots, which are nearly normal, of the evidence over how unsteady a track is."""
    # Tracks that hardly ever step have no usual step to be held against.
    steps = unrest(model, tracks)
    factor = (steps / usual).clamp(min=1) if usual > 0 else torch.ones_like(steps)
    return (evidence(model, model.white(tracks)).ratio / factor[..., None]).pow(1 / 3)
