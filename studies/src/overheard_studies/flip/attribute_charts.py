"""The figure of the success rates of each quadruple's tests."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from matplotlib.figure import Figure as Canvas

from overheard.drawing.chart_frame import GUESS_DASHES
from overheard.drawing.figures import Panel, ReportFigure
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg
from overheard_studies.flip.attribute_tests import (
    AFFINITY,
    IMAGES,
    IMAGES_OF_B,
    OTHER_START,
    SAMPLES,
    UPDATES,
)
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.values_table import tabulate_values

TEST_LABELS: Mapping[str, str] = {
    SAMPLES: "samples",
    OTHER_START: "samples, other start",
    UPDATES.format("flip"): "trained models",
    AFFINITY.format("flip"): "affinity, trained models",
    IMAGES: "raw images",
    IMAGES_OF_B: "raw images of B",
    UPDATES.format("fedavg"): "FedAvg updates",
    AFFINITY.format("fedavg"): "affinity, FedAvg",
}
"""Labels of the drawn tests, from the top: FLiP first, then controls."""

CONTROLS = (IMAGES, IMAGES_OF_B, UPDATES.format("fedavg"), AFFINITY.format("fedavg"))
"""The tests that are drawn in another colour."""

LINE_HEIGHT = 24.0
"""Distance between two lines in pixels."""


def attribute_figure(
    title: str, panels: Mapping[str, Sequence[ReproducedValue]]
) -> ReportFigure:
    """Draw a chart for each row of the table, and one for all rows.

    Args:
        title: title of the figure.
        panels: values of each chart, by its heading; tests that are not drawn are left out.

    """
    return ReportFigure(
        title,
        "Share of correct decisions between B1 and B2, in %. Dots: reproduced, with 95 % "
        "intervals. Plus signs: published. Dashed line: a guess. Raw images reach about 75 % "
        "at best, as those of A carry no information. Controls have another colour.",
        None,
        tuple(
            Panel(heading, _chart(chart_values, f"{title}: {heading}"))
            for heading, chart_values in panels.items()
        ),
        tabulate_values(
            title, [one for chart_values in panels.values() for one in chart_values]
        ),
        True,
    )


def _chart(values: Sequence[ReproducedValue], label: str) -> Markup:
    by_test = {one.name.partition("_")[2]: one for one in values}
    width, height, left, bottom = 330.0, 40.0 + LINE_HEIGHT * len(TEST_LABELS), 132.0, 30.0

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_axes(
            (left / width, bottom / height, (width - left - 12) / width, 1 - bottom / height)
        )
        axes.axvline(50, color=INK, ls=GUESS_DASHES, lw=1.3)
        for index, test in enumerate(TEST_LABELS):
            one = by_test[test]
            colour = SERIES[1] if test in CONTROLS else ACCENT
            if one.value is not None:
                if one.low is not None and one.high is not None:
                    ends = [100 * one.low, 100 * one.high]
                    axes.plot(ends, [index] * 2, color=colour, lw=3)
                axes.plot([100 * one.value], [index], "o", color=colour, ms=7)
            if one.published is not None:
                axes.plot([100 * one.published], [index], "+", color=SOFT, ms=10, mew=1.8)
        axes.set_yticks(range(len(TEST_LABELS)), list(TEST_LABELS.values()))
        axes.set_ylim(len(TEST_LABELS) - 0.4, -0.6)
        axes.set_xlim(0, 102)
        axes.tick_params(axis="y", length=0, labelsize=11)
        axes.tick_params(axis="x", labelsize=11)
        axes.grid(axis="x")

    return inline_svg(draw, width, height, label)
