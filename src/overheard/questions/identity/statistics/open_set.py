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
        detection: evidence that each target of a known user is one of the known users.
        right: probability that the true user is ranked first, ties broken at random.
        person: number of the user behind each of these targets, from 0.
        strange: the same evidence for each target of an unknown user.
        stranger: number of the user behind each of those, after the known users.
        known: number of known users.
        unknown: number of unknown users.

    """

    detection: Float[np.ndarray, " targets"]
    right: Float[np.ndarray, " targets"]
    person: Int[np.ndarray, " targets"]
    strange: Float[np.ndarray, " unknown_targets"]
    stranger: Int[np.ndarray, " unknown_targets"]
    known: int
    unknown: int


def open_set(ranking: Ranking) -> OpenSet | None:
    """Divide targets into those of known and unknown users; None without unknown users."""
    unknown = len(ranking.people) - ranking.known
    if not unknown:
        return None
    highest = ranking.scores.max(1)
    evidence = highest if ranking.unknown is None else 1 - ranking.unknown
    known = ranking.person < ranking.known
    person = ranking.person[known]
    scores = ranking.scores[known]
    first = scores == highest[known, None]
    right = first[np.arange(len(scores)), ranking.column[person]] / first.sum(1)
    return OpenSet(
        evidence[known],
        right,
        person,
        evidence[~known],
        ranking.person[~known],
        ranking.known,
        unknown,
    )


def identified(split: OpenSet, percent: float) -> float:
    """Return the share of known targets identified at this percentage of false alarms.

    A target is identified if its true user ranks first and its evidence exceeds the threshold.
    The threshold is the lowest evidence of an unknown target that at most `percent` % of the
    unknown targets exceed. With fewer than 100 / percent of them it is their highest.
    """
    ones = np.ones((1, split.known + split.unknown), dtype=np.int64)
    return float(_identified(split, percent, ones)[0])


def identification_rate(runs: Sequence[OpenSet], percent: float, seed: Seed) -> Estimate:
    """Estimate the mean of `identified` over runs, with an interval over users."""
    resamplings = [
        ResampledRun(run.known, run.unknown, partial(_identified, run, percent)) for run in runs
    ]
    return bootstrap_mean(resamplings, seed)


def _identified(
    split: OpenSet, percent: float, weights: Int[np.ndarray, "draws users"]
) -> Float[np.ndarray, " draws"]:
    order = np.argsort(-split.strange, kind="stable")
    alarms = weights[:, split.stranger[order]].cumsum(1)  # (draws, unknown_targets)
    # The threshold is the evidence of the first target that exceeds the allowed number.
    too_many = alarms > np.floor(alarms[:, -1:] * percent / 100 + 1e-9)
    threshold = split.strange[order][too_many.argmax(1)]  # (draws,)
    threshold = np.where(too_many.any(1), threshold, -np.inf)
    target_weights = weights[:, split.person]  # (draws, targets)
    is_above = split.detection[None] > threshold[:, None]
    rates: Float[np.ndarray, " draws"] = (
        (target_weights * is_above) @ split.right / target_weights.sum(1)
    )
    return rates
