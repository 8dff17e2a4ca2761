"""Gathers refusals that have the same reason, so that none is lost in their number."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.parties import Party
from overheard.findings.exposures import Arm
from overheard.findings.finding import Refusal


@dataclass(frozen=True, slots=True)
class RefusalGroup:
    """One reason why an attack of some observers could not run in an arm.

    Args:
        arm: its name.
        observers: who would have pooled what they read.
        label: what readers see of the attack.
        question: that stays open.
        missing: what the attack lacked.
        targets: how many different targets.
        answers: how many claims were not made, over targets, rounds and seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    label: str
    question: str
    missing: tuple[str, ...]
    targets: int
    answers: int


def grouped(every: Sequence[Arm]) -> tuple[RefusalGroup, ...]:
    """One entry a reason, arm by arm, in the order of the first refusal of each."""
    groups: dict[tuple[str, tuple[Party, ...], str, str, tuple[str, ...]], list[Refusal]]
    groups = defaultdict(list)
    for arm in every:
        for exposure in arm.exposures:
            for refusal in exposure.refusals:
                label = exposure.labels[refusal.cell.attack]
                reason = (arm.name, exposure.observers, label, exposure.question)
                groups[(*reason, refusal.missing)].append(refusal)
    return tuple(
        RefusalGroup(*reason, len({refusal.target for refusal in members}), len(members))
        for reason, members in groups.items()
    )
