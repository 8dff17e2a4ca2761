"""A chart of reproduced values beside published ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup
from matplotlib.figure import Figure

from overheard.drawing.chart_frame import ChartFrame, draw_intervals
from overheard.drawing.svg import ACCENT, INK, SOFT, inline_svg, name_values
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number

DIAGONAL_DASHES = (0, (4, 2))

ROOM = 0.06
"""Room around the points, as a share of their range."""


@final
@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A reproduced value and the published one.

    Args:
        name: what was measured.
        published: the value of the paper.
        here: the reproduced value.
        interval: its 95 % interval; None if there is none.

    """

    name: str
    published: float
    here: float
    interval: tuple[float, float] | None


def published_chart(points: Sequence[PublishedPoint], label: str) -> Markup:
    """Draw each reproduced value above the published one, and the line where both are equal.

    Args:
        points: the values, one or more.
        label: what the chart shows; unique on its page.

    """
    frame = ChartFrame(360.0, 340.0, 56.0, 46.0, 16.0, 0.96)
    numbers = [number for one in points for number in (one.published, one.here)]
    numbers += [end for one in points for end in one.interval or ()]
    spread = (max(numbers) - min(numbers)) or abs(numbers[0]) or 1.0
    low, high = min(numbers) - ROOM * spread, max(numbers) + ROOM * spread

    def draw(figure: Figure) -> None:
        axes = frame.axes(figure)
        axes.plot([low, high], [low, high], color=INK, lw=1.3, ls=DIAGONAL_DASHES)
        for one in points:
            if one.interval is not None:
                draw_intervals(axes, [one.published], [one.interval], ACCENT, is_across=False)
            (dot,) = axes.plot([one.published], [one.here], "o", color=ACCENT, ms=6)
            told = f"published {format_number(one.published)}, here {format_number(one.here)}"
            name_values(dot, [f"{make_printable(one.name)}: {told}"])
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.tick_params(axis="both", labelcolor=SOFT, labelsize=11)
        axes.set_xlabel("published")
        axes.set_ylabel("here, with 95 % interval")
        axes.grid()

    return inline_svg(draw, frame.width, frame.height, label)
