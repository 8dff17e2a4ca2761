"""Sequential test for a change of a target's estimates, and its round."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.covariance import ledoit_wolf
from torch import Tensor

from overheard.core.seeds import Seed

MAX_CORRELATION = 0.95
"""Maximum correlation of a client's errors between rounds."""

MIN_RELATIVE_VARIANCE = 1e-9
"""Directions with less variance relative to the largest are dropped, as the sum of shares."""


@final
@dataclass(frozen=True, slots=True)
class ErrorModel:
    """Errors of one client's estimates: scale by round, covariance, correlation over rounds.

    The error in round r, whitened, is `round_deviation`[r] * (a persistent part of variance
    `correlation` + an independent part of variance 1 - `correlation`). The persistent part
    belongs to the client's examples and is drawn again when they are exchanged.

    Args:
        round_deviation: standard deviation by round.
        correlation: correlation between rounds, 0 to `MAX_CORRELATION`.
        whitener: maps errors divided by the deviation to numbers of variance 1.
        covariance: covariance of errors divided by the deviation, in the original directions.

    """

    round_deviation: Float[Tensor, " rounds"]
    correlation: float
    whitener: Float[Tensor, "numbers directions"]
    covariance: Float[Tensor, "numbers numbers"]

    def whiten(
        self, track: Float[Tensor, "*many rounds numbers"]
    ) -> Float[Tensor, "*many rounds directions"]:
        """Return estimates divided by the deviation of their round, whitened."""
        return (track.double() / self.round_deviation[:, None]) @ self.whitener

    def round_weights(self, rounds: slice) -> Float[Tensor, " some"]:
        """Return the weights of rounds in a mean, proportional to their inverse variances.

        These are optimal for independent errors and adequate for correlated ones. Generalised
        least squares could give negative weights and depends on the persistent part, which is
        the least well known.
        """
        squares = self.round_deviation[rounds].pow(-2)
        return squares / squares.sum()

    def mean_variances(self, rounds: slice) -> tuple[float, float]:
        """Return its persistent and independent variance, as factors of `covariance`."""
        scale = 1 / self.round_deviation[rounds]
        total = float(scale.square().sum())
        persistent = self.correlation * float(scale.sum()) ** 2 / total**2
        return persistent, (1 - self.correlation) / total


def fit_error_model(errors: Float[Tensor, "virtual rounds numbers"]) -> ErrorModel:
    """Fit the error model to virtual clients, whose true values are known.

    The covariance over directions is shrunk as in Ledoit and Wolf 2004.

    Raises:
        ValueError: if all errors are 0, so that there is no scale for a change.

    """
    errors = errors.double()
    if not bool(errors.any()):
        raise ValueError(
            "an error model needs estimates that differ from the truth; all errors are 0"
        )
    spread = errors.square().mean((0, 2)).sqrt()
    spread = spread.clamp(
        min=max(float(spread.max()), torch.finfo(spread.dtype).tiny) * MIN_RELATIVE_VARIANCE
    )
    scaled = errors / spread[:, None]
    flat = scaled.flatten(0, 1)
    eigenvalues, directions = torch.linalg.eigh(flat.T @ flat)
    basis = directions[:, eigenvalues > MIN_RELATIVE_VARIANCE * eigenvalues.max()]
    matrix, _ = ledoit_wolf((flat @ basis).numpy(), assume_centered=True)
    inner = torch.from_numpy(matrix)
    variances, rotation = torch.linalg.eigh(inner)
    whitener = basis @ (rotation / variances.sqrt())
    whitened = scaled @ whitener
    rounds, squares = whitened.shape[1], whitened.square().sum()
    if rounds > 1:
        pairs = (whitened.sum(1).square().sum() - squares) / (rounds - 1)
        together = float((pairs / squares).clamp(0, MAX_CORRELATION))
    else:
        together = 0.0
    return ErrorModel(spread, together, whitener, basis @ inner @ basis.T)


@final
@dataclass(frozen=True, slots=True)
class ChangeEvidence:
    """Evidence of a change at each round but the first.

    Args:
        ratio: the squared distance between the means from s on and before s, divided by its
            variance; the largest over all s up to the round.
        since: the index of that s among the rounds.

    """

    ratio: Float[Tensor, "*many later"]
    since: Int[Tensor, "*many later"]


def change_evidence(
    model: ErrorModel,
    white: Float[Tensor, "*many rounds directions"],
    variance_inflation: Float[Tensor, "*many"],
) -> ChangeEvidence:
    """Return the evidence for a change of whitened tracks, maximised over its round.

    Twice the log of the generalised likelihood ratio of Siegmund and Venkatraman 1995 for a
    change at s observed at t, in several directions. Their errors are independent between
    rounds. Here errors have a persistent part, which enters only the variances of the means.

    Args:
        model: the error model.
        white: the whitened tracks.
        variance_inflation: factor on the variance of the independent part.

    """
    rounds = white.shape[-2]
    scale = 1 / model.round_deviation
    sums = _prepend_zero((white * scale[:, None]).cumsum(-2), -2)
    totals = _prepend_zero(scale.square().cumsum(0), 0)
    best, since = [], []
    for t in range(1, rounds):
        ratios = []
        for s in range(1, t + 1):
            before = sums[..., s, :] / totals[s]
            after = (sums[..., t + 1, :] - sums[..., s, :]) / (totals[t + 1] - totals[s])
            sides = (model.mean_variances(slice(0, s)), model.mean_variances(slice(s, t + 1)))
            persistent = sum(part for part, _ in sides)
            variance = persistent + variance_inflation * sum(part for _, part in sides)
            ratios.append((after - before).square().sum(-1) / variance)
        largest = torch.stack(ratios, -1).max(-1)
        best.append(largest.values)
        since.append(largest.indices + 1)
    return ChangeEvidence(torch.stack(best, -1), torch.stack(since, -1))


def median_squared_step(
    model: ErrorModel, track: Float[Tensor, "*many rounds numbers"]
) -> Float[Tensor, "*many"]:
    """Return the median squared step of whitened estimates between rounds.

    A constant level has no effect, and a change affects only one step.
    """
    squares = model.round_deviation.square()
    scale = ((squares[1:] + squares[:-1]) / 2).sqrt()
    steps = (track[..., 1:, :] - track[..., :-1, :]).double() / scale[:, None] @ model.whitener
    return steps.square().sum(-1).median(-1).values


def draw_null_clients(
    virtual: int, rounds: int, runs: int, seed: Seed
) -> Int[Tensor, "runs rounds"]:
    """Draw which virtual client's errors are used in each round of runs without a shift.

    At an exchange of examples, another virtual client's errors follow. The rate of exchanges is
    unknown, so each run draws its own rate, from never to every round.
    """
    generator = seed.numpy()
    rates = generator.uniform(0, 1, (runs, 1)) ** 2
    is_exchange = generator.uniform(0, 1, (runs, rounds)) < rates
    is_exchange[:, 0] = True
    clients = generator.integers(0, virtual, (runs, rounds))
    last = np.maximum.accumulate(np.where(is_exchange, np.arange(rounds), 0), 1)
    return torch.from_numpy(np.take_along_axis(clients, last, 1))


def _prepend_zero(sums: Tensor, axis: int) -> Tensor:
    shape = list(sums.shape)
    shape[axis] = 1
    return torch.cat((sums.new_zeros(shape), sums), axis)
