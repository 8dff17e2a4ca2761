"""Sets the alarm so that it goes off in as many runs without a shift as is stated."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.shift.estimators.change_point import (
    ChangeEvidence,
    ErrorModel,
    error_model,
    evidence,
    null_places,
    unrest,
)

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
        found = evidence(self.model, self.model.white(track), self.unsteady(track))
        return self._alike(found).tolist(), int(found.since[-1])

    def unsteady(self, tracks: Float[Tensor, "*many rounds numbers"]) -> Float[Tensor, "*many"]:
        """How much more a track steps about than usual, in variance; 1 if less.

        Real clients do so more than virtual ones, for reasons that no virtual client tells.
        """
        steps = unrest(self.model, tracks)
        # Tracks that hardly ever step have no usual step to be held against.
        return (steps / self.usual).clamp(min=1) if self.usual > 0 else torch.ones_like(steps)

    def _alike(self, found: ChangeEvidence) -> Float[Tensor, "*many later"]:
        """Cube roots, which are nearly normal, centred and scaled round by round."""
        return (found.ratio.pow(1 / 3) - self.mean) / self.scale


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
    rounds = errors.shape[1]
    usual = float(unrest(model, errors).median())
    places = null_places(len(errors), rounds, RUNS, seed)
    imagined = errors[places, torch.arange(rounds)]
    plain = Alarm(model, usual, torch.zeros(rounds - 1), torch.ones(rounds - 1), math.inf)
    roots = evidence(model, model.white(imagined), plain.unsteady(imagined)).ratio.pow(1 / 3)
    alarm = replace(plain, mean=roots.mean(0), scale=roots.std(0))
    peaks = ((roots - alarm.mean) / alarm.scale).amax(1).sort().values
    rank = min(RUNS, math.ceil((1 - rate) * (RUNS + 1)))
    return replace(alarm, threshold=float(peaks[rank - 1]))
