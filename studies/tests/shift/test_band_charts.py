import re

from overheard_studies.shift.band_charts import (
    BandSeries,
    MeanAndDeviation,
    ScatterPoint,
    bands_chart,
    bands_legend,
    diagonal_chart,
)

HOSTILE = "<script>$x$ & co"


def band(is_control: bool, deviation: float | None = 0.5) -> BandSeries:
    return BandSeries(
        HOSTILE,
        1,
        {0: MeanAndDeviation(1.0, deviation), 1: MeanAndDeviation(2.0, deviation)},
        is_control,
    )


def test_a_band_is_drawn_around_runs_that_shift_and_none_around_controls() -> None:
    shifted = bands_chart([band(is_control=False)], 1, "one")
    control = bands_chart([band(is_control=True)], 1, "two")
    assert "fill-opacity" in shifted
    assert "fill-opacity" not in control


def test_names_are_drawn_as_text_only() -> None:
    legend = bands_legend([HOSTILE], "six")
    dots = diagonal_chart([ScatterPoint(HOSTILE, 1.0, 2.0, False)], "across", "up", "seven")
    for chart in (legend, dots):
        assert "<script" not in chart
        assert "&lt;script&gt;$x$ &amp; co" in chart


def test_a_control_is_a_hollow_point() -> None:
    solid = diagonal_chart([ScatterPoint("a", 1.0, 2.0, False)], "across", "up", "nine")
    hollow = diagonal_chart([ScatterPoint("a", 1.0, 2.0, True)], "across", "up", "ten")
    assert solid.count('fill="var(--series-1)"') == 1
    assert 'fill="var(--series-1)"' not in hollow


def test_both_axes_of_the_diagonal_have_the_same_scale() -> None:
    # Ticks of either axis are the same numbers, whatever lies farther out.
    chart = diagonal_chart([ScatterPoint("a", 9.0, 1.0, False)], "across", "up", "eleven")
    ticks = [text for text in re.findall(r">([^<]+)</text>", chart) if text.isdecimal()]
    assert sorted(ticks[: len(ticks) // 2]) == sorted(ticks[len(ticks) // 2 :])
