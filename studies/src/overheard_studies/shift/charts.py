"""The charts of the paper: measures by round."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from markupsafe import Markup

from overheard.drawing.figures import Panel, ReportFigure
from overheard_studies.shift.band_charts import (
    BandSeries,
    MeanAndDeviation,
    bands_chart,
    bands_legend,
)
from overheard_studies.shift.measured import MeasuredSeries, RoundSeries
from overheard_studies.values import ReproducedValue, tabulate_values


def make_bands(
    followed: MeasuredSeries, name: str, legend_index: int
) -> tuple[BandSeries, BandSeries]:
    """Make the line of the runs that shift, and that of their controls.

    Args:
        followed: series that is drawn.
        name: name in the legend.
        legend_index: position of the name in the legend, from 0.

    """
    return (
        BandSeries(name, legend_index, measure_spreads(followed.shifted), is_control=False),
        BandSeries(name, legend_index, measure_spreads(followed.control), is_control=True),
    )


def bands_figure(
    title: str,
    panels: Sequence[tuple[str, Mapping[str, MeasuredSeries]]],
    values: Sequence[ReproducedValue],
) -> ReportFigure:
    """Draw charts by round, each with a heading, with the same line names in all.

    Args:
        title: title of the figure.
        panels: heading of each chart, and its series by name in the legend.
        values: values in the table.

    """
    names = list(dict.fromkeys(name for _, lines in panels for name in lines))
    return ReportFigure(
        title,
        "Mean over runs, with a band of one standard deviation. Dashed lines: the control, in "
        "which as many examples are exchanged at the same round without a shift.",
        bands_legend(names, f"Legend: {title}"),
        tuple(
            Panel(heading, _chart(lines, names, f"{title}: {heading}"))
            for heading, lines in panels
        ),
        tabulate_values(f"Divergences: {title}", values),
        True,
    )


def _chart(lines: Mapping[str, MeasuredSeries], names: Sequence[str], label: str) -> Markup:
    bands = [
        band
        for name, followed in lines.items()
        for band in make_bands(followed, name, names.index(name))
    ]
    since = next(followed.shift_round for followed in lines.values())
    return bands_chart(bands, since, label)


def measure_spreads(runs: Sequence[RoundSeries]) -> dict[int, MeanAndDeviation]:
    """Compute mean and standard deviation over runs, at each measured round."""
    spread_by_round = {}
    for number in sorted({number for run in runs for number in run}):
        values = [run[number] for run in runs if number in run]
        spread_by_round[number] = MeanAndDeviation(
            fmean(values), stdev(values) if len(values) > 1 else None
        )
    return spread_by_round


def normalize_series(followed: MeasuredSeries) -> MeasuredSeries:
    """Scale every run to 0..1 by its own extremes, and its control by the same ones."""
    pairs = [
        _scaled(shifted, control)
        for shifted, control in zip(followed.shifted, followed.control, strict=True)
    ]
    return MeasuredSeries(
        followed.measure,
        followed.shift_round,
        tuple(shifted for shifted, _ in pairs),
        tuple(control for _, control in pairs),
    )


def _scaled(shifted: RoundSeries, control: RoundSeries) -> tuple[RoundSeries, RoundSeries]:
    low, high = min(shifted.values(), default=0.0), max(shifted.values(), default=1.0)
    width = high - low or 1.0
    return (
        {number: (value - low) / width for number, value in shifted.items()},
        {number: (value - low) / width for number, value in control.items()},
    )
