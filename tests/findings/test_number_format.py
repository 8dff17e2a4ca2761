"""Number formats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.number_format import (
    BARE_NUMBER,
    Measure,
    format_bytes,
    format_duration,
    format_number,
)
from overheard.statistics.estimate import Estimate


def test_formats_values_in_the_unit_of_the_measure() -> None:
    points = Measure("Error", "\u00a0points", 100.0)
    assert points.format(0.042) == "4.2\u00a0points"
    assert points.format_interval(Estimate(0.04, 0.031, 0.052)) == "3.1 to 5.2\u00a0points"
    assert BARE_NUMBER.format(0.25) == "0.25"


@given(st.floats(-1e6, 1e6))
def test_formatted_numbers_are_close_to_the_value(value: float) -> None:
    written = float(format_number(value).replace("−", "-"))
    assert abs(written - value) <= max(0.06 * abs(value), 5e-7)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**20, "1.0 MiB"),
        (5 * 2**50, "5120 TiB"),
    ],
)
def test_bytes_use_the_largest_unit_that_fits(count: int, words: str) -> None:
    assert format_bytes(float(count)).replace("\u00a0", " ") == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.50 s"), (59, "59 s"), (60, "1.0 min"), (7200, "2.0 h")]
)
def test_times_use_the_largest_unit_that_fits(seconds: float, words: str) -> None:
    assert format_duration(float(seconds)).replace("\u00a0", " ") == words


def test_intervals_of_percentages_end_at_0_and_100_and_gains_do_not() -> None:
    share, wide = Measure("Share", " %", 100.0), Estimate(0.4, -0.8, 1.6)
    assert share.format_interval(wide) == "0 to 100 %"
    assert share.format_gain_interval(wide) == "−80 to 160 %"
    assert Measure("Rounds", " rounds", 1.0).format_interval(wide) == "−0.80 to 1.6 rounds"
    assert Measure("Error", " points", 100.0, 0.0).format_interval(wide) == "0 to 160 points"


def test_a_cut_interval_ends_where_its_score_does() -> None:
    # A score from 0 to 2, shown as half of it in percent.
    distance, wide = Measure("L1", " %", 50.0), Estimate(1.9, -0.1, 2.5, "runs", 4.0)
    assert distance.cut(wide) == Estimate(1.9, 0.0, 2.0, "runs", 4.0)
    inside = Estimate(1.0, 0.5, 1.5)
    assert distance.cut(inside) == inside
    assert distance.cut(Estimate(1.0, None, None)) == Estimate(1.0, None, None)
