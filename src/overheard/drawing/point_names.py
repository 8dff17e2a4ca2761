"""Placement of point names in a chart so that they overlap as little as possible."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes

from overheard.drawing.svg import SOFT
from overheard.findings.names import shorten

MAX_LENGTH = 22
"""Longest name, in characters; the table below the chart has the whole name."""

_SIZE, _CHARACTER, _ABOVE, _BELOW = 11, 6.8, 9.0, 3.0
"""Font size, mean character width, ascent and descent, in pixels."""

_POINT_RADIUS = 4.0
"""Radius of a point, in pixels."""

_OFFSETS = (5.0, -13.0, 20.0, -28.0, 35.0, -43.0, 50.0, -58.0)
"""Vertical offsets from a point to the baseline of its name, in pixels, best first."""

_LEADER_DISTANCE = 15.0
"""Offset in pixels from which a thin line connects a name with its point."""


@final
@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point of a chart, in data units.

    Args:
        name: written beside the point; "" = none.
        x: horizontal place.
        y: vertical place.
        full_name: shown when the point is looked at; "" = like `name`.

    """

    name: str
    x: float
    y: float
    full_name: str = ""


@final
@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    low: float
    right: float
    high: float

    def covers(self, other: "_Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )

    def is_inside(self, other: "_Box") -> bool:
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.low <= self.low
            and self.high <= other.high
        )


@final
@dataclass(frozen=True, slots=True)
class _LabelPosition:
    """Offset of a name from its point, and the box that the name covers."""

    across: float
    up: float
    box: _Box


def write_names(axes: Axes, points: Sequence[NamedPoint]) -> None:
    """Write the names of the points; earlier points get the better positions.

    Set the limits of the axes first. A name overlaps something if no position is free.
    """
    frame = _Box(*map(float, axes.bbox.extents))
    taken = [_point_box(axes, point) for point in points]
    for point in points:
        if not point.name:
            continue
        name = shorten(point.name, MAX_LENGTH)
        places = [
            one for one in _label_positions(axes, point, name) if one.box.is_inside(frame)
        ]
        places = places or list(_label_positions(axes, point, name))
        best = min(places, key=lambda one: sum(one.box.covers(other) for other in taken))
        taken.append(best.box)
        axes.annotate(
            name,
            (point.x, point.y),
            (best.across, best.up),
            textcoords="offset points",
            ha="left" if best.across > 0 else "right",
            fontsize=_SIZE,
            arrowprops={"arrowstyle": "-", "color": SOFT, "lw": 0.6}
            if abs(best.up) > _LEADER_DISTANCE
            else None,
        )


def _point_box(axes: Axes, point: NamedPoint) -> _Box:
    x, y = map(float, axes.transData.transform((point.x, point.y)))
    return _Box(x - _POINT_RADIUS, y - _POINT_RADIUS, x + _POINT_RADIUS, y + _POINT_RADIUS)


def _label_positions(axes: Axes, point: NamedPoint, name: str) -> Iterator[_LabelPosition]:
    """Yield the possible positions of a name, best first."""
    x, y = map(float, axes.transData.transform((point.x, point.y)))
    width = _CHARACTER * len(name)
    # Away from the nearer end of the chart.
    sides = (7.0, -7.0) if x < (axes.bbox.x0 + axes.bbox.x1) / 2 else (-7.0, 7.0)
    for up in _OFFSETS:
        for across in sides:
            left = x + across - (0.0 if across > 0 else width)
            yield _LabelPosition(
                across, up, _Box(left, y + up - _BELOW, left + width, y + up + _ABOVE)
            )
