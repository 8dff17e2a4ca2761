"""Draws what is left to attackers against what the model is worth, arm by arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.report.figures import digits
from overheard.report.line_charts import (
    Axis,
    Operating,
    Trade,
    frontier_chart,
    frontier_legend,
)
from overheard.report.names import shown
from overheard.report.plates import Panel, Plate, Table


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One arm as one attacker found it.

    Args:
        arm: its name.
        read: average precision, 0..1.
        kept: what the model is worth, 1 = as without defenses.

    """

    arm: str
    read: float
    kept: float


def frontier_plate(title: str, points: Mapping[str, Sequence[Point]]) -> Plate:
    """All arms as every attacker found them; the best operating points are named.

    Args:
        title: of the plate.
        points: by attacker.

    """
    best = best_arms([point for held in points.values() for point in held])
    trades = [
        Trade(
            place,
            "adaptive" in name,
            [
                Operating(
                    point.arm
                    if point.arm in best and point == _strongest(points, point)
                    else "",
                    100 * point.read,
                    100 * point.kept,
                )
                for point in held
            ],
        )
        for place, (name, held) in enumerate(points.items())
    ]
    ends = [one for trade in trades for one in trade.points]
    names = [name.replace("_", " ") for name in points]
    return Plate(
        title,
        "Further to the left less is read, further up the model is worth more; dashed: the "
        f"attacker adapts. No other beats these both ways: {', '.join(map(shown, best))}.",
        frontier_legend(names, trades, False, f"Legend: {title}"),
        (
            Panel(
                "",
                frontier_chart(
                    trades,
                    None,
                    Axis("average precision a user, %", 0.0, 1.08 * max(p.x for p in ends)),
                    Axis(
                        "utility kept, %",
                        min(0.0, *(p.y for p in ends)),
                        1.08 * max(100.0, *(p.y for p in ends)),
                    ),
                    title,
                ),
            ),
        ),
        Table(
            title,
            ("Arm", "Attacker", "Average precision", "Utility", "Best"),
            tuple(
                (
                    shown(point.arm),
                    name.replace("_", " "),
                    digits(point.read),
                    digits(point.kept),
                    "yes" if point.arm in best else "no",
                )
                for name, held in points.items()
                for point in held
            ),
            2,
        ),
        True,
    )


def best_arms(points: Sequence[Point]) -> tuple[str, ...]:
    """The arms that no other beats both ways, by the strongest attacker upon each."""
    strongest: dict[str, Point] = {}
    for point in points:
        known = strongest.get(point.arm)
        if known is None or point.read > known.read:
            strongest[point.arm] = point
    return tuple(
        arm
        for arm, own in strongest.items()
        if not any(_beats(other, own) for other in strongest.values())
    )


def _beats(other: Point, own: Point) -> bool:
    no_worse = other.read <= own.read and other.kept >= own.kept
    return no_worse and (other.read < own.read or other.kept > own.kept)


def _strongest(points: Mapping[str, Sequence[Point]], of: Point) -> Point:
    upon = [point for held in points.values() for point in held if point.arm == of.arm]
    return max(upon, key=lambda point: point.read)
