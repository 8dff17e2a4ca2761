"""Where each arm stands: what is read of it, what its model is worth, what it sends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import final

from overheard.findings.costs import costs_of
from overheard.findings.exposures import Arm, bare_arm, by_threat
from overheard.findings.row import Row
from overheard.report.question_pages import pages_of


@final
@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One arm as one attack found it.

    Args:
        arm: its name.
        attack: its full name.
        label: what readers see of it in this arm.
        is_adaptive: whether it adapts to the defenses of the arm.
        row: what was read.
        kept: accuracy over that of the arm without defenses.
        sent: bytes that travelled in a run, up and down; None = not counted.

    """

    arm: str
    attack: str
    label: str
    is_adaptive: bool
    row: Row
    kept: float
    sent: float | None

    @property
    def read(self) -> float:
        """Higher = more is read; one who reads less than a guesser had better guess."""
        sign = -1.0 if self.row.better == "lower" else 1.0
        value = sign * self.row.value.mean
        return value if self.row.blind is None else max(value, sign * self.row.blind)


def standings(every: Sequence[Arm]) -> Mapping[str, Sequence[FrontierPoint]]:
    """The standings by who asked what, where there is more than one arm to compare.

    What a model is worth is its final accuracy over that of the arm without defenses; where
    none of the arms is bare or its accuracy was not measured, there are none.
    """
    bare = bare_arm(every)
    worth = bare.accuracy if bare is not None else None
    if not worth:
        return {}
    tested = {arm.name: (arm, arm.accuracy) for arm in every if arm.accuracy is not None}
    found = {
        asked: [
            FrontierPoint(
                arm.name,
                case.attack,
                case.label,
                case.is_adaptive,
                row,
                accuracy / worth,
                costs_of(arm).sent,
            )
            for exposure in exposures
            if exposure.arm in tested
            for arm, accuracy in [tested[exposure.arm]]
            for case in exposure.cases
            for row in [pages_of(exposure.question).frontier_row(case)]
            if isfinite(row.value.mean)
        ]
        for asked, exposures in by_threat(every).items()
    }
    return {asked: held for asked, held in found.items() if len({one.arm for one in held}) > 1}


def strongest(held: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Of each arm what the strongest attack upon it found."""
    return tuple(
        max((one for one in held if one.arm == arm), key=lambda one: one.read)
        for arm in dict.fromkeys(one.arm for one in held)
    )


def unbeaten(
    held: Sequence[FrontierPoint], worth: Callable[[FrontierPoint], float]
) -> tuple[FrontierPoint, ...]:
    """Those that no other beats: by less that is read, and at least as much of the worth."""
    return tuple(one for one in held if not any(_beats(other, one, worth) for other in held))


def _beats(
    other: FrontierPoint, own: FrontierPoint, worth: Callable[[FrontierPoint], float]
) -> bool:
    no_worse = other.read <= own.read and worth(other) >= worth(own)
    return no_worse and (other.read < own.read or worth(other) > worth(own))
