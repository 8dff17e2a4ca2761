"""The ends of intervals stay in order, and are those of Student at other levels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.statistics.estimate import (
    Estimate,
    convert_estimate,
    student_estimate,
    student_quantile,
    widen,
)


def test_quantiles_are_those_of_printed_tables() -> None:
    for degrees, expected in ((1.0, 12.706), (4.0, 2.776), (30.0, 2.042), (None, 1.960)):
        assert student_quantile(0.025, degrees) == pytest.approx(expected, abs=5e-4)


def test_an_interval_of_student_has_the_quantile_times_the_standard_error() -> None:
    estimate = student_estimate(1.0, 0.5, 4.0, "runs")
    assert (estimate.low, estimate.high) == pytest.approx((1 - 1.388, 1 + 1.388), abs=1e-3)
    assert (estimate.basis, estimate.degrees) == ("runs", 4)


def test_ends_at_other_levels_are_those_of_students_distribution() -> None:
    # 4 degrees of freedom: 3.747 at 1 % in a tail, 2.132 at 5 %.
    estimate = student_estimate(1.0, 0.5, 4.0, "runs")
    assert estimate.low_at(0.01) == pytest.approx(1 - 3.747 / 2, abs=1e-3)
    assert estimate.high_at(0.05) == pytest.approx(1 + 2.132 / 2, abs=1e-3)
    assert estimate.high_at(0.025) == pytest.approx(estimate.high)


def test_without_an_interval_there_are_no_ends_at_other_levels() -> None:
    single = Estimate(0.3, None, None)
    assert (single.low_at(0.01), single.high_at(0.01)) == (None, None)
    assert widen(single, Estimate(0.3, 0.1, 0.5)) == single
    assert widen(Estimate(0.3, 0.1, 0.5), single) == Estimate(0.3, 0.1, 0.5)


def test_widening_takes_the_outer_end_on_each_side() -> None:
    one = Estimate(0.5, 0.4, 0.6, "runs", 4.0)
    assert widen(one, Estimate(0.5, 0.45, 0.8)) == Estimate(0.5, 0.4, 0.8, "runs", 4.0)


@given(st.floats(-5, 5), st.floats(-3, 3), st.floats(0, 2), st.floats(0, 2))
def test_a_converted_interval_holds_the_converted_ends(
    factor: float, offset: float, below: float, above: float
) -> None:
    converted = convert_estimate(Estimate(1.0, 1 - below, 1 + above), factor, offset)
    assert converted.low is not None
    assert converted.high is not None
    assert converted.low <= converted.mean <= converted.high
    ends = sorted(factor * end + offset for end in (1 - below, 1 + above))
    assert [converted.low, converted.high] == pytest.approx(ends)
