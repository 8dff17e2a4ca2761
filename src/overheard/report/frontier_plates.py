"""The figures that set what defenses leave to be read against what the model is then worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.audit.row import Row
from overheard.report.exposures import Arm, Case, bare_arm, by_threat
from overheard.report.figures import digits, measure
from overheard.report.identity_tables import PERSONAL
from overheard.report.line_charts import (
    Axis,
    Operating,
    Trade,
    frontier_chart,
    frontier_legend,
)
from overheard.report.names import shown, told_apart
from overheard.report.plates import Panel, Plate, Table

ADAPTIVE = "knowing the defenses"
"""What the name of an attack says that adapts to the defenses in force."""

_PRECISION = "mean_average_precision"


@final
@dataclass(frozen=True, slots=True)
class _Point:
    """One arm as one attack found it."""

    arm: str
    row: Row
    utility: float


def frontier_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each group of observers who ask about people, over all arms.

    What the model is worth is its final accuracy over that of the arm without defenses; where
    none of the arms is bare or its accuracy was not measured, there is no figure.

    An arm is named as one of the best where no other leaves less to the strongest attack upon
    it, the adaptive ones among them, and has a model worth as much or more.
    """
    bare = bare_arm(every)
    worth = bare.accuracy if bare is not None else None
    if not worth:
        return ()
    utility = {arm.name: arm.accuracy / worth for arm in every if arm.accuracy is not None}
    plates = []
    for asked, exposures in by_threat(every).items():
        points: dict[str, list[_Point]] = {}
        for exposure in exposures:
            if exposure.question in PERSONAL and exposure.arm in utility:
                for case in exposure.cases:
                    point = _Point(exposure.arm, _read(case), utility[exposure.arm])
                    points.setdefault(case.attack, []).append(point)
        if len({point.arm for held in points.values() for point in held}) > 1:
            plates.append(_plate(asked, points))
    return tuple(plates)


def _read(case: Case) -> Row:
    """By what it is told how much an attack reads."""
    return case.whole.get(_PRECISION, case.row)


def _plate(asked: str, points: dict[str, list[_Point]]) -> Plate:
    rows = [point.row for held in points.values() for point in held]
    told, best = measure(rows[0].score), _best_arms(points)
    names = told_apart(list(points))
    trades = [
        Trade(
            place,
            ADAPTIVE in attack,
            [
                Operating(
                    point.arm
                    if point.arm in best and point is _strongest(points, point)
                    else "",
                    told.factor * point.row.value.mean,
                    100 * point.utility,
                )
                for point in held
            ],
        )
        for place, (attack, held) in enumerate(points.items())
    ]
    blind = rows[0].blind
    ends = [operating for trade in trades for operating in trade.points]
    low = min(100.0, *(one.y for one in ends))
    room = max(2.0, 0.12 * (max(one.y for one in ends) - low))
    across = Axis(
        f"{told.title}{told.unit and ','}{told.unit}",
        0.0,
        1.08 * max(told.factor * (blind or 0.0), *(one.x for one in ends)) or 1.0,
    )
    up = Axis("accuracy kept, %", low - room, max(100.0, *(one.y for one in ends)) + room)
    has_blind = blind is not None
    return Plate(
        f"Privacy against utility · {asked}",
        "Each dot is an arm as one attack found it: further to the left less is read, further "
        "up the model is worth more. A line joins the arms that no other beats both ways, by "
        "one attack; it is dashed where the attacker knows the defenses. By the strongest on "
        f"each, these stand: {'; '.join(map(shown, best))}.",
        frontier_legend(
            [names[attack] for attack in points],
            trades,
            has_blind,
            f"Legend: frontier, {asked}",
        ),
        (
            Panel(
                "",
                frontier_chart(
                    trades,
                    None if blind is None else told.factor * blind,
                    across,
                    up,
                    f"Privacy against utility: {asked}",
                ),
            ),
        ),
        Table(
            f"{told.title} against accuracy kept: {asked}",
            ("Arm", "Attack", told.title, "95 % interval", "Accuracy kept, %", "Best"),
            tuple(
                (
                    shown(point.arm),
                    shown(attack),
                    told.tell(point.row.value.mean),
                    told.span(point.row.value),
                    digits(100 * point.utility),
                    "yes" if point.arm in best else "no",
                )
                for attack, held in points.items()
                for point in held
            ),
            2,
        ),
        False,
    )


def _best_arms(points: dict[str, list[_Point]]) -> tuple[str, ...]:
    """The arms that no other beats both ways, by the strongest attack upon each."""
    strongest: dict[str, _Point] = {}
    for held in points.values():
        for point in held:
            strongest[point.arm] = _strongest(points, point)
    return tuple(
        arm
        for arm, own in strongest.items()
        if not any(_beats(other, own) for other in strongest.values())
    )


def _strongest(points: dict[str, list[_Point]], of: _Point) -> _Point:
    """What the strongest attack found upon the arm of a point."""
    upon = [point for held in points.values() for point in held if point.arm == of.arm]
    return max(upon, key=lambda point: point.row.value.mean)


def _beats(other: _Point, own: _Point) -> bool:
    read, kept = other.row.value.mean, other.utility
    no_worse = read <= own.row.value.mean and kept >= own.utility
    return no_worse and (read < own.row.value.mean or kept > own.utility)
