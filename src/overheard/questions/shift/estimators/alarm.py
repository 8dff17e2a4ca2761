"""An alarm that is calibrated to a stated rate in runs without a shift."""

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
"""Runs to simulate without a shift: a rate of 5 % then has a standard error of 0.5 %."""


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """A test for a change of a track, on one scale for all rounds, with a threshold.

    Args:
        model: the error model of the estimates.
        usual: the median squared step of virtual clients between rounds.
        mean: mean of the cube root of the evidence in simulated runs, by round.
        scale: standard deviation of that cube root, by round.
        threshold: the threshold of the standardised evidence, for every round.

    """

    model: ErrorModel
    usual: float
    mean: Float[Tensor, " later"]
    scale: Float[Tensor, " later"]
    threshold: float

    def read(self, track: Float[Tensor, "rounds numbers"]) -> tuple[list[float], int]:
        """Return the statistic of each round but the first, and the index of the change."""
        change = evidence(self.model, self.model.white(track), self.unsteady(track))
        return self._alike(change).tolist(), int(change.since[-1])

    def unsteady(self, tracks: Float[Tensor, "*many rounds numbers"]) -> Float[Tensor, "*many"]:
        """Return the variance of a track's steps relative to virtual clients, at least 1.

        Real clients vary more than virtual ones, for reasons that are not simulated.
        """
        steps = unrest(self.model, tracks)
        # If most virtual clients have no steps, there is no usual step to compare with.
        return (steps / self.usual).clamp(min=1) if self.usual > 0 else torch.ones_like(steps)

    def _alike(self, change: ChangeEvidence) -> Float[Tensor, "*many later"]:
        """Return cube roots, which are nearly normal, centred and scaled by round."""
        return (change.ratio.pow(1 / 3) - self.mean) / self.scale


def alarm_set(
    errors: Float[Tensor, "virtual rounds numbers"], rate: float, seed: Seed
) -> Alarm:
    """Calibrate the alarm on simulated runs in which only the errors of estimates vary.

    Args:
        errors: errors of the estimates of virtual clients.
        rate: probability of an alarm in any round of a simulated run.
        seed: the seed of the simulation.

    """
    model = error_model(errors)
    rounds = errors.shape[1]
    usual = float(unrest(model, errors).median())
    places = null_places(len(errors), rounds, RUNS, seed)
    simulated = errors[places, torch.arange(rounds)]
    uncalibrated = Alarm(
        model, usual, torch.zeros(rounds - 1), torch.ones(rounds - 1), math.inf
    )
    roots = evidence(model, model.white(simulated), uncalibrated.unsteady(simulated)).ratio.pow(
        1 / 3
    )
    alarm = replace(uncalibrated, mean=roots.mean(0), scale=roots.std(0))
    peaks = ((roots - alarm.mean) / alarm.scale).amax(1).sort().values
    rank = min(RUNS, math.ceil((1 - rate) * (RUNS + 1)))
    return replace(alarm, threshold=float(peaks[rank - 1]))
