"""Schedules of cohorts side by side: what they reveal, cost, and let attackers read."""

from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.core.errors import PlanError
from overheard.core.parties import client
from overheard.participation.participation import Participation
from overheard.participation.sums_reading import MAX_CLIENTS, SumsReading, read_sums
from overheard.planning.cohorts.predicted_error import (
    PredictedError,
    SumNoise,
    predict_error,
    stated_noise,
)
from overheard.planning.cohorts.schedules import (
    CohortSchedule,
    ScheduleCost,
    find_cost,
    propose_schedules,
)

MOST_ROUNDS = 2_000
"""Rounds above which nothing is predicted: a matrix has the square of them."""

LEAST, MOST = 0.001, 1e6
"""Range of alpha and noise: beyond it numbers are lost to rounding."""

MOST_CLASSES = 100
"""Labels above which a prediction takes minutes."""

PREDICTIONS = 4
"""The error is predicted after all rounds, half of them, a quarter and an eighth."""

GENERAL = (
    "The attacker knows who took part in each round, reads all sums, and has auxiliary "
    "examples, the model and the recipe.",
    "The error of a guess is that of the mean shares of all clients, which the attacker is "
    "taken to know. A client that never took part has that error, and all others have that of "
    "the median one of them.",
    "On MNIST, mean errors of three federations were 0.9 to 1.5 times the predicted ones, from "
    "as many rounds as clients on. All were in the predicted ranges: docs/label-shares.md has "
    "the table.",
)


@final
@dataclass(frozen=True, slots=True)
class ProposedSchedule:
    """A schedule, what its sums reveal, and what it costs.

    Args:
        name: such as "batches of 5".
        description: how cohorts are drawn, in a sentence.
        cost: in rounds.
        resolution: mean over the clients that take part of the share of a client's variance
            that sums reveal.
        largest_resolution: the same of the client that they reveal most of.
        group_at_least: no smaller group of clients can be separated from the others.
        group_at_most: size of the smallest group that was found.
        predicted: the error of label shares after some numbers of rounds.
        cohorts: for each round, the numbers of its clients, from 0.

    """

    name: str
    description: str
    cost: ScheduleCost
    resolution: float
    largest_resolution: float
    group_at_least: int
    group_at_most: int
    predicted: tuple[PredictedError, ...]
    cohorts: tuple[tuple[int, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class CohortDesign:
    """Schedules for a federation, side by side.

    Args:
        clients: number of clients.
        cohort: clients wanted in a round.
        rounds: number of rounds.
        schedules: from those that vary most to fixed groups.
        assumed: what the predicted errors assume, in sentences.

    """

    clients: int
    cohort: int
    rounds: int
    schedules: tuple[ProposedSchedule, ...]
    assumed: tuple[str, ...]


def propose_cohorts(
    clients: int,
    cohort: int,
    rounds: int,
    *,
    alpha: float = 0.5,
    classes: int = 10,
    noise: float = 1.0,
    seed: int = 0,
) -> CohortDesign:
    """Return schedules for a federation, with what they reveal, cost and let attackers read.

    Args:
        clients: clients of the federation, 2 to 3,000.
        cohort: clients wanted in a round.
        rounds: number of rounds, 1 to 2,000.
        alpha: parameter of the Dirichlet distribution of clients' label shares, 0.001 to a
            million.
        classes: number of labels, 2 to 100.
        noise: standard deviation of the noise of a sum over that of a client's shares, 0.001 to
            a million.
        seed: of all draws.

    Raises:
        PlanError: if a number is out of its range.

    """
    refuse_many(clients, rounds)
    if not (LEAST <= alpha <= MOST and LEAST <= noise <= MOST and 2 <= classes <= MOST_CLASSES):
        raise PlanError(
            f"the prediction needs alpha and noise between {LEAST:g} and {MOST:,.0f}, and 2 to "
            f"{MOST_CLASSES:,} classes; got alpha {alpha:g}, noise {noise:g} and {classes:,} "
            "classes"
        )
    schedules = propose_schedules(clients, cohort, rounds, seed)
    return compare_schedules(clients, cohort, schedules, stated_noise(classes, alpha, noise))


def refuse_many(clients: int, rounds: int) -> None:
    """Refuse a federation that is too large to compare schedules.

    Raises:
        PlanError: if it is.

    """
    if clients > MAX_CLIENTS or rounds > MOST_ROUNDS:
        raise PlanError(
            f"schedules are compared for at most {MAX_CLIENTS:,} clients and {MOST_ROUNDS:,} "
            f"rounds; got {clients:,} clients and {rounds:,} rounds"
        )


def compare_schedules(
    clients: int, cohort: int, schedules: tuple[CohortSchedule, ...], noise: SumNoise
) -> CohortDesign:
    """Return what schedules reveal, cost, and let attackers read.

    Args:
        clients: clients of the federation.
        cohort: clients wanted in a round.
        schedules: one or more, of the same rounds.
        noise: what a sum says of its clients.

    Raises:
        PlanError: if they are too large.

    """
    rounds = len(schedules[0].took_part)
    proposed = tuple(_propose(one, noise) for one in schedules)
    return CohortDesign(clients, cohort, rounds, proposed, (*GENERAL, *noise.assumed))


def _propose(schedule: CohortSchedule, noise: SumNoise) -> ProposedSchedule:
    took_part = schedule.took_part
    rounds = len(took_part)
    after = sorted({rounds >> step for step in range(PREDICTIONS)} - {0})
    reading = _read(took_part)
    return ProposedSchedule(
        schedule.name,
        schedule.description,
        find_cost(took_part),
        reading.resolution,
        reading.largest_resolution,
        reading.group_at_least,
        reading.group_at_most,
        tuple(predict_error(noise, took_part[:number]) for number in after),
        tuple(tuple(np.flatnonzero(row).tolist()) for row in took_part),
    )


def _read(took_part: np.ndarray) -> SumsReading:
    """Return what the sums reveal of the clients that take part at all."""
    seen = np.flatnonzero(took_part.any(axis=0))
    rounds = len(took_part)
    parties = tuple(client(int(number)) for number in seen)
    reading = read_sums(
        Participation(parties, tuple(range(rounds)), took_part[:, seen], (None,) * rounds)
    )
    if reading is None:
        raise PlanError(
            f"{len(seen):,} clients and {rounds:,} rounds are too many to compare schedules: "
            "take fewer rounds"
        )
    return reading
