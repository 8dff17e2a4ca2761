"""Charts of two values against each other: curves, histograms and trade-offs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overheard.drawing.chart_frame import GUESS_DASHES, ChartFrame, axis_value
from overheard.drawing.charts import DASHES, MARKERS
from overheard.drawing.legends import Dashes, LegendEntry, guess_entry, make_legend
from overheard.drawing.point_names import NamedPoint, write_names
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg, name_values
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number

ADAPTIVE_DASHES: Dashes = "--"

MAX_MARKERS = 6
"""Most markers on a line: more would hide it."""


@final
@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart.

    Args:
        legend_index: index of its name in the legend, which determines its style.
        x: horizontal places.
        y: vertical places.
        name: named with each value that is looked at; "" = none.

    """

    legend_index: int
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """An axis, which always rises to the right or upwards.

    Args:
        title: with the unit.
        low: the left or lower end.
        high: the right or upper end.
        is_less_better: whether smaller values are better for the federation.

    """

    title: str
    low: float
    high: float
    is_less_better: bool = False


@final
@dataclass(frozen=True, slots=True)
class TradeoffSeries:
    """The trade-off of every arm under one attack.

    Args:
        legend_index: index of the attack in the legend.
        is_adaptive: whether it adapts to the defenses; it is then drawn dashed.
        points: one per arm: leakage, and accuracy or cost.

    """

    legend_index: int
    is_adaptive: bool
    points: Sequence[NamedPoint]


