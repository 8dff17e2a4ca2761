"""The layout of charts: room around the axes, and legends with one name per line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.svg import INK, inline_svg

LINE_HEIGHT = 22
"""Line height of a list, in pixels."""

GUESS_DASHES = (0, (5, 3))


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


def guess_line() -> Line2D:
    """Return the legend entry of the uninformed guess."""
    return Line2D([], [], color=INK, ls=GUESS_DASHES, lw=1.3, label="guessing")


def list_legend(
    lines: Callable[[], Sequence[Line2D]], count: int, width: float, label: str
) -> Markup:
    """Draw a legend as a chart of its own, one name per line.

    Args:
        lines: returns the legend entries.
        count: the number of entries.
        width: the width of the chart, in pixels.
        label: what the chart shows; unique on its page.

    """

    def draw(figure: Figure) -> None:
        figure.legend(
            handles=list(lines()), loc="upper left", borderaxespad=0, labelspacing=0.55
        )

    return inline_svg(draw, width, 4.0 + LINE_HEIGHT * count, label)
