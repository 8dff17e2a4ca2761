"""Estimates of numbers with intervals, by the errors on virtual clients like the target."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.core.claims import INTERVAL_LEVEL
from overheard.questions.target_distribution.claim import LEVELS
from overheard.questions.target_distribution.estimators.tilted_quantiles import tilted_quantiles

NEIGHBOURS = 50
"""Virtual clients whose errors give an interval: those with the nearest estimates."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CalibratedNumbers:
    """Estimates of a client's numbers, and half the width of the interval of each."""

    numbers: Float[np.ndarray, " numbers"]
    margins: Float[np.ndarray, " numbers"]


def calibrate_numbers(
    estimate: Float[np.ndarray, " numbers"],
    unseen: Float[np.ndarray, "clients numbers"],
    true: Float[np.ndarray, "clients numbers"],
    sample: Float[np.ndarray, "examples outputs"],
) -> CalibratedNumbers:
    """Return the better estimate of each quantile, and intervals.

    A quantile is that of the regression, or that of the attacker's own examples with weights
    that give the estimated mean: whichever errs less on the virtual clients. Intervals have the
    errors on the virtual clients with the nearest estimates (split conformal prediction, Lei et
    al. 2018, on neighbours as in Guan 2023), as those that differ more from the attacker's
    examples are read less well.

    Args:
        estimate: the regression's estimate of the target: of each output its mean and then,
            unless the mean is all, its quantiles at `LEVELS`.
        unseen: that of each virtual client, by a regression that has not seen it.
        true: the true numbers of each virtual client.
        sample: the numbers of the attacker's examples.

    """
    outputs = sample.shape[1]
    together = np.concatenate((estimate[None], unseen)).reshape(len(unseen) + 1, outputs, -1)
    truth = true.reshape(len(true), outputs, -1)
    if together.shape[2] > 1:
        for output in range(outputs):
            tilted = tilted_quantiles(together[:, output, 0], sample[:, output], LEVELS)
            own = together[1:, output, 1:]
            errors = [np.abs(one - truth[:, output, 1:]).mean(0) for one in (tilted[1:], own)]
            is_better = errors[0] < errors[1]
            together[:, output, 1:] = np.where(is_better, tilted, together[:, output, 1:])
    scale = np.maximum(sample.std(0), np.finfo(np.float32).eps)
    distances = (np.abs(together[1:, :, 0] - together[:1, :, 0]) / scale).sum(1)
    near = np.argsort(distances, kind="stable")[:NEIGHBOURS]
    level = min(1.0, np.ceil((len(near) + 1) * INTERVAL_LEVEL) / len(near))
    margins = np.quantile(np.abs(together[1:] - truth)[near], level, axis=0)
    return CalibratedNumbers(together[0].flatten(), margins.flatten())
