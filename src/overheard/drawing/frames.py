"""How charts lie in their pictures: room around the axes, and legends of one name a line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.svg import INK, inline_svg

LINE = 22
"""Pixels from one line of a list to the next."""

BLIND_DASHES = (0, (5, 3))


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """A picture and the room around its axes, in pixels.

    Args:
        width: of the picture.
        height: of the picture.
        left: of the axes, where their labels stand.
        bottom: of the axes.
        right: of the axes.
        top: the upper end of the axes, as a share of the height.

    """

    width: float
    height: float
    left: float
    bottom: float
    right: float
    top: float = 0.95

    def axes(self, figure: Figure) -> Axes:
        """New axes within it."""
        return figure.add_axes(
            (
                self.left / self.width,
                self.bottom / self.height,
                (self.width - self.left - self.right) / self.width,
                self.top - self.bottom / self.height,
            )
        )


def blind_line() -> Line2D:
    """How a legend shows what a blind guess gets."""
    return Line2D([], [], color=INK, ls=BLIND_DASHES, lw=1.3, label="blind guess")


def list_legend(
    lines: Callable[[], Sequence[Line2D]], count: int, width: float, label: str
) -> Markup:
    """A legend by itself, one name a line.

    Args:
        lines: makes them, in the style of the page.
        count: of the lines.
        width: of the picture.
        label: what the chart shows; different for each chart of a page.

    """

    def draw(figure: Figure) -> None:
        figure.legend(
            handles=list(lines()), loc="upper left", borderaxespad=0, labelspacing=0.55
        )

    return inline_svg(draw, width, 4.0 + LINE * count, label)
