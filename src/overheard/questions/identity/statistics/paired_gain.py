"""The gain of one re-identification attack over another, paired by user."""

from collections.abc import Iterable, Sequence

import numpy as np

from overheard.findings.finding import Cell, Finding
from overheard.findings.re_paired_fits import number_values
from overheard.questions.identity.statistics.ranking import build_rankings, precision_by_user
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_gain

PUBLISHED_ATTACK = "reidentify_mlp"
"""The attack proposed by the paper: the baseline."""


def estimate_paired_gain(findings: Iterable[Finding], attack: str, base: str) -> Estimate:
    """Estimate the difference of two attacks' mean average precision, paired by user.

    Differences are taken for each known user of each run, so users who are hard for both
    attacks do not affect them.

    Args:
        findings: findings of both attacks in one arm, with the same observers and rounds.
        attack: the name of the attack in the plan.
        base: the name of the baseline.

    Raises:
        ValueError: if the two attacks do not cover the same users.

    """
    planned = [finding for finding in findings if not finding.cell.is_control]
    attack_precision, base_precision = (
        precision_by_user(
            build_rankings(finding for finding in planned if finding.cell.attack == name)
        )
        for name in (attack, base)
    )
    if not attack_precision or attack_precision.keys() != base_precision.keys():
        raise ValueError(
            f"{attack} covers {len(attack_precision)} users and {base} {len(base_precision)}: "
            "both must cover the same users in the same runs"
        )
    precisions = np.array(
        [(attack_precision[user], base_precision[user]) for user in attack_precision]
    )
    runs = np.array([run for run, _ in attack_precision])
    numbers = number_values(user for _, user in attack_precision)
    users = np.array([numbers[user] for _, user in attack_precision])
    return estimate_gain(precisions[:, 0], precisions[:, 1], runs, users)


def select_published(
    findings: Sequence[Finding], all_findings: Iterable[Sequence[Finding]]
) -> Sequence[Finding]:
    """Return the findings of the best version of the published attack on the same targets.

    Args:
        findings: the findings of one attack in one setting.
        all_findings: the findings of each attack and setting.

    """
    cell, targets = findings[0].cell, _targets(findings)
    if cell.part == PUBLISHED_ATTACK:
        return ()
    published = [
        group
        for group in all_findings
        if group[0].cell.part == PUBLISHED_ATTACK
        and _setting(group[0].cell) == _setting(cell)
        and _targets(group) == targets
    ]
    return max(published, key=mean_average_precision, default=())


def mean_average_precision(findings: Iterable[Finding]) -> float:
    """Return the mean over known users of all runs but controls; 0 without any."""
    planned = (finding for finding in findings if not finding.cell.is_control)
    precisions = precision_by_user(build_rankings(planned))
    return sum(precisions.values()) / max(len(precisions), 1)


def _setting(cell: Cell) -> tuple[object, ...]:
    return (cell.arm, cell.observers, cell.question, cell.rounds)


def _targets(findings: Iterable[Finding]) -> frozenset[tuple[int, str, bool]]:
    return frozenset(
        (finding.cell.seed, finding.target, finding.cell.is_control) for finding in findings
    )
