"""The charts of the paper: lines, scatter plots of users, heat maps, and trade-offs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import (
    Axis,
    ChartLine,
    TradeoffSeries,
    frontier_chart,
    frontier_legend,
    lines_chart,
)
from overheard.drawing.point_names import NamedPoint
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg
from overheard.findings.names import make_printable, shorten
from overheard.findings.number_format import format_number
from overheard.questions.identity.measures import MEASURES
from overheard_studies.values import ReproducedValue, tabulate_values

CELL_SIZE = 34.0
"""Width and height of a heat map's cell, in pixels."""


@final
@dataclass(frozen=True, slots=True)
class ValueSeries:
    """A line through some values, in order.

    Args:
        name: name in the legend.
        x: x-coordinate of each value.
        values: values; those that were not measured are left out.

    """

    name: str
    x: Sequence[int]
    values: Sequence[ReproducedValue]


def series_figure(
    title: str, lines: Sequence[ValueSeries], across: str, score: str
) -> ReportFigure:
    """Draw values against a number in one chart.

    Args:
        title: title of the figure.
        lines: lines that are drawn.
        across: label of the x-axis.
        score: name of the score, one of the identity scores.

    """
    measure = MEASURES[score]
    chart_lines = []
    for index, line in enumerate(lines):
        points = [
            (float(x), measure.factor * one.value)
            for x, one in zip(line.x, line.values, strict=True)
            if one.value is not None
        ]
        chart_lines.append(
            ChartLine(index, [x for x, _ in points], [y for _, y in points], line.name)
        )
    ends = [x for line in chart_lines for x in line.x] or [0.0, 1.0]
    tops = [y for line in chart_lines for y in line.y] or [1.0]
    margin = 0.03 * (max(ends) - min(ends)) or 0.5
    return ReportFigure(
        title,
        "Means over users and seeds. The table gives their intervals.",
        legend_chart([line.name for line in lines], False, f"Legend: {title}"),
        (
            Panel(
                "",
                lines_chart(
                    chart_lines,
                    None,
                    Axis(across, min(ends) - margin, max(ends) + margin),
                    Axis(
                        f"{measure.title}{measure.unit and ','}{measure.unit}",
                        0.0,
                        1.08 * max(tops),
                    ),
                    title,
                ),
            ),
        ),
        tabulate_values(title, [one for line in lines for one in line.values]),
        True,
    )


def scatter_chart(
    x: Float[np.ndarray, " dots"],
    y: Float[np.ndarray, " dots"],
    across: str,
    up: str,
    label: str,
) -> Markup:
    """Draw one dot per user on equal scales, and the line of equal values."""
    width, height, left, bottom = 360.0, 340.0, 56.0, 46.0

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_axes(
            (left / width, bottom / height, (width - left - 16) / width, 0.96 - bottom / height)
        )
        low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
        margin = 0.05 * (high - low) or 0.05
        ends = [low - margin, high + margin]
        axes.plot(ends, ends, color=INK, lw=1.3, ls="--")
        axes.plot(x, y, "o", color=SERIES[0], ms=5, alpha=0.7)
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.tick_params(axis="both", labelcolor=SOFT, labelsize=11)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid()

    return inline_svg(draw, width, height, label)


def heat_map(
    values: Float[np.ndarray, "lines columns"],
    lines: Sequence[str],
    columns: Sequence[str],
    titles: tuple[str, str],
    label: str,
) -> Markup:
    """Draw a heat map with its values written into the cells.

    Args:
        values: values of the cells, 0 or more.
        lines: names of the rows, from the top.
        columns: names of the columns, from the left.
        titles: titles of the vertical and of the horizontal axis.
        label: description of the chart, unique on the page.

    """
    left, bottom = 84.0, 84.0
    width = left + 8 + CELL_SIZE * len(columns)
    height = bottom + 8 + CELL_SIZE * len(lines)
    top = float(np.nanmax(values, initial=0.0)) or 1.0

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_axes(
            (
                left / width,
                bottom / height,
                CELL_SIZE * len(columns) / width,
                CELL_SIZE * len(lines) / height,
            )
        )
        for line, column in np.argwhere(np.isfinite(values)):
            value = float(values[line, column])
            axes.add_patch(
                Rectangle((column, line), 1, 1, color=ACCENT, alpha=0.6 * value / top, lw=0)
            )
            axes.text(
                column + 0.5,
                line + 0.5,
                format_number(value),
                ha="center",
                va="center",
                fontsize=9,
            )
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(lines), 0)
        axes.set_xticks(
            np.arange(len(columns)) + 0.5,
            [shorten(name, 10) for name in columns],
            rotation=60,
            fontsize=10,
        )
        axes.set_yticks(
            np.arange(len(lines)) + 0.5, [shorten(name, 10) for name in lines], fontsize=10
        )
        axes.set_ylabel(titles[0])
        axes.set_xlabel(titles[1])

    return inline_svg(draw, width, height, label)


