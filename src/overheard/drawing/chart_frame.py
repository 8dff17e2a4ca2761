"""The layout of charts: room around the axes, and lines of intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overheard.findings.number_format import SPACE, format_number

LINE_HEIGHT = 22
"""Line height of a list, in pixels."""

GUESS_DASHES = (0, (5, 3))

CAP_SIZE = 7.0
"""Length of the cap at either end of an interval, in pixels."""


@final
@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The size of a chart and the room around its axes, in pixels.

    Args:
        width: the width of the chart.
        height: the height of the chart.
        left: the left edge of the axes, for their labels.
        bottom: the bottom edge of the axes.
        right: the right edge of the axes.
        top: the upper end of the axes, as a share of the height.

    """

    width: float
    height: float
    left: float
    bottom: float
    right: float
    top: float = 0.95

    def axes(self, figure: Figure) -> Axes:
        """Add axes with this layout to a figure."""
        return figure.add_axes(
            (
                self.left / self.width,
                self.bottom / self.height,
                (self.width - self.left - self.right) / self.width,
                self.top - self.bottom / self.height,
            )
        )


def axis_value(title: str, value: float) -> str:
    r"""Return a value with the title and the unit of its axis.

    >>> axis_value("accuracy, %", 9.0), axis_value("number of guesses", 3.0)
    ('accuracy 9.0\xa0%', 'number of guesses 3.0')
    """
    name, _, unit = title.rpartition(", ")
    number = format_number(value)
    return f"{name} {number}{SPACE}{unit}" if name else f"{title} {number}"


def draw_intervals(
    axes: Axes,
    places: Sequence[float] | Sequence[int],
    ends: Sequence[tuple[float, float]],
    colour: str,
    is_across: bool,
    cap_size: float = CAP_SIZE,
) -> None:
    """Draw intervals as lines with caps; no other line of a chart has caps.

    Args:
        axes: where to draw.
        places: the place of each interval on the other axis.
        ends: the lower and the upper end of each interval.
        colour: a colour of `svg`.
        is_across: whether the intervals lie along the horizontal axis.
        cap_size: length of a cap, in pixels.

    """
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    draw_lines = axes.hlines if is_across else axes.vlines
    draw_lines(places, lows, highs, color=colour, lw=1.5)
    for edge in (lows, highs):
        x, y = (edge, places) if is_across else (places, edge)
        marker = "|" if is_across else "_"
        axes.plot(x, y, marker, color=colour, ms=cap_size, mew=1.5, clip_on=False)
