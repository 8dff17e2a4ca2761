"""By how much one attack recognises people better than another, user by user."""

from collections.abc import Iterable, Sequence

import numpy as np

from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, Finding
from overheard.questions.identity.statistics.ranking import by_user, rankings
from overheard.statistics.estimate import Estimate, estimate

PUBLISHED = "reidentify_mlp"
"""The attack which the paper proposes: the one to be beaten."""


def paired_gain(findings: Iterable[Finding], attack: str, base: str, seed: Seed) -> Estimate:
    """By how much one attack's mean average precision is above another's, user by user.

    The difference is taken for each known user of each run, so that users who are hard for
    both leave it alone; its interval draws runs, then users.

    Args:
        findings: of one arm, observers and rounds heard; of these two attacks or more.
        attack: its name in the plan.
        base: name of the other.
        seed: of the draws.

    Raises:
        ValueError: if the two were not asked about the same users.

    """
    held = [finding for finding in findings if not finding.cell.is_control]
    better, worse = (
        by_user(rankings(one for one in held if one.cell.attack == name))
        for name in (attack, base)
    )
    if not better or better.keys() != worse.keys():
        raise ValueError(
            f"{attack} names {len(better)} users and {base} {len(worse)}: both must be asked "
            "about the same, in the same runs"
        )
    gains = np.array([better[who] - worse[who] for who in better])
    runs = np.array([run for run, _ in better])
    return estimate(gains, runs, seed.child("paired", attack, base))


def published_beside(
    members: Sequence[Finding], every: Iterable[Sequence[Finding]]
) -> Sequence[Finding]:
    """The findings of the strongest version of the published attack on the same targets.

    Args:
        members: of one attack in one place.
        every: of each attack and place.

    """
    cell, asked = members[0].cell, _asked(members)
    if cell.part == PUBLISHED:
        return ()
    published = [
        held
        for held in every
        if held[0].cell.part == PUBLISHED
        and _where(held[0].cell) == _where(cell)
        and _asked(held) == asked
    ]
    return max(published, key=mean_precision, default=())


def mean_precision(findings: Iterable[Finding]) -> float:
    """The mean average precision over known users and runs, controls left out; 0 for none."""
    held = by_user(rankings(one for one in findings if not one.cell.is_control))
    return sum(held.values()) / max(len(held), 1)


def _where(cell: Cell) -> tuple[object, ...]:
    return (cell.arm, cell.observers, cell.question, cell.rounds)


def _asked(findings: Iterable[Finding]) -> frozenset[tuple[int, str, bool]]:
    return frozenset((one.cell.seed, one.target, one.cell.is_control) for one in findings)
