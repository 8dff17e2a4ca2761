"""The layout of charts: room around the axes, and legends with wrapped names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.svg import INK, inline_svg
from overheard.findings.names import make_printable

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


LEGEND_COLUMNS = 60
"""Longest line of a legend, in characters; longer names are wrapped."""

CHARACTER_WIDTH = 7.0
"""Mean width of a character of a legend, in pixels."""


def legend_text(name: str) -> str:
    """Return a name for a legend, printable and wrapped."""
    return "\n".join(wrap(make_printable(name), LEGEND_COLUMNS)) or " "


def list_legend(
    lines: Callable[[], Sequence[Line2D]], names: Sequence[str], more: int, label: str
) -> Markup:
    """Draw a legend as a chart of its own, one name below the other.

    Args:
        lines: returns the legend entries.
        names: the names of the first entries, which `legend_text` wraps.
        more: the number of further entries, which have short names.
        label: what the chart shows; unique on its page.

    """
    rows = [row for name in names for row in legend_text(name).split("\n")]
    width = max(300.0, 44.0 + CHARACTER_WIDTH * max(map(len, rows), default=0))

    def draw(figure: Figure) -> None:
        figure.legend(
            handles=list(lines()), loc="upper left", borderaxespad=0, labelspacing=0.55
        )

    return inline_svg(draw, width, 4.0 + LINE_HEIGHT * (len(rows) + more), label)
