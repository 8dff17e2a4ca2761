"""Detection and identification rates of known users among unknown ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean
from overheard.statistics.estimate import Estimate


@final
@dataclass(frozen=True, slots=True)
class OpenSet:
    """The targets of one run, divided into those of known and of unknown users.

    Evidence is 1 - the claimed probability of an unknown user, if the attack gives one, else
    the highest score.

    Args:
        known_evidence: evidence that each target of a known user is one of the known users.
        rank1_probability: probability that the true user is ranked first, ties broken at
            random.
        known_user: number of the user behind each of these targets, from 0.
        unknown_evidence: the same evidence for each target of an unknown user.
        unknown_user: number of the user behind each of those, after the known users.
        known_count: number of known users.
        unknown_count: number of unknown users.

    """

    known_evidence: Float[np.ndarray, " targets"]
    rank1_probability: Float[np.ndarray, " targets"]
    known_user: Int[np.ndarray, " targets"]
    unknown_evidence: Float[np.ndarray, " unknown_targets"]
    unknown_user: Int[np.ndarray, " unknown_targets"]
    known_count: int
    unknown_count: int


def split_known_and_unknown(ranking: Ranking) -> OpenSet | None:
    """Divide targets into those of known and unknown users; None without unknown users."""
    unknown = len(ranking.true_users) - ranking.known_count
    if not unknown:
        return None
    highest = ranking.scores.max(1)
    evidence = (
        highest if ranking.unknown_probability is None else 1 - ranking.unknown_probability
    )
    known = ranking.target_user < ranking.known_count
    user = ranking.target_user[known]
    scores = ranking.scores[known]
    first = scores == highest[known, None]
    right = first[np.arange(len(scores)), ranking.known_columns[user]] / first.sum(1)
    return OpenSet(
        evidence[known],
        right,
        user,
        evidence[~known],
        ranking.target_user[~known],
        ranking.known_count,
        unknown,
    )


def detection_identification_rate(split: OpenSet, percent: float) -> float:
    """Return the share of known targets identified at this percentage of false positives.

    A target is identified if its true user ranks first and its evidence exceeds the threshold.
    The threshold is the lowest evidence of an unknown target that at most `percent` % of the
    unknown targets exceed. With fewer than 100 / percent of them it is their highest.
    """
    ones = np.ones((1, split.known_count + split.unknown_count), dtype=np.int64)
    return float(_resampled_rates(split, percent, ones)[0])


def estimate_identification_rate(
    runs: Sequence[OpenSet], percent: float, seed: Seed
) -> Estimate:
    """Estimate the mean of `detection_identification_rate` over runs or over their users."""
    resamplings = [
        ResampledRun(
            run.known_count, run.unknown_count, partial(_resampled_rates, run, percent)
        )
        for run in runs
    ]
    return bootstrap_mean(resamplings, seed)


def _resampled_rates(
    split: OpenSet, percent: float, weights: Int[np.ndarray, "draws users"]
) -> Float[np.ndarray, " draws"]:
    order = np.argsort(-split.unknown_evidence, kind="stable")
    alarms = weights[:, split.unknown_user[order]].cumsum(1)  # (draws, unknown_targets)
    # The threshold is the evidence of the first target that exceeds the allowed number.
    too_many = alarms > np.floor(alarms[:, -1:] * percent / 100 + 1e-9)
    threshold = split.unknown_evidence[order][too_many.argmax(1)]  # (draws,)
    threshold = np.where(too_many.any(1), threshold, -np.inf)
    target_weights = weights[:, split.known_user]  # (draws, targets)
    is_above = split.known_evidence[None] > threshold[:, None]
    rates: Float[np.ndarray, " draws"] = (
        (target_weights * is_above) @ split.rank1_probability / target_weights.sum(1)
    )
    return rates
