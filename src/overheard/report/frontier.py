"""The trade-off of each arm: leakage against accuracy and bytes sent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import final

from overheard.core.task import Utility
from overheard.findings.costs import arm_costs
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, find_undefended_arm, group_by_threat


@final
@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One arm under one attack.

    Args:
        arm: name of the arm.
        attack: full name of the attack.
        label: the attack's label in reports.
        is_adaptive: whether the attack adapts to the defenses of the arm.
        row: the attack's result.
        accuracy_retained: accuracy divided by that of the arm without defenses; in tasks
            without classes, another utility.
        bytes_sent: bytes sent in a run, up and down; None = not counted.
        utility: what is retained.

    """

    arm: str
    attack: str
    label: str
    is_adaptive: bool
    row: ScoreRow
    accuracy_retained: float
    bytes_sent: float | None
    utility: Utility = "accuracy"

    @property
    def leakage(self) -> float:
        """The leakage: higher = more; at least that of an uninformed guess."""
        sign = -1.0 if self.row.better == "lower" else 1.0
        value = sign * self.row.value.mean
        return value if self.row.blind is None else max(value, sign * self.row.blind)


def frontier_points(arm_results: Sequence[ArmResult]) -> Mapping[str, Sequence[FrontierPoint]]:
    """Return the points of each threat, by its title, if there are two arms or more.

    There are none without an arm that has no defenses and a measured accuracy.
    """
    bare = find_undefended_arm(arm_results)
    bare_accuracy = bare.accuracy if bare is not None else None
    if bare is None or not bare_accuracy:
        return {}
    tested = {arm.name: (arm, arm.accuracy) for arm in arm_results if arm.accuracy is not None}
    found = {
        title: [
            FrontierPoint(
                arm.name,
                attack_result.attack,
                attack_result.label,
                attack_result.is_adaptive,
                row,
                accuracy / bare_accuracy,
                arm_costs(arm).total_bytes,
                arm.utility,
            )
            for threat_result in threat_results
            if threat_result.arm in tested
            for arm, accuracy in [tested[threat_result.arm]]
            for attack_result in threat_result.attack_results
            for row in [attack_result.headline_row]
            if isfinite(row.value.mean)
        ]
        for title, threat_results in group_by_threat(arm_results).items()
    }
    return {
        title: points for title, points in found.items() if len({one.arm for one in points}) > 1
    }


def strongest_attacks(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Return, for each arm, the point of the strongest attack on it."""
    return tuple(
        max((one for one in points if one.arm == arm), key=lambda one: one.leakage)
        for arm in dict.fromkeys(one.arm for one in points)
    )


def pareto_front(
    points: Sequence[FrontierPoint], utility: Callable[[FrontierPoint], float]
) -> tuple[FrontierPoint, ...]:
    """Return the points that no other dominates in leakage and utility (the Pareto front)."""
    return tuple(
        one for one in points if not any(_dominates(other, one, utility) for other in points)
    )


def _dominates(
    other: FrontierPoint, one: FrontierPoint, utility: Callable[[FrontierPoint], float]
) -> bool:
    no_worse = other.leakage <= one.leakage and utility(other) >= utility(one)
    return no_worse and (other.leakage < one.leakage or utility(other) > utility(one))
