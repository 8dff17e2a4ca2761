"""Means with intervals, read from an audit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.number_format import SPACE, Measure
from overheard.plans.plan import UNDEFENDED
from overheard.plans.registries import questions
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean

BOOTSTRAP_SEED = Seed(0).child("papers")

ACCURACY = Measure("Accuracy", f"{SPACE}%", 100.0)


@final
@dataclass(frozen=True, slots=True)
class FindingFilter:
    """A selection of an audit's findings.

    Args:
        attack: name of the attack in the plan's threat; see `plans.plugin_field.plugin_label`.
        rounds: observed rounds, from 0.
        arm: arm of the plan.
        target: one user; None = all users.

    """

    attack: str
    rounds: tuple[int, ...]
    arm: str = UNDEFENDED
    target: Party | None = None


def select_findings(audit: Audit, finding_filter: FindingFilter) -> tuple[Finding, ...]:
    """Return the selected findings of all seeds.

    Raises:
        NeedsError: if there are none; the message says what a refused attack was missing.

    """
    findings = tuple(
        one
        for one in audit.findings
        if (one.cell.attack, one.cell.rounds, one.cell.arm)
        == (finding_filter.attack, finding_filter.rounds, finding_filter.arm)
        and finding_filter.target in (None, one.target)
    )
    if not findings:
        missing = {
            need
            for refusal in audit.refusals
            if refusal.cell.attack == finding_filter.attack
            for need in refusal.missing
        }
        raise NeedsError(
            f"attack {finding_filter.attack!r} was not measured in arm {finding_filter.arm!r}: "
            f"{'; '.join(sorted(missing)) or 'no such run'}"
        )
    return findings


def mean_score(audit: Audit, finding_filter: FindingFilter, score: str) -> Estimate:
    """Return the mean of a score over users and seeds."""
    findings = select_findings(audit, finding_filter)
    values = [one.value for one in _scores(audit, finding_filter, score)]
    return _measure(findings, score).cut(mean_over_findings(findings, values))


def mean_score_over_rounds(
    audit: Audit, attack: str, rounds: Iterable[int], score: str, arm: str = UNDEFENDED
) -> Estimate:
    """Return the mean of a score over users, seeds and rounds that were attacked one by one.

    The rounds of a user are averaged first, as they are not independent trials.
    """
    by_target: dict[tuple[int, Party], list[float]] = defaultdict(list)
    findings: tuple[Finding, ...] = ()
    for number in rounds:
        finding_filter = FindingFilter(attack, (number,), arm)
        findings = select_findings(audit, finding_filter)
        for finding, one in zip(findings, _scores(audit, finding_filter, score), strict=True):
            by_target[finding.cell.seed, finding.target].append(one.value)
    values = np.array([np.mean(several) for several in by_target.values()])
    mean = estimate_mean(values, np.array([seed for seed, _ in by_target]))
    return _measure(findings, score).cut(mean)


def mean_guess_score(
    audit: Audit, finding_filter: FindingFilter, score: str, guess: str
) -> Estimate:
    """Return the mean score of a guess or reference that the claims were compared with."""
    findings = select_findings(audit, finding_filter)
    values = [
        {**one.uninformed, **one.references}[guess]
        for one in _scores(audit, finding_filter, score)
    ]
    return _measure(findings, score).cut(mean_over_findings(findings, values))


def find_best_round(audit: Audit, attack: str, score: str, rounds: Iterable[int]) -> int:
    """Return the round, from 0, with the lowest mean of a score for which lower is better.

    The choice uses the ground truth, so an attacker cannot make it.
    """
    return min(
        rounds,
        key=lambda number: mean_score(audit, FindingFilter(attack, (number,)), score).mean,
    )


def mean_accuracy(audit: Audit, arm: str, number: int) -> Estimate:
    """Return the accuracy of the global model broadcast in round `number`, over seeds."""
    runs = [one for one in audit.arms if one.arm == arm and not one.is_control]
    values = np.array([one.accuracy[number] for one in runs])
    return ACCURACY.cut(estimate_mean(values, np.array([one.seed for one in runs])))


def final_accuracy(audit: Audit, arm: str) -> Estimate:
    """Return the accuracy of the last measured global model, over seeds."""
    (last,) = {max(one.accuracy) for one in audit.arms if one.arm == arm}
    return mean_accuracy(audit, arm, last)


def mean_over_findings(findings: Sequence[Finding], values: Sequence[float]) -> Estimate:
    """Return the mean of values, one for each finding."""
    seeds = np.array([finding.cell.seed for finding in findings])
    return estimate_mean(np.array(values), seeds)


def _measure(findings: Sequence[Finding], score: str) -> Measure:
    return questions()[findings[0].cell.question].measure(score)


def _scores(audit: Audit, finding_filter: FindingFilter, score: str) -> list[Score]:
    return [
        one
        for finding in select_findings(audit, finding_filter)
        for one in finding.scores
        if one.name == score
    ]
