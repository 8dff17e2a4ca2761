"""An estimate of the epsilon of a client, from canary clients in the run itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import final

import numpy as np

from overheard.core.accounting.accountant import gaussian_epsilon
from overheard.findings.privacy.canary_scores import CanaryEvidence, CanaryScores
from overheard.statistics.estimate import Estimate

NORMAL_QUANTILE = 1.959963984540054
"""The 97.5 % quantile of a normal number."""

UNUSUAL_QUANTILE = 0.005
"""Where the deviation of the scores is beyond this quantile of its own distribution, or beyond
that of the other end, the estimate is doubted."""


@final
@dataclass(frozen=True, slots=True)
class ClientEpsilonEstimate:
    """An estimate of the epsilon of all data of a client. It is no bound.

    Args:
        epsilon: with its 95 % interval.
        mu: the mean score: how many deviations apart are canaries that took part and others.
        deviation: the deviation of the scores; 1 = as of canaries that did not take part.
        deviation_range: the range in which it lies with 99 % if the estimate's model is right.
        lower: the lower bound of Andrew et al., at 95 % for each threshold; the threshold is
            chosen on the same canaries, so it is an estimate too.
        canaries: number of canaries, over all runs.
        evidence: what their directions were compared with.
        dimension: number of weights.
        rounds: number of rounds that were read.

    """

    epsilon: Estimate
    mu: float
    deviation: float
    deviation_range: tuple[float, float]
    lower: float
    canaries: int
    evidence: CanaryEvidence
    dimension: int
    rounds: int

    @property
    def is_doubted(self) -> bool:
        """Whether the scores vary otherwise than the model of the estimate says."""
        low, high = self.deviation_range
        return not low <= self.deviation <= high


def estimate_client_epsilon(
    runs: Sequence[CanaryScores], delta: float, moves: float = 1.0
) -> ClientEpsilonEstimate | None:
    """Estimate the epsilon of a client from the canaries of several runs of one arm.

    Andrew et al. 2024 (ICLR, One-shot Empirical Privacy Estimation for Federated Learning): the
    scores of canaries are about normal. They fit mean and deviation of the canaries that took
    part. Here the deviation is held at 1, that of the others: in the tail that delta speaks of,
    the error of a fitted deviation outweighs all else. The fitted deviation is a check.

    The mean of k scores has the deviation 1 / sqrt(k), which gives the interval.

    Args:
        runs: with the same evidence.
        delta: the delta of the promise.
        moves: sensitivity in clips. A client that is replaced by another moves the sum by up
            to two clips, the canary by one; Gaussian noise hides twice the move half as well.

    Returns:
        The estimate; None with fewer than two canaries, or if scores are no numbers, as of a
        run whose model diverged.

    """
    scores = np.array([score for run in runs for score in run.scores])
    if len(scores) < 2 or not np.isfinite(scores).all():
        return None
    mu, error = float(scores.mean()), 1 / sqrt(len(scores))
    low, high = mu - NORMAL_QUANTILE * error, mu + NORMAL_QUANTILE * error
    epsilon, at_least, at_most = (_epsilon_of(moves * one, delta) for one in (mu, low, high))
    first = runs[0]
    return ClientEpsilonEstimate(
        Estimate(epsilon, at_least, at_most),
        mu,
        float(scores.std(ddof=1)),
        deviation_range(len(scores)),
        _lower_bound(runs, delta),
        len(scores),
        first.evidence,
        first.dimension,
        first.rounds,
    )


def expected_interval(
    epsilon: float, canaries: int, delta: float, moves: float = 1.0
) -> Estimate:
    """Return the interval that so many canaries will give if the true epsilon is this one."""
    from scipy.optimize import brentq

    mu = float(brentq(lambda one: _epsilon_of(moves * one, delta) - epsilon, 1e-5, 40 / moves))
    error = NORMAL_QUANTILE / sqrt(canaries)
    return Estimate(
        epsilon,
        _epsilon_of(moves * (mu - error), delta),
        _epsilon_of(moves * (mu + error), delta),
    )


def deviation_range(canaries: int) -> tuple[float, float]:
    """Return where the deviation of so many normal numbers lies with 99 %."""
    from scipy.stats import chi2  # only here: importing it takes half a second

    degrees = canaries - 1
    low, high = chi2.ppf(UNUSUAL_QUANTILE, degrees), chi2.ppf(1 - UNUSUAL_QUANTILE, degrees)
    return sqrt(float(low) / degrees), sqrt(float(high) / degrees)


def _epsilon_of(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism; 0 if nothing moves."""
    return gaussian_epsilon(1 / mu, 1, delta) if mu > 1e-6 else 0.0


def _lower_bound(runs: Sequence[CanaryScores], delta: float) -> float:
    """Return the largest ln((1 - delta - misses) / false alarms) over the seen scores.

    Misses are the upper end of the interval of Jeffreys at 95 %, false alarms are known.
    """
    from scipy.special import betaincinv

    alarms = np.sort([one for run in runs for one in run.false_alarms])
    count = len(alarms)
    found = np.arange(1, count + 1)  # canaries with at most so many false alarms
    misses = betaincinv(count - found + 0.5, found + 0.5, 0.95)
    hits = 1 - delta - misses
    with np.errstate(divide="ignore"):
        bounds = [
            log(hit / alarm) if alarm > 0 else inf
            for hit, alarm in zip(hits, alarms, strict=True)
            if hit > 0
        ]
    return max([0.0, *bounds])
