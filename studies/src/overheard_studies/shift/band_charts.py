"""Charts of a value by round over several runs: mean and standard deviation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overheard.drawing.chart_frame import ChartFrame, axis_value
from overheard.drawing.legends import LegendEntry, make_legend
from overheard.drawing.svg import INK, SERIES, SOFT, inline_svg, name_values
from overheard.findings.names import make_printable, shorten

BAND_OPACITY = 0.16
"""Opacity of the band around a line."""

CONTROL_DASHES = (0, (4, 2))

SHIFT_DASHES = (0, (1, 2))


@final
@dataclass(frozen=True, slots=True)
class MeanAndDeviation:
    """The mean of some runs and their standard deviation; None for a single run."""

    mean: float
    deviation: float | None


@final
@dataclass(frozen=True, slots=True)
class BandSeries:
    """One line of a chart by round.

    Args:
        name: in the legend.
        legend_index: index of the name in the legend, from 0.
        points: by round.
        is_control: whether these are control runs without a shift, which are drawn dashed.

    """

    name: str
    legend_index: int
    points: Mapping[int, MeanAndDeviation]
    is_control: bool


@final
@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """One point of a scatter chart.

    Args:
        name: written beside the point.
        x: horizontal coordinate.
        y: vertical coordinate.
        is_control: whether these are control runs without a shift, which are drawn hollow.

    """

    name: str
    x: float
    y: float
    is_control: bool


def bands_chart(bands: Sequence[BandSeries], shift_round: int, label: str) -> Markup:
    """Draw means by round with one standard deviation, and mark the round of the shift.

    Args:
        bands: the lines.
        shift_round: the first round of the shift.
        label: what the chart shows; unique on its page.

    """
    frame = ChartFrame(280.0, 190.0, 48.0, 42.0, 12.0)

    def draw(figure: Figure) -> None:
        axes = frame.axes(figure)
        axes.axvline(shift_round, color=INK, lw=1.3, ls=SHIFT_DASHES)
        for band in bands:
            _draw_band(axes, band)
        rounds = sorted({number for band in bands for number in band.points})
        axes.set_xticks(rounds[:: max(1, ceil(len(rounds) / 6))])
        axes.locator_params(axis="y", nbins=5)
        axes.tick_params(axis="y", labelcolor=SOFT, labelsize=11)
        axes.set_xlabel("round")
        axes.grid(axis="y")

    return inline_svg(draw, frame.width, frame.height, label)


def _draw_band(axes: Axes, band: BandSeries) -> None:
    colour = SERIES[band.legend_index % len(SERIES)]
    rounds = list(band.points)
    means = [spread.mean for spread in band.points.values()]
    axes.plot(
        rounds,
        means,
        color=colour,
        ls=CONTROL_DASHES if band.is_control else "-",
        lw=1.3 if band.is_control else 1.8,
    )
    halves = [spread.deviation for spread in band.points.values()]
    if not band.is_control and None not in halves:
        pairs = [(mean, half or 0.0) for mean, half in zip(means, halves, strict=True)]
        axes.fill_between(
            rounds,
            [mean - half for mean, half in pairs],
            [mean + half for mean, half in pairs],
            color=colour,
            alpha=BAND_OPACITY,
            lw=0,
        )


def bands_legend(names: Sequence[str], label: str) -> Markup:
    """Return the legend of charts by round, one name per line."""
    named = [LegendEntry(name, SERIES[index % len(SERIES)]) for index, name in enumerate(names)]
    return make_legend(
        [
            *named,
            LegendEntry("one standard deviation over runs", SOFT, width=12.0, opacity=0.3),
            LegendEntry("control, no shift", SOFT, dashes="--", width=1.3),
            LegendEntry("round of the shift", INK, dashes=":", width=1.3),
        ],
        label,
    )


def diagonal_chart(
    points: Sequence[ScatterPoint], x_title: str, y_title: str, label: str
) -> Markup:
    """Draw points on two equal scales, with the diagonal on which both values are equal.

    Args:
        points: the points.
        x_title: title of the horizontal axis.
        y_title: title of the vertical axis.
        label: what the chart shows; unique on its page.

    """
    frame = ChartFrame(360.0, 340.0, 52.0, 46.0, 16.0, 0.96)

    def draw(figure: Figure) -> None:
        axes = frame.axes(figure)
        top = max([1.0, *(end for point in points for end in (point.x, point.y))]) * 1.12
        axes.plot([0, top], [0, top], color=INK, lw=1.3, ls=CONTROL_DASHES)
        for point in points:
            (dot,) = axes.plot(
                [point.x],
                [point.y],
                "o",
                color=SERIES[0],
                mfc="none" if point.is_control else SERIES[0],
                ms=7,
            )
            place = f"{axis_value(x_title, point.x)}; {axis_value(y_title, point.y)}"
            name_values(dot, [f"{make_printable(point.name)}: {place}"])
            axes.annotate(
                shorten(point.name, 24),
                (point.x, point.y),
                (6, 4),
                textcoords="offset points",
            )
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.tick_params(axis="both", labelcolor=SOFT, labelsize=11)
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.grid()

    return inline_svg(draw, frame.width, frame.height, label)
