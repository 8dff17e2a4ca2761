"""Gathers refusals that have the same reason, so that none is lost in their number."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.parties import Party
from overheard.findings.finding import Refusal


@dataclass(frozen=True, slots=True)
class RefusalGroup:
    """One reason why an attack of some observers could not run in an arm.

    Args:
        arm: its name.
        observers: who would have pooled what they read.
        attack: its name in the plan.
        question: that stays open.
        missing: what the attack lacked.
        targets: how many different targets.
        answers: how many claims were not made, over targets, rounds and seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    attack: str
    question: str
    missing: tuple[str, ...]
    targets: int
    answers: int


def grouped(refusals: Sequence[Refusal]) -> tuple[RefusalGroup, ...]:
    """One entry a reason, in the order of the first refusal of each."""
    groups: dict[tuple[str, tuple[Party, ...], str, str, tuple[str, ...]], list[Refusal]]
    groups = defaultdict(list)
    for refusal in refusals:
        cell = refusal.cell
        groups[(cell.arm, cell.observers, cell.attack, cell.question, refusal.missing)].append(
            refusal
        )
    return tuple(
        RefusalGroup(*reason, len({refusal.target for refusal in members}), len(members))
        for reason, members in groups.items()
    )
