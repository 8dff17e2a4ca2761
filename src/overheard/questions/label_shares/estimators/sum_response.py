"""How sums respond to the label shares of their clients: a linear model with measured noise."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

RIDGE = 1.0
"""Penalty of the regression of shares on the last layer, in units of the mean variance of
virtual clients. Of .01, .03, .1, .3, 1 and 3, with seeds 900 and 901, 1 and 3 were best."""

SMALL = 1e-3
"""Added to the variance of each sum, as a share of the mean: a covariance over rounds measured
from few virtual clients is nearly singular."""


def contrasts(classes: int) -> Float[np.ndarray, "classes contrasts"]:
    """Return an orthonormal basis of the differences of shares, which sum to 0."""
    basis = np.column_stack([np.ones(classes), np.eye(classes)[:, : classes - 1]])
    return np.linalg.qr(basis)[0][:, 1:]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SumReadings:
    """The last layer of virtual clients and of sums, for each round with a sum.

    Args:
        virtual: (virtual, rounds, numbers), the change of the last layer of virtual clients.
        shares: (virtual, classes), their label shares.
        halves: (virtual), the half of the auxiliary examples on which each trained.
        sums: (sums, numbers), the change of the last layer of each sum.
        round_of: (sums), the place of the round of each sum.
        weights: (sums, clients), the weight of each client in each sum.

    """

    virtual: Float[np.ndarray, "virtual rounds numbers"]
    shares: Float[np.ndarray, "virtual classes"]
    halves: Int[np.ndarray, " virtual"]
    sums: Float[np.ndarray, "sums numbers"]
    round_of: Int[np.ndarray, " sums"]
    weights: Float[np.ndarray, "sums clients"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SumResponse:
    """What sums say of the contrasts of their clients, as normal equations under white noise.

    A sum responds as z = F (sum over i of a_i u_i) + g + noise, with u_i the contrasts of
    client i. The noise of two sums is correlated: a client deviates alike in all rounds.

    Args:
        observed: (sums, contrasts), z - g in units of the noise of a client.
        slopes: (sums, contrasts, contrasts), F for each sum in these units, so that u F.
        weights: (sums, clients), a.
        covariance: (sums, sums), of the noise of sums, alike for all contrasts.
        between_rounds: (sums, sums), of the noise of one client in the rounds of these sums.
        common: (sums, sums), of the error that all clients have in common.
        round_of: (sums), the place of the round of each sum.

    """

    observed: Float[np.ndarray, "sums contrasts"]
    slopes: Float[np.ndarray, "sums contrasts contrasts"]
    weights: Float[np.ndarray, "sums clients"]
    covariance: Float[np.ndarray, "sums sums"]
    between_rounds: Float[np.ndarray, "sums sums"]
    common: Float[np.ndarray, "sums sums"]
    round_of: Int[np.ndarray, " sums"]

    def take(self, kept: Bool[np.ndarray, " sums"]) -> "SumResponse":
        """Return some of the sums."""
        both = np.ix_(kept, kept)
        return SumResponse.of(
            self.observed[kept],
            self.slopes[kept],
            self.weights[kept],
            self.between_rounds[both],
            self.common[both],
            self.round_of[kept],
        )

    def exchange(self, order: Int[np.ndarray, " sums"]) -> "SumResponse":
        """Return the same sums with the cohorts of others."""
        return SumResponse.of(
            self.observed,
            self.slopes,
            self.weights[order],
            self.between_rounds,
            self.common,
            self.round_of,
        )

    def drift(self) -> Float[np.ndarray, "numbers numbers"]:
        """Return the covariance that all numbers of all sums have as shares of clients drift.

        The shares of a client are a random walk around their mean over the rounds in which it
        took part. Their mean squared distance to that mean is about that of clients with one
        label each, all labels alike.
        """
        span = max(1, int(np.ptp(self.round_of)))
        walk = -3 * np.abs(self.round_of[:, None] - self.round_of) / span
        together = np.zeros_like(self.covariance)
        for weight in self.weights.T:
            rows = np.flatnonzero(weight)
            own = walk[np.ix_(rows, rows)]
            own = own - own.mean(axis=0) - own.mean(axis=1)[:, None] + own.mean()
            together[np.ix_(rows, rows)] += own * np.outer(weight[rows], weight[rows])
        sums, width = self.observed.shape
        spread = np.einsum(
            "ts,tkd,ske->tdse", together, self.slopes, self.slopes, optimize=True
        )
        drift: Float[np.ndarray, "numbers numbers"]
        drift = spread.reshape(sums * width, -1) / (width + 1)
        return drift

    @staticmethod
    def of(
        observed: Float[np.ndarray, "sums contrasts"],
        slopes: Float[np.ndarray, "sums contrasts contrasts"],
        weights: Float[np.ndarray, "sums clients"],
        between_rounds: Float[np.ndarray, "sums sums"],
        common: Float[np.ndarray, "sums sums"],
        round_of: Int[np.ndarray, " sums"],
    ) -> "SumResponse":
        """Return the response with the covariance of the noise of these cohorts."""
        covariance = (weights @ weights.T) * between_rounds + common
        covariance += SMALL * covariance.trace() / len(covariance) * np.eye(len(covariance))
        return SumResponse(
            observed, slopes, weights, covariance, between_rounds, common, round_of
        )


def fit_response(readings: SumReadings) -> SumResponse:
    """Fit how sums respond to shares on virtual clients, and measure the noise on them.

    1. For each round, ridge regression of contrasts on the last layer, on the virtual clients
       of one half of the auxiliary examples, summarises those of the other half and the sums.
    2. Regression of the summaries on the contrasts gives the slopes F and the offset g. A sum
       is linear in its clients, so virtual clients alone suffice.
    3. The residuals give the noise of a client: its covariance between contrasts, and its
       correlation between rounds. The noise of a sum follows from who is in it.
    4. The mean residual of each half gives the error of the fit itself, common to all clients.

    """
    basis = contrasts(readings.shares.shape[1])
    contrast = readings.shares @ basis
    virtual, observed = _summarise(readings, contrast)
    count, rounds, width = virtual.shape
    design = np.column_stack([contrast, np.ones(count)])
    slopes = np.einsum("kv,vtc->tkc", np.linalg.pinv(design), virtual)
    freedom = max(1, count - width - 1)
    residuals = virtual - np.einsum("vk,tkc->vtc", design, slopes)
    residuals *= np.sqrt(count / freedom)
    noise = np.einsum("vtk,vtl->kl", residuals, residuals) / (count * rounds)
    noise += 1e-9 * max(float(np.trace(noise)), 1e-12) * np.eye(width)
    whiten = np.linalg.inv(np.linalg.cholesky(noise)).T
    white = residuals @ whiten
    between_rounds = np.einsum("vtk,vsk->ts", white, white) / (count * width)
    means = np.stack([white[readings.halves == half].mean(axis=0) for half in (0, 1)])
    common = np.einsum("htk,hsk->ts", means, means) / (2 * width)
    place = readings.round_of
    both = np.ix_(place, place)
    return SumResponse.of(
        (observed - slopes[place, width]) @ whiten,
        (slopes[:, :width] @ whiten)[place],
        readings.weights,
        between_rounds[both],
        common[both],
        place,
    )


def _summarise(
    readings: SumReadings, contrast: Float[np.ndarray, "virtual contrasts"]
) -> tuple[Float[np.ndarray, "virtual rounds contrasts"], Float[np.ndarray, "sums contrasts"]]:
    """Return the contrasts that ridge regression reads from virtual clients and from sums."""
    virtual = np.zeros((*readings.virtual.shape[:2], contrast.shape[1]))
    sums = np.zeros((len(readings.sums), contrast.shape[1]))
    for place in range(readings.virtual.shape[1]):
        own = readings.round_of == place
        for half in (0, 1):
            seen = readings.halves == half
            predict = _Ridge(readings.virtual[seen, place], contrast[seen])
            virtual[~seen, place] = predict(readings.virtual[~seen, place])
            sums[own] += predict(readings.sums[own]) / 2
    return virtual, sums


class _Ridge:
    """Ridge regression with an intercept, by inner products of its few rows."""

    def __init__(
        self,
        inputs: Float[np.ndarray, "rows numbers"],
        outputs: Float[np.ndarray, "rows contrasts"],
    ) -> None:
        self._center, self._mean = inputs.mean(axis=0), outputs.mean(axis=0)
        centred = inputs - self._center
        products = centred @ centred.T
        scale = max(float(products.trace()) / len(products), 1e-30)
        penalised = products + RIDGE * scale * np.eye(len(products))
        self._slopes = centred.T @ np.linalg.solve(penalised, outputs - self._mean)

    def __call__(
        self, inputs: Float[np.ndarray, "rows numbers"]
    ) -> Float[np.ndarray, "rows contrasts"]:
        predicted: Float[np.ndarray, "rows contrasts"]
        predicted = (inputs - self._center) @ self._slopes + self._mean
        return predicted
