"""Chart of the evidence of a shift by round, with that of the control run."""

from dataclasses import dataclass
from math import ceil

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overheard.core.claims import Timeline
from overheard.drawing.chart_frame import ChartFrame
from overheard.drawing.legends import LegendEntry, make_legend
from overheard.drawing.svg import ACCENT, INK, SOFT, inline_svg, name_values
from overheard.findings.number_format import format_number

THRESHOLD_DASHES = (0, (5, 3))
SHIFT_DASHES = (0, (1, 1.6))


@dataclass(frozen=True, slots=True)
class AxisRange:
    """The limits of an axis."""

    low: float
    high: float


def timeline_chart(
    planned: Timeline,
    control: Timeline | None,
    since: int | None,
    axis_range: AxisRange,
    label: str,
) -> Markup:
    """Draw the statistic of a run with its threshold and alarm, and that of its control.

    Args:
        planned: the evidence in the planned run.
        control: the evidence in its control run; None = there is no control run.
        since: the true round of the shift, marked by a vertical line; None = no shift.
        axis_range: the limits of the vertical axis, the same in charts to be compared.
        label: the description of the chart.

    """
    frame = ChartFrame(300.0, 180.0, 46.0, 40.0, 12.0)
    rounds = sorted({*planned.rounds, *(control.rounds if control else ())})

    def draw(figure: Figure) -> None:
        axes = frame.axes(figure)
        if since is not None:
            axes.axvline(since, color=INK, ls=SHIFT_DASHES, lw=1.6)
        if control is not None:
            axes.plot(control.rounds, control.statistic, color=SOFT, lw=1.0)
        if planned.threshold is not None:
            axes.plot(planned.rounds, planned.threshold, color=INK, ls=THRESHOLD_DASHES, lw=1.2)
        (drawn,) = axes.plot(
            planned.rounds, planned.statistic, color=ACCENT, marker="o", ms=3.2
        )
        pairs = zip(planned.rounds, planned.statistic, strict=True)
        name_values(drawn, [f"round {x}: {format_number(y)}" for x, y in pairs])
        _mark_alarm(axes, planned)
        if rounds:
            margin = max(0.4, 0.03 * (rounds[-1] - rounds[0]))
            axes.set_xlim(rounds[0] - margin, rounds[-1] + margin)
            axes.set_xticks(rounds[:: ceil(len(rounds) / 7)])
        axes.set_ylim(axis_range.low, axis_range.high)
        axes.locator_params(axis="y", nbins=5)
        axes.tick_params(axis="y", labelcolor=SOFT, labelsize=11)
        axes.tick_params(axis="x", labelsize=11)
        axes.set_xlabel("round")
        axes.grid(axis="y")

    return inline_svg(draw, frame.width, frame.height, label)


def _mark_alarm(axes: Axes, shifted: Timeline) -> None:
    if shifted.alarm is None:
        return
    value = shifted.statistic[shifted.rounds.index(shifted.alarm)]
    axes.plot([shifted.alarm], [value], "D", color=INK, mfc="none", ms=9, mew=1.6)


def timeline_legend(label: str) -> Markup:
    """Return the legend of the lines and marks in the timelines."""
    return make_legend(
        [
            LegendEntry("planned run", ACCENT, "o", size=3.2),
            LegendEntry("control run", SOFT, width=1.0),
            LegendEntry("true shift", INK, dashes=":", width=1.6),
            LegendEntry("threshold", INK, dashes="--", width=1.2),
            LegendEntry("alarm", INK, "D", None, size=9.0, is_outline=True),
        ],
        label,
    )
