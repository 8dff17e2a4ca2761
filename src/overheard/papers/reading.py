"""Reads means with intervals off an audit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit, Finding
from overheard.papers.figure import Figure
from overheard.plans.plan import UNDEFENDED
from overheard.statistics.estimate import Estimate, estimate

BOOTSTRAP = Seed(0).child("papers")


@final
@dataclass(frozen=True, slots=True)
class ReadingPlace:
    """Which findings of an audit a figure is read off.

    Args:
        attack: as the plan's threat names it, see `plans.part.label`.
        rounds: that were listened to, from 0.
        arm: of the plan.
        target: one user; None = all.

    """

    attack: str
    rounds: tuple[int, ...]
    arm: str = UNDEFENDED
    target: Party | None = None


def found(audit: Audit, place: ReadingPlace) -> tuple[Finding, ...]:
    """The findings there, over all seeds.

    Raises:
        NeedsError: if there are none, with what the attack lacked where it was refused.

    """
    findings = tuple(
        one
        for one in audit.findings
        if (one.cell.attack, one.cell.rounds, one.cell.arm)
        == (place.attack, place.rounds, place.arm)
        and place.target in (None, one.target)
    )
    if not findings:
        lacks = {
            need
            for refusal in audit.refusals
            if refusal.cell.attack == place.attack
            for need in refusal.missing
        }
        raise NeedsError(
            f"{place} was not measured: {'; '.join(sorted(lacks)) or 'no such run'}"
        )
    return findings


def mean(audit: Audit, place: ReadingPlace, score: str) -> Estimate:
    """The mean of a score over users and seeds."""
    return mean_of(found(audit, place), [one.value for one in _scores(audit, place, score)])


def mean_over_rounds(
    audit: Audit, attack: str, rounds: Iterable[int], score: str, arm: str = UNDEFENDED
) -> Estimate:
    """The mean of a score over rounds that were listened to one by one, users and seeds.

    A user's rounds are averaged before its interval is drawn: they are no independent trials.
    """
    heard: dict[tuple[int, Party], list[float]] = defaultdict(list)
    for number in rounds:
        place = ReadingPlace(attack, (number,), arm)
        for finding, one in zip(found(audit, place), _scores(audit, place, score), strict=True):
            heard[finding.cell.seed, finding.target].append(one.value)
    values = np.array([np.mean(several) for several in heard.values()])
    return estimate(values, np.array([seed for seed, _ in heard]), BOOTSTRAP)


def mean_guess(audit: Audit, place: ReadingPlace, score: str, guess: str) -> Estimate:
    """The mean of a score for one of the guesses that the claims were held against."""
    values = [{**one.blinds, **one.references}[guess] for one in _scores(audit, place, score)]
    return mean_of(found(audit, place), values)


def best_round(audit: Audit, attack: str, score: str, rounds: Iterable[int]) -> int:
    """The round, from 0, at which the mean of a score that should be low is lowest.

    It is chosen with the truth in hand: an attacker does not know it.
    """
    return min(
        rounds, key=lambda number: mean(audit, ReadingPlace(attack, (number,)), score).mean
    )


def figure(
    name: str, setting: str, ours: Estimate, published: float | None, better: Better | None
) -> Figure:
    """A figure from an estimate."""
    return Figure(name, setting, ours.mean, ours.low, ours.high, published, better)


def mean_accuracy(audit: Audit, arm: str, number: int) -> Estimate:
    """The accuracy of the global model as round `number` broadcasts it, over seeds."""
    runs = [one for one in audit.arms if one.arm == arm and not one.is_control]
    values = np.array([one.accuracy[number] for one in runs])
    return estimate(values, np.array([one.seed for one in runs]), BOOTSTRAP)


def last_accuracy(audit: Audit, arm: str) -> Estimate:
    """The accuracy of the last global model that was measured, over seeds."""
    (last,) = {max(one.accuracy) for one in audit.arms if one.arm == arm}
    return mean_accuracy(audit, arm, last)


def mean_of(findings: Sequence[Finding], values: Sequence[float]) -> Estimate:
    """The mean of values that were worked out from these findings, one each."""
    seeds = np.array([finding.cell.seed for finding in findings])
    return estimate(np.array(values), seeds, BOOTSTRAP)


def _scores(audit: Audit, place: ReadingPlace, score: str) -> list[Score]:
    return [
        one for finding in found(audit, place) for one in finding.scores if one.name == score
    ]
