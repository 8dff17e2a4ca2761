"""Puts names beside the dots of a chart where they cover neither dots nor each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes

from overheard.drawing.svg import SOFT
from overheard.findings.names import shortened

LONGEST = 22
"""Characters of a name; the table under the chart has it whole."""

_SIZE, _CHARACTER, _ABOVE, _BELOW = 11, 6.8, 9.0, 3.0
"""Of the letters in pixels: their size, mean width, and what they reach from their line."""

_DOT = 4.0
"""Pixels from the middle of a dot to its edge."""

_STEPS = (5.0, -13.0, 20.0, -28.0, 35.0, -43.0, 50.0, -58.0)
"""Pixels from a dot up to the line of its name, the most welcome first."""

_FAR = 15.0
"""Pixels from which on a thin line leads from a name to its dot."""


@final
@dataclass(frozen=True, slots=True)
class NamedDot:
    """A dot of a chart, in the chart's own units; "" = it bears no name."""

    name: str
    x: float
    y: float


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
class _Place:
    """How far from its dot a name begins, or ends, and what it then covers."""

    across: float
    up: float
    box: _Box


def write_names(axes: Axes, dots: Sequence[NamedDot]) -> None:
    """Write the names, the first ones in the best places.

    The limits of the axes must stand. A name for which there is no free place covers something.
    """
    frame = _Box(*map(float, axes.bbox.extents))
    taken = [_around(axes, dot) for dot in dots]
    for dot in dots:
        if not dot.name:
            continue
        name = shortened(dot.name, LONGEST)
        places = [one for one in _places(axes, dot, name) if one.box.is_inside(frame)]
        places = places or list(_places(axes, dot, name))
        best = min(places, key=lambda one: sum(one.box.covers(other) for other in taken))
        taken.append(best.box)
        axes.annotate(
            name,
            (dot.x, dot.y),
            (best.across, best.up),
            textcoords="offset points",
            ha="left" if best.across > 0 else "right",
            fontsize=_SIZE,
            arrowprops={"arrowstyle": "-", "color": SOFT, "lw": 0.6}
            if abs(best.up) > _FAR
            else None,
        )


def _around(axes: Axes, dot: NamedDot) -> _Box:
    x, y = map(float, axes.transData.transform((dot.x, dot.y)))
    return _Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT)


def _places(axes: Axes, dot: NamedDot, name: str) -> Iterator[_Place]:
    """Where a name may stand, the most welcome places first."""
    x, y = map(float, axes.transData.transform((dot.x, dot.y)))
    width = _CHARACTER * len(name)
    # Away from the nearer end of the chart.
    sides = (7.0, -7.0) if x < (axes.bbox.x0 + axes.bbox.x1) / 2 else (-7.0, 7.0)
    for up in _STEPS:
        for across in sides:
            left = x + across - (0.0 if across > 0 else width)
            yield _Place(across, up, _Box(left, y + up - _BELOW, left + width, y + up + _ABOVE))
