"""The charts of the paper: lines, scatter plots of users, and heat maps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg
from overheard.findings.names import shorten
from overheard.findings.number_format import format_number
from overheard.questions.identity.measures import MEASURES
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.values_table import tabulate_values

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
