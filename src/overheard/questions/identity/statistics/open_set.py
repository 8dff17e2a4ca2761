"""How many known users are named right while few unknown ones are taken for one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.estimate import Estimate
from overheard.statistics.resample import Resampled, resampled


@final
@dataclass(frozen=True, slots=True)
class OpenSet:
    """The targets of one run, known users apart from others.

    Args:
        detection: of each target of a known user, the evidence that it is of one: 1 less the
            chance that it is of none, where the attack gives one, else its highest score.
        right: the chance that the true user is named first, ties broken by chance.
        person: who stands behind each of them, from 0.
        strange: the same evidence of each target of an unknown user.
        stranger: who stands behind each of those, counted on after the known ones.
        known: how many known people there are.
        unknown: how many unknown ones.

    """

    detection: Float[np.ndarray, " targets"]
    right: Float[np.ndarray, " targets"]
    person: Int[np.ndarray, " targets"]
    strange: Float[np.ndarray, " strangers"]
    stranger: Int[np.ndarray, " strangers"]
    known: int
    unknown: int


def open_set(ranking: Ranking) -> OpenSet | None:
    """Set known users apart from others; None where there are no others."""
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


def identified(held: OpenSet, percent: float) -> float:
    """The share of known targets named right above the threshold for so many false alarms.

    The threshold is the least evidence of a stranger above which at most so many percent of
    them lie; who is to pass lies above it. Among fewer strangers than 100 / percent it is the
    highest of theirs.
    """
    ones = np.ones((1, held.known + held.unknown), dtype=np.int64)
    return float(_identified(held, percent, ones)[0])


def identification_rate(runs: Sequence[OpenSet], percent: float, seed: Seed) -> Estimate:
    """`identified`, the mean over runs, with its interval over people."""
    drawn = [
        Resampled(run.known, run.unknown, partial(_identified, run, percent)) for run in runs
    ]
    return resampled(drawn, seed)


def _identified(
    held: OpenSet, percent: float, often: Int[np.ndarray, "draws people"]
) -> Float[np.ndarray, " draws"]:
    order = np.argsort(-held.strange, kind="stable")
    alarms = often[:, held.stranger[order]].cumsum(1)  # (draws, strangers)
    # The first stranger who is one too many: the threshold lies at its evidence.
    too_many = alarms > np.floor(alarms[:, -1:] * percent / 100 + 1e-9)
    threshold = held.strange[order][too_many.argmax(1)]  # (draws,)
    threshold = np.where(too_many.any(1), threshold, -np.inf)
    counted = often[:, held.person]  # (draws, targets)
    passed = held.detection[None] > threshold[:, None]
    rates: Float[np.ndarray, " draws"] = (counted * passed) @ held.right / counted.sum(1)
    return rates
