"""Scans a track of estimates for a change, relative to simulated runs and to itself."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

MIN_RELATIVE_VARIANCE = 1e-9
"""Directions with less variance relative to the largest are dropped, as the sum of shares."""

SIMULATED_WEIGHT = 2.0
"""Weight of simulated runs in the inflation of a track's variance, in units of the variance of
the change that is tested; its own variation has weight 1."""

ROOT = 1 / 3
"""The cube root of a squared distance is nearly normal (Wilson and Hilferty 1931)."""


@final
@dataclass(frozen=True, slots=True)
class ChangeScan:
    """The scale on which the evidence for a change is measured: that of runs without a shift.

    For a change at round s, seen at round t, the means of the rounds before s and from s to t
    are compared (Siegmund and Venkatraman 1995). Their squared distance is divided by its mean
    in simulated runs. It is also divided by the variance of the track itself relative to
    simulated runs, if above 1: that of changes at all other rounds, on either side of s. Real
    clients may vary more than simulated ones, for reasons that are not simulated. The evidence
    at t is the largest over all s; its cube root is centred and scaled by simulated runs.

    Everything at t depends on rounds up to t alone.

    Args:
        mean: mean track of simulated runs.
        round_deviation: their standard deviation by round.
        whitener: maps tracks to numbers of variance 1.
        usual: mean squared distance in simulated runs, by first round, round of the change and
            end, each from 0 to the number of rounds; 0 where undefined.
        centre: mean of the root of the evidence in simulated runs, by round.
        scale: its standard deviation.

    """

    mean: Float[Tensor, "rounds numbers"]
    round_deviation: Float[Tensor, " rounds"]
    whitener: Float[Tensor, "numbers directions"]
    usual: Float[Tensor, "first change end"]
    centre: Float[Tensor, " later"]
    scale: Float[Tensor, " later"]

    def read(
        self, tracks: Float[Tensor, "runs rounds numbers"], inflation: float = 1.0
    ) -> tuple[Float[Tensor, "runs later"], Int[Tensor, "runs later"]]:
        """Return the evidence at each round but the first, and the round of the change.

        Args:
            tracks: the estimates of each run.
            inflation: factor on the variance of simulated runs.

        """
        ratio, since = _evidence(self._whiten(tracks), self.round_deviation, self.usual)
        return ((ratio / inflation).pow(ROOT) - self.centre) / self.scale, since

    def round_weights(self, rounds: slice) -> Float[Tensor, " some"]:
        """Return the weights of rounds in a mean, proportional to their inverse variances."""
        weights = self.round_deviation[rounds].pow(-2)
        return weights / weights.sum()

    def _whiten(self, tracks: Tensor) -> Tensor:
        return (tracks - self.mean) @ self.whitener


def fit_change_scan(tracks: Float[Tensor, "runs rounds numbers"]) -> ChangeScan:
    """Fit the scale to simulated runs without a shift.

    The covariance over directions is shrunk as in Ledoit and Wolf 2004.

    Raises:
        ValueError: if no track varies, so that there is no scale for a change.

    """
    tracks, rounds = tracks.double(), tracks.shape[1]
    moved = tracks - tracks.mean(1, keepdim=True)
    if rounds < 2 or not bool(moved.any()):
        raise ValueError("a scan needs simulated runs that vary between two rounds or more")
    spread = moved.square().mean((0, 2)).sqrt()
    spread = spread.clamp(
        min=max(float(spread.max()), torch.finfo(spread.dtype).tiny) * MIN_RELATIVE_VARIANCE
    )
    mean, whitener = tracks.mean(0), _whitener(moved / spread[:, None])
    white = (tracks - mean) @ whitener
    usual = torch.zeros(rounds + 1, rounds + 1, rounds + 1, dtype=torch.float64)
    for first, end, squares in _distances(white, spread):
        usual[first, first + 1 : end, end] = squares.mean(0)
    # A direction without any variation at some rounds must not divide by 0.
    usual = usual.clamp(min=torch.finfo(usual.dtype).tiny)
    roots = _evidence(white, spread, usual)[0].pow(ROOT)
    scale = roots.std(0, correction=0).clamp(min=torch.finfo(roots.dtype).eps)
    return ChangeScan(mean, spread, whitener, usual, roots.mean(0), scale)


def _whitener(scaled: Float[Tensor, "runs rounds numbers"]) -> Tensor:
    from sklearn.covariance import ledoit_wolf

    flat = scaled.flatten(0, 1)
    eigenvalues, directions = torch.linalg.eigh(flat.T @ flat)
    basis = directions[:, eigenvalues > MIN_RELATIVE_VARIANCE * eigenvalues.max()]
    matrix, _ = ledoit_wolf((flat @ basis).numpy(), assume_centered=True)
    variances, rotation = torch.linalg.eigh(torch.from_numpy(matrix))
    whitener: Tensor = basis @ (rotation / variances.sqrt())
    return whitener


def _distances(white: Tensor, deviation: Tensor) -> "list[tuple[int, int, Tensor]]":
    """Return the squared distances of the means on both sides of each change.

    Each item has the first round, the end, and the distances (runs, changes) for a change at
    each round between.
    """
    rounds, weight = white.shape[1], deviation.pow(-2)
    sums = torch.nn.functional.pad((white * weight[:, None]).cumsum(1), (0, 0, 1, 0))
    totals = torch.nn.functional.pad(weight.cumsum(0), (1, 0))
    found = []
    for first in range(rounds - 1):
        for end in range(first + 2, rounds + 1):
            inner = slice(first + 1, end)
            before = (sums[:, inner] - sums[:, first, None]) / (totals[inner] - totals[first])[
                :, None
            ]
            after = (sums[:, end, None] - sums[:, inner]) / (totals[end] - totals[inner])[
                :, None
            ]
            found.append((first, end, (after - before).square().sum(-1)))
    return found


def _evidence(
    white: Tensor, deviation: Tensor, usual: Tensor
) -> tuple[Float[Tensor, "runs later"], Int[Tensor, "runs later"]]:
    """Return the largest ratio at each round but the first, and the round of its change."""
    runs, rounds = len(white), white.shape[1]
    own = white.new_zeros(runs, rounds + 1, rounds + 1)  # summed distances inside [first, end)
    whole: dict[int, Tensor] = {}
    for first, end, squares in _distances(white, deviation):
        own[:, first, end] = squares.sum(1)
        if first == 0:
            whole[end] = squares
    expected = usual.sum(1)  # (first, end)
    best, since = [], []
    for end in range(2, rounds + 1):
        inner = torch.arange(1, end)
        tested = usual[0, inner, end]
        observed = own[:, 0, inner] + own[:, inner, end]  # (runs, changes)
        simulated = expected[0, inner] + expected[inner, end]
        prior = SIMULATED_WEIGHT * tested
        inflation = ((observed + prior) / (simulated + prior)).clamp(min=1)
        largest = (whole[end] / tested / inflation).max(1)
        best.append(largest.values)
        since.append(largest.indices + 1)
    return torch.stack(best, 1), torch.stack(since, 1)