def lines_chart(
    lines: Sequence[ChartLine],
    uninformed: ChartLine | None,
    x_axis: Axis,
    y_axis: Axis,
    label: str,
) -> Markup:
    """Draw lines in the colours of a `legend_chart`, and the uninformed guess as dashes."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure, x_axis, y_axis)
        if uninformed is not None:
            axes.plot(uninformed.x, uninformed.y, color=INK, ls=GUESS_DASHES, lw=1.3)
        for line in lines:
            pitch = max(1, len(line.x) // MAX_MARKERS)
            (drawn,) = axes.plot(
                line.x,
                line.y,
                color=_colour(line.legend_index),
                ls=_dashes(line.legend_index),
                marker=MARKERS[line.legend_index % len(MARKERS)],
                markevery=pitch,
                ms=4.5,
            )
            places = zip(line.x[::pitch], line.y[::pitch], strict=True)
            name = f"{make_printable(line.name)}: " if line.name else ""
            texts = [f"{name}{_place_text(x, y, x_axis, y_axis)}" for x, y in places]
            name_values(drawn, texts)

    return inline_svg(draw, _WIDTH, _HEIGHT, label)


def histogram_chart(
    values: Sequence[float], uninformed: float, x_axis: Axis, label: str
) -> Markup:
    """Draw a histogram of users in ten bins, and mark the value of the uninformed guess."""
    bins, width = 10, (x_axis.high - x_axis.low) / 10
    places = [min(int((value - x_axis.low) / width), bins - 1) for value in values]
    counts = [places.count(number) for number in range(bins)]

    def draw(figure: Figure) -> None:
        axes = _axes(figure, x_axis, Axis("users", 0.0, max(counts) * 1.08))
        starts = [x_axis.low + number * width for number in range(bins)]
        bars = axes.bar(starts, counts, 0.92 * width, align="edge", color=ACCENT)
        for bar, start, count in zip(bars, starts, counts, strict=True):
            ends = f"{format_number(start)} to {format_number(start + width)}"
            name_values(bar, [f"{x_axis.title}: {ends}; users: {count}"])
        axes.axvline(uninformed, color=INK, ls=GUESS_DASHES, lw=1.3)

    return inline_svg(draw, _WIDTH, _HEIGHT, label)


def frontier_chart(
    tradeoffs: Sequence[TradeoffSeries],
    uninformed: float | None,
    x_axis: Axis,
    y_axis: Axis,
    label: str,
) -> Markup:
    """Draw leakage against accuracy or bytes sent, with the Pareto front of each attack.

    Args:
        tradeoffs: one per attack.
        uninformed: leakage of an uninformed guess, drawn as a vertical line; None = not
            drawn.
        x_axis: the leakage axis.
        y_axis: the axis of accuracy, or of a cost.
        label: what the chart shows; unique on its page.

    """

    def draw(figure: Figure) -> None:
        axes = _axes(figure, x_axis, y_axis)
        if uninformed is not None:
            axes.axvline(uninformed, color=INK, ls=GUESS_DASHES, lw=1.3)
        for tradeoff in tradeoffs:
            _draw_tradeoff(axes, tradeoff, x_axis, y_axis)
        write_names(axes, [point for tradeoff in tradeoffs for point in tradeoff.points])

    return inline_svg(draw, 400.0, 330.0, label)


def frontier_legend(
    names: Sequence[str], tradeoffs: Sequence[TradeoffSeries], has_blind: bool, label: str
) -> Markup:
    """Return the legend of a trade-off chart, one attack per line, in order of `tradeoffs`."""
    named = [
        LegendEntry(
            name,
            _colour(tradeoff.legend_index),
            _marker(tradeoff.legend_index),
            ADAPTIVE_DASHES if tradeoff.is_adaptive else "-",
            1.4,
        )
        for name, tradeoff in zip(names, tradeoffs, strict=True)
    ]
    return make_legend([*named, *([guess_entry()] if has_blind else [])], label)


def _draw_tradeoff(axes: Axes, tradeoff: TradeoffSeries, x_axis: Axis, y_axis: Axis) -> None:
    right = 1.0 if x_axis.is_less_better else -1.0
    upward = -1.0 if y_axis.is_less_better else 1.0
    points = sorted(tradeoff.points, key=lambda point: (right * point.x, -upward * point.y))
    best = [
        one
        for number, one in enumerate(points)
        if all(upward * one.y > upward * before.y for before in points[:number])
    ]
    colour, marker = _colour(tradeoff.legend_index), _marker(tradeoff.legend_index)
    (drawn,) = axes.plot(
        [point.x for point in points],
        [point.y for point in points],
        marker,
        color=colour,
        ms=5.5,
    )
    name_values(
        drawn,
        [
            f"{make_printable(one.full_name or one.name)}: "
            f"{_place_text(one.x, one.y, x_axis, y_axis)}"
            for one in points
        ],
    )
    axes.plot(
        [point.x for point in best],
        [point.y for point in best],
        color=colour,
        ls=ADAPTIVE_DASHES if tradeoff.is_adaptive else "-",
        lw=1.4,
    )


def _place_text(x: float, y: float, x_axis: Axis, y_axis: Axis) -> str:
    """Return the place of a mark in words."""
    return f"{axis_value(x_axis.title, x)}; {axis_value(y_axis.title, y)}"


def _axes(figure: Figure, x_axis: Axis, y_axis: Axis) -> Axes:
    width, height = (72 * size for size in figure.get_size_inches())
    axes = ChartFrame(width, height, 54.0, 42.0, 14.0).axes(figure)
    axes.set_xlim(x_axis.low, x_axis.high)
    axes.set_ylim(y_axis.low, y_axis.high)
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.locator_params(axis="y", nbins=5)
    axes.tick_params(axis="both", labelcolor=SOFT, labelsize=11)
    axes.set_xlabel(x_axis.title)
    axes.set_ylabel(y_axis.title)
    axes.grid()
    return axes


def _colour(place: int) -> str:
    return SERIES[place % len(SERIES)]


def _marker(place: int) -> str:
    """Return a marker that differs among lines of the same colour."""
    return MARKERS[(place + place // len(SERIES)) % len(MARKERS)]


def _dashes(place: int) -> str:
    return DASHES[place // len(SERIES) % len(DASHES)]


_WIDTH, _HEIGHT = 300.0, 230.0
