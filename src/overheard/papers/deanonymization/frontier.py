"""Draws what is left to attackers against what the model is worth, arm by arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.line_charts import Axis, Trade, frontier_chart, frontier_legend
from overheard.drawing.plates import Panel, Plate, Table
from overheard.drawing.point_names import NamedDot
from overheard.findings.figures import digits
from overheard.findings.names import shown

ADAPTIVE = "_adaptive"
"""How the name of an attacker ends who knows the defense."""


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
        points: by attacker; one who adapts is called as one who does not, with `ADAPTIVE`
            behind it, and shares the panel of that one.

    """
    every = [point for held in points.values() for point in held]
    best = best_arms(every)
    across = Axis("average precision a user, %", 0.0, 108 * max(p.read for p in every))
    low, high = min(0.95, *(p.kept for p in every)), max(1.0, *(p.kept for p in every))
    room = 0.1 * (high - low)
    up = Axis("utility kept, %", 100 * (low - room), 100 * (high + room))
    groups: dict[str, list[Trade]] = {}
    for name, held in points.items():
        is_adaptive = name.endswith(ADAPTIVE)
        named = [
            NamedDot(
                point.arm if point.arm in best and point == _strongest(points, point) else "",
                100 * point.read,
                100 * point.kept,
            )
            for point in held
        ]
        group = groups.setdefault(name.removesuffix(ADAPTIVE), [])
        group.append(Trade(int(is_adaptive), is_adaptive, named))
    return Plate(
        title,
        "Further to the left less is read, further up the model is worth more. By the "
        "strongest attacker upon each, no other arm beats these both ways: "
        f"{', '.join(map(shown, best))}; each stands where that attacker found it.",
        frontier_legend(
            ["knows nothing of the defense", "adapts to it"],
            [Trade(0, False, []), Trade(1, True, [])],
            False,
            f"Legend: {title}",
        ),
        tuple(
            Panel(name, frontier_chart(trades, None, across, up, f"{title}, {name}"))
            for name, trades in groups.items()
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
