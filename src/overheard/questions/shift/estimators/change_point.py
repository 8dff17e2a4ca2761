"""Tests, as rounds come in, whether what was read of a target changed, and since when."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.covariance import ledoit_wolf
from torch import Tensor

from overheard.core.seeds import Seed

MOST_TOGETHER = 0.95
"""Of the share of an error that a client keeps from round to round."""

FAINT = 1e-9
"""Beside the largest variance: a direction of less has none, as the sum of all shares."""


@final
@dataclass(frozen=True, slots=True)
class ErrorModel:
    """How readings of one client err: by round, by direction, and together over rounds.

    A reading of round r errs by spread[r] * (a part that the client keeps, of variance
    `together`, + a part of its own, of variance 1 - `together`), in directions that are
    whitened. The kept part is that of the client's examples: it is drawn anew when they are
    exchanged.

    Args:
        spread: by round.
        together: 0 to `MOST_TOGETHER`.
        whitener: takes errors, over the spread, to numbers of variance 1.
        covariance: of an error over the spread, in the directions as read.

    """

    spread: Float[Tensor, " rounds"]
    together: float
    whitener: Float[Tensor, "numbers directions"]
    covariance: Float[Tensor, "numbers numbers"]

    def white(
        self, track: Float[Tensor, "*many rounds numbers"]
    ) -> Float[Tensor, "*many rounds directions"]:
        """Readings over their spread, whitened."""
        return (track.double() / self.spread[:, None]) @ self.whitener

    def weights(self, rounds: slice) -> Float[Tensor, " some"]:
        """What each round counts for in the mean of some: the inverse of its variance.

        That is the best mean of errors that are drawn anew, and a sound one of others too:
        generalised least squares would give some rounds weights below 0, and hang on what is
        known least, the kept part.
        """
        squares = self.spread[rounds].pow(-2)
        return squares / squares.sum()

    def variances(self, rounds: slice) -> tuple[float, float]:
        """Of that mean, by the kept part and by the rounds' own: factors of `covariance`."""
        scale = 1 / self.spread[rounds]
        total = float(scale.square().sum())
        kept = self.together * float(scale.sum()) ** 2 / total**2
        return kept, (1 - self.together) / total


def error_model(errors: Float[Tensor, "virtual rounds numbers"]) -> ErrorModel:
    """Learn how readings err from those of virtual clients, whose truth is known.

    The covariance over directions is shrunk as Ledoit and Wolf 2004 do.

    Raises:
        ValueError: if no reading errs, so that there is no scale to hold a change against.

    """
    errors = errors.double()
    if not bool(errors.any()):
        raise ValueError("an error model needs readings that differ from the truth")
    spread = errors.square().mean((0, 2)).sqrt()
    spread = spread.clamp(min=max(float(spread.max()), torch.finfo(spread.dtype).tiny) * FAINT)
    scaled = errors / spread[:, None]
    flat = scaled.flatten(0, 1)
    sizes, ways = torch.linalg.eigh(flat.T @ flat)
    basis = ways[:, sizes > FAINT * sizes.max()]
    matrix, _ = ledoit_wolf((flat @ basis).numpy(), assume_centered=True)
    inner = torch.from_numpy(matrix)
    variances, turns = torch.linalg.eigh(inner)
    whitener = basis @ (turns / variances.sqrt())
    white = scaled @ whitener
    rounds, squares = white.shape[1], white.square().sum()
    if rounds > 1:
        pairs = (white.sum(1).square().sum() - squares) / (rounds - 1)
        together = float((pairs / squares).clamp(0, MOST_TOGETHER))
    else:
        together = 0.0
    return ErrorModel(spread, together, whitener, basis @ inner @ basis.T)


@final
@dataclass(frozen=True, slots=True)
class ChangeEvidence:
    """What can be said at each round but the first.

    Args:
        ratio: the squared distance of the mean since s from the mean before, over its
            variance: the largest over all s up to the round.
        since: the place of that s among the rounds.

    """

    ratio: Float[Tensor, "*many later"]
    since: Int[Tensor, "*many later"]


def evidence(
    model: ErrorModel,
    white: Float[Tensor, "*many rounds directions"],
    unsteady: Float[Tensor, "*many"],
) -> ChangeEvidence:
    """How far whitened tracks moved, at the moment that speaks most for a change.

    The generalised likelihood ratio of Siegmund and Venkatraman 1995 (twice its logarithm) for
    a change at s told at t, in several directions. Theirs is of errors that are drawn anew in
    every round; of ours a part is kept, which enters by the variances of the means alone.

    Args:
        model: how readings err.
        white: the tracks.
        unsteady: by how much the variance of a round's own part is larger than the model's.

    """
    rounds = white.shape[-2]
    scale = 1 / model.spread
    sums = _from_zero((white * scale[:, None]).cumsum(-2), -2)
    totals = _from_zero(scale.square().cumsum(0), 0)
    best, since = [], []
    for t in range(1, rounds):
        ratios = []
        for s in range(1, t + 1):
            before = sums[..., s, :] / totals[s]
            after = (sums[..., t + 1, :] - sums[..., s, :]) / (totals[t + 1] - totals[s])
            sides = (model.variances(slice(0, s)), model.variances(slice(s, t + 1)))
            variance = sum(kept for kept, _ in sides) + unsteady * sum(own for _, own in sides)
            ratios.append((after - before).square().sum(-1) / variance)
        largest = torch.stack(ratios, -1).max(-1)
        best.append(largest.values)
        since.append(largest.indices + 1)
    return ChangeEvidence(torch.stack(best, -1), torch.stack(since, -1))


def unrest(
    model: ErrorModel, track: Float[Tensor, "*many rounds numbers"]
) -> Float[Tensor, "*many"]:
    """How far readings step from one round to the next: the median square, whitened.

    A level that stays does not enter, and a change moves one step of many.
    """
    squares = model.spread.square()
    scale = ((squares[1:] + squares[:-1]) / 2).sqrt()
    steps = (track[..., 1:, :] - track[..., :-1, :]).double() / scale[:, None] @ model.whitener
    return steps.square().sum(-1).median(-1).values


def null_places(virtual: int, rounds: int, runs: int, seed: Seed) -> Int[Tensor, "runs rounds"]:
    """Which virtual client's errors to show in each round of runs in which nothing shifts.

    A client that exchanges its examples errs anew: another virtual client takes its place. How
    often clients exchange is not known: in each run with a chance of its own, from never to
    every round.
    """
    generator = seed.numpy()
    chances = generator.uniform(0, 1, (runs, 1)) ** 2
    fresh = generator.uniform(0, 1, (runs, rounds)) < chances
    fresh[:, 0] = True
    drawn = generator.integers(0, virtual, (runs, rounds))
    last = np.maximum.accumulate(np.where(fresh, np.arange(rounds), 0), 1)
    return torch.from_numpy(np.take_along_axis(drawn, last, 1))


def _from_zero(sums: Tensor, axis: int) -> Tensor:
    shape = list(sums.shape)
    shape[axis] = 1
    return torch.cat((sums.new_zeros(shape), sums), axis)
