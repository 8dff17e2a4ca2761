"""Charts of one share against another: curves of errors, histograms, and a frontier."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.charts import DASHES, MARKERS
from overheard.drawing.frames import BLIND_DASHES, Frame, blind_line, list_legend
from overheard.drawing.point_names import NamedDot, write_names
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg
from overheard.findings.names import shortened

ADAPTIVE_DASHES = "--"

MARKS = 6
"""Markers on a line of many points, which would hide it."""


@final
@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart; its place among all names of the legend gives its look."""

    place: int
    x: Sequence[float]
    y: Sequence[float]


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """What stands along an axis, and where it ends; a `low` above `high` turns it around."""

    title: str
    low: float
    high: float


@final
@dataclass(frozen=True, slots=True)
class Trade:
    """How one attack fares against every arm.

    Args:
        place: of the attack among all names of the legend.
        is_adaptive: whether it adapts to the defenses: it is drawn dashed.
        points: one an arm, how much is read and what the model is worth or costs.

    """

    place: int
    is_adaptive: bool
    points: Sequence[NamedDot]


def lines_chart(
    lines: Sequence[ChartLine], blind: ChartLine | None, across: Axis, up: Axis, label: str
) -> Markup:
    """Lines that bear the colours of a `legend_chart`, and what a guesser gets, dashed."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure, across, up)
        if blind is not None:
            axes.plot(blind.x, blind.y, color=INK, ls=BLIND_DASHES, lw=1.3)
        for line in lines:
            axes.plot(
                line.x,
                line.y,
                color=_colour(line.place),
                ls=_dashes(line.place),
                marker=MARKERS[line.place % len(MARKERS)],
                markevery=max(1, len(line.x) // MARKS),
                ms=4.5,
            )

    return inline_svg(draw, _WIDTH, _HEIGHT, label)


def histogram_chart(values: Sequence[float], blind: float, across: Axis, label: str) -> Markup:
    """How many users have which figure, in tenths of the axis; the blind figure is marked."""
    bins, width = 10, (across.high - across.low) / 10
    places = [min(int((value - across.low) / width), bins - 1) for value in values]
    counts = [places.count(number) for number in range(bins)]

    def draw(figure: Figure) -> None:
        axes = _axes(figure, across, Axis("users", 0.0, max(counts) * 1.08))
        starts = [across.low + number * width for number in range(bins)]
        axes.bar(starts, counts, 0.92 * width, align="edge", color=ACCENT)
        axes.axvline(blind, color=INK, ls=BLIND_DASHES, lw=1.3)

    return inline_svg(draw, _WIDTH, _HEIGHT, label)


def frontier_chart(
    trades: Sequence[Trade], blind: float | None, across: Axis, up: Axis, label: str
) -> Markup:
    """What is read against what is kept or sent: the further up and to the left, the better.

    A line joins the points of an attack that no other of its points beats both ways.

    Args:
        trades: one an attack.
        blind: what a guesser reads, drawn upright; None = it is not.
        across: the axis of what is read; backwards where a lower figure reads more.
        up: the axis of what the model is worth, or of what it costs, backwards.
        label: what the chart shows; different for each chart of a page.

    """

    def draw(figure: Figure) -> None:
        axes = _axes(figure, across, up)
        if blind is not None:
            axes.axvline(blind, color=INK, ls=BLIND_DASHES, lw=1.3)
        for trade in trades:
            _draw_trade(axes, trade, across, up)
        write_names(axes, [point for trade in trades for point in trade.points])

    return inline_svg(draw, 400.0, 330.0, label)


def frontier_legend(
    names: Sequence[str], trades: Sequence[Trade], has_blind: bool, label: str
) -> Markup:
    """What the lines of a frontier stand for, one attack a line, in the order of `trades`."""

    def lines() -> list[Line2D]:
        own = [
            Line2D(
                [], [],
                color=_colour(trade.place),
                marker=_marker(trade.place),
                ls=ADAPTIVE_DASHES if trade.is_adaptive else "-",
                ms=5.5,
                lw=1.4,
                label=shortened(name, 60),
            )
            for name, trade in zip(names, trades, strict=True)
        ]  # fmt: skip
        return [*own, blind_line()] if has_blind else own

    return list_legend(lines, len(names) + has_blind, 460.0, label)


def _draw_trade(axes: Axes, trade: Trade, across: Axis, up: Axis) -> None:
    right = 1.0 if across.low < across.high else -1.0
    upward = 1.0 if up.low < up.high else -1.0
    points = sorted(trade.points, key=lambda point: (right * point.x, -upward * point.y))
    best = [
        one
        for number, one in enumerate(points)
        if all(upward * one.y > upward * before.y for before in points[:number])
    ]
    colour, marker = _colour(trade.place), _marker(trade.place)
    axes.plot(
        [point.x for point in points],
        [point.y for point in points],
        marker,
        color=colour,
        ms=5.5,
    )
    axes.plot(
        [point.x for point in best],
        [point.y for point in best],
        color=colour,
        ls=ADAPTIVE_DASHES if trade.is_adaptive else "-",
        lw=1.4,
    )


def _axes(figure: Figure, across: Axis, up: Axis) -> Axes:
    width, height = (72 * size for size in figure.get_size_inches())
    axes = Frame(width, height, 54.0, 42.0, 14.0).axes(figure)
    axes.set_xlim(across.low, across.high)
    axes.set_ylim(up.low, up.high)
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.locator_params(axis="y", nbins=5)
    axes.tick_params(axis="both", labelcolor=SOFT, labelsize=11)
    axes.set_xlabel(across.title)
    axes.set_ylabel(up.title)
    axes.grid()
    return axes


def _colour(place: int) -> str:
    return SERIES[place % len(SERIES)]


def _marker(place: int) -> str:
    """Another marker, too, where the colours begin anew."""
    return MARKERS[(place + place // len(SERIES)) % len(MARKERS)]


def _dashes(place: int) -> str:
    return DASHES[place // len(SERIES) % len(DASHES)]


_WIDTH, _HEIGHT = 300.0, 230.0
