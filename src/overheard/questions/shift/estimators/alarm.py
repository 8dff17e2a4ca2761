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
    change_evidence,
    draw_null_clients,
    fit_error_model,
    median_squared_step,
)

SIMULATED_RUNS = 2000
"""Runs to simulate without a shift: a rate of 5 % then has a standard error of 0.5 %."""


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """A test for a change of a track, on one scale for all rounds, with a threshold.

    Args:
        model: the error model of the estimates.
        usual_step: the median squared step of virtual clients between rounds.
        mean: mean of the cube root of the evidence in simulated runs, by round.
        scale: standard deviation of that cube root, by round.
        threshold: the threshold of the standardised evidence, for every round.

    """

    model: ErrorModel
    usual_step: float
    mean: Float[Tensor, " later"]
    scale: Float[Tensor, " later"]
    threshold: float

    def read(self, track: Float[Tensor, "rounds numbers"]) -> tuple[list[float], int]:
        """Return the statistic of each round but the first, and the index of the change."""
        change = change_evidence(
            self.model, self.model.whiten(track), self.variance_inflation(track)
        )
        return self._standardise(change).tolist(), int(change.since[-1])

    def variance_inflation(
        self, tracks: Float[Tensor, "*many rounds numbers"]
    ) -> Float[Tensor, "*many"]:
        """Return the variance of a track's steps relative to virtual clients, at least 1.

        Real clients vary more than virtual ones, for reasons that are not simulated.
        """
        steps = median_squared_step(self.model, tracks)
        # If most virtual clients have no steps, there is no usual step to compare with.
        return (
            (steps / self.usual_step).clamp(min=1)
            if self.usual_step > 0
            else torch.ones_like(steps)
        )

    def _standardise(self, change: ChangeEvidence) -> Float[Tensor, "*many later"]:
        """Return cube roots, which are nearly normal, centred and scaled by round."""
        return (change.ratio.pow(1 / 3) - self.mean) / self.scale


def calibrate_alarm(
    errors: Float[Tensor, "virtual rounds numbers"], rate: float, seed: Seed
) -> Alarm:
    """Calibrate the alarm on simulated runs in which only the errors of estimates vary.

    Args:
        errors: errors of the estimates of virtual clients.
        rate: probability of an alarm in any round of a simulated run.
        seed: the seed of the simulation.

    """
    model = fit_error_model(errors)
    rounds = errors.shape[1]
    usual = float(median_squared_step(model, errors).median())
    places = draw_null_clients(len(errors), rounds, SIMULATED_RUNS, seed)
    simulated = errors[places, torch.arange(rounds)]
    uncalibrated = Alarm(
        model, usual, torch.zeros(rounds - 1), torch.ones(rounds - 1), math.inf
    )
    roots = change_evidence(
        model, model.whiten(simulated), uncalibrated.variance_inflation(simulated)
    ).ratio.pow(1 / 3)
    alarm = replace(uncalibrated, mean=roots.mean(0), scale=roots.std(0))
    peaks = ((roots - alarm.mean) / alarm.scale).amax(1).sort().values
    rank = min(SIMULATED_RUNS, math.ceil((1 - rate) * (SIMULATED_RUNS + 1)))
    return replace(alarm, threshold=float(peaks[rank - 1]))