ADAPTIVE_SUFFIX = "_adaptive"
"""Suffix of the names of attackers that know the defense."""


@final
@dataclass(frozen=True, slots=True)
class TradeOffPoint:
    """The result of one attacker on one arm.

    Args:
        arm: name of the arm.
        precision: average precision, 0..1.
        utility: utility of the model; 1 = as without defenses.

    """

    arm: str
    precision: float
    utility: float


def frontier_figure(title: str, points: Mapping[str, Sequence[TradeOffPoint]]) -> ReportFigure:
    """Draw the results of every attacker on all arms; undominated arms are labelled.

    Args:
        title: title of the figure.
        points: results by attacker. An adaptive attacker has the name of a non-adaptive one
            with the suffix `ADAPTIVE_SUFFIX`, and shares its panel.

    """
    every = [point for results in points.values() for point in results]
    best = undominated_arms(every)
    most = max(p.precision for p in every)
    x_axis = Axis("average precision per user, %", 0.0, 108 * most, is_less_better=True)
    low, high = min(0.95, *(p.utility for p in every)), max(1.0, *(p.utility for p in every))
    margin = 0.1 * (high - low)
    y_axis = Axis("utility, %", 100 * (low - margin), 100 * (high + margin))
    groups: dict[str, list[TradeoffSeries]] = {}
    for name, results in points.items():
        is_adaptive = name.endswith(ADAPTIVE_SUFFIX)
        named = [
            NamedPoint(
                point.arm if point.arm in best and point == _strongest(points, point) else "",
                100 * point.precision,
                100 * point.utility,
            )
            for point in results
        ]
        group = groups.setdefault(name.removesuffix(ADAPTIVE_SUFFIX), [])
        group.append(TradeoffSeries(int(is_adaptive), is_adaptive, named))
    return ReportFigure(
        title,
        "Points further left leak less; points further up have higher utility. Against the "
        "strongest attacker on each arm, these arms are not dominated: "
        f"{', '.join(map(make_printable, best))}. Their labels are at the results of that "
        "attacker.",
        frontier_legend(
            ["does not know the defense", "adapts to the defense"],
            [TradeoffSeries(0, False, []), TradeoffSeries(1, True, [])],
            False,
            f"Legend: {title}",
        ),
        tuple(
            Panel(name, frontier_chart(trades, None, x_axis, y_axis, f"{title}, {name}"))
            for name, trades in groups.items()
        ),
        ReportTable(
            title,
            ("Arm", "Attacker", "Average precision", "Utility", "Not dominated"),
            tuple(
                (
                    make_printable(point.arm),
                    name.replace("_", " "),
                    format_number(point.precision),
                    format_number(point.utility),
                    "yes" if point.arm in best else "no",
                )
                for name, results in points.items()
                for point in results
            ),
            2,
        ),
        True,
    )


def undominated_arms(points: Sequence[TradeOffPoint]) -> tuple[str, ...]:
    """Return the arms that no other arm dominates, under the strongest attacker on each."""
    strongest: dict[str, TradeOffPoint] = {}
    for point in points:
        previous = strongest.get(point.arm)
        if previous is None or point.precision > previous.precision:
            strongest[point.arm] = point
    return tuple(
        arm
        for arm, point in strongest.items()
        if not any(_dominates(other, point) for other in strongest.values())
    )


def _dominates(other: TradeOffPoint, point: TradeOffPoint) -> bool:
    no_worse = other.precision <= point.precision and other.utility >= point.utility
    return no_worse and (other.precision < point.precision or other.utility > point.utility)


def _strongest(
    points: Mapping[str, Sequence[TradeOffPoint]], chosen: TradeOffPoint
) -> TradeOffPoint:
    same_arm = [
        point for results in points.values() for point in results if point.arm == chosen.arm
    ]
    return max(same_arm, key=lambda point: point.precision)
