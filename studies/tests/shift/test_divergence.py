import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import all_hold, any_holds, is_above, negate
from overheard_studies.shift.measured import (
    OUTLIER_DEVIATION,
    Divergence,
    MeasuredSeries,
    mean_over_runs,
    mean_within_runs,
    measure_divergence,
    subtract_runs,
)
from overheard_studies.shift.setting import LOSS

STRAIGHT = {number: float(number) for number in range(6)}


def make_divergence(shifted: tuple[float, ...], control: tuple[float, ...]) -> Divergence:
    return Divergence(shifted, control, (0.0,) * len(control), shifted, control)


def test_a_divergence_is_measured_only_in_the_round_of_the_shift() -> None:
    # The line through 0..4 gives 5 at round 5; 8 diverges by 3. Round 6 is ignored.
    run = {**STRAIGHT, 5: 8.0, 6: 99.0}
    measured = measure_divergence(MeasuredSeries(LOSS, 5, (run,), (STRAIGHT,)))
    assert measured.shifted == (pytest.approx(3.0),)
    assert measured.control == (pytest.approx(0.0, abs=1e-9),)


def test_the_outlier_threshold_is_students_with_the_residual_degrees_of_freedom() -> None:
    # Five rounds less two for the line: 3 degrees, 97.5 % at 3.182.
    assert pytest.approx(3.182, abs=1e-3) == OUTLIER_DEVIATION


def test_a_run_with_too_few_rounds_counts_in_no_mean() -> None:
    measured = measure_divergence(
        MeasuredSeries(LOSS, 5, ({5: 1.0}, {**STRAIGHT, 5: 8.0}), ({5: 1.0}, STRAIGHT))
    )
    assert measured.shifted[0] is None
    assert measured.over_control is not None
    assert measured.over_control.mean == pytest.approx(3.0)
    assert measured.over_control.low is None


def test_means_over_runs_have_students_interval() -> None:
    # 1, 2, 3: mean 2, deviation 1, 4.303 * 1 / sqrt(3) = 2.484.
    mean = mean_over_runs((1.0, 2.0, None, 3.0))
    assert mean is not None
    assert (mean.mean, mean.low, mean.high) == (
        2.0,
        pytest.approx(-0.484, abs=1e-3),
        pytest.approx(4.484, abs=1e-3),
    )


def test_no_measured_run_has_no_mean_and_one_run_no_interval() -> None:
    assert mean_over_runs((None, None)) is None
    assert mean_over_runs((2.0,)) == Estimate(2.0, None, None)


def test_a_shift_shows_if_every_run_diverges_more_than_its_control() -> None:
    assert make_divergence((5.0, 5.1, 4.9), (1.0, 1.1, 1.0)).shows_shift == "yes"
    assert make_divergence((5.0, 5.1, 4.9), (1.0, 1.1, 1.0)).hides_shift == "no"


def test_runs_like_their_controls_do_not_show_a_shift() -> None:
    no_shift = make_divergence((1.0, 1.1, 0.9), (1.1, 1.0, 1.1))
    assert no_shift.shows_shift == "undecided"
    # All deviations lie near 1, far below the outlier's 3.
    assert no_shift.hides_shift == "yes"


def test_few_runs_with_an_outlier_deviation_leave_silence_undecided() -> None:
    assert make_divergence((5.0, 1.0), (1.0, 5.0)).hides_shift == "undecided"


def test_a_signal_is_what_exceeds_the_control_in_standard_deviations_of_the_controls() -> None:
    # Controls 1 and 3 have the standard deviation 2 ** 0.5.
    assert make_divergence((5.0, 5.0), (1.0, 3.0)).signals == pytest.approx((8**0.5, 2**0.5))
    assert make_divergence((5.0,), (1.0,)).signals == (None,)


def test_most_of_a_divergence_is_of_the_shift_if_it_exceeds_the_control_twice() -> None:
    effects = [make_divergence((size, size), (1.0, 1.1)) for size in (3.0, 1.9)]
    means = [one.over_two_controls for one in effects]
    assert [mean.mean for mean in means if mean] == pytest.approx([0.9, -0.2])


def test_a_measure_closer_to_its_trend_than_the_control_shows_no_shift() -> None:
    assert make_divergence((1.0, 1.1, 0.9), (5.0, 5.1, 5.0)).shows_shift == "no"


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(-5, 5))
def test_an_interval_that_contains_the_bound_is_undecided(
    low: float, width: float, bound: float
) -> None:
    holds = is_above(Estimate(low + width / 2, low, low + width), bound)
    assert holds == ("yes" if low > bound else "no" if low + width <= bound else "undecided")


def test_an_exchange_breaks_the_trend_if_the_control_diverges_more_than_before() -> None:
    # Rounds 5, 6 and 7 are on the line through those before; round 8 diverges by 1.
    line = {number: float(number) for number in range(8)}
    swapped = ({**line, 8: 9.0}, {**line, 8: 9.1})
    measured = measure_divergence(MeasuredSeries(LOSS, 8, swapped, swapped))
    assert measured.baseline == (pytest.approx(0.0, abs=1e-9),) * 2
    assert is_above(measured.control_over_baseline, 0.0) == "yes"
    still = ({**line, 8: 8.0}, {**line, 8: 8.0})
    assert (
        is_above(
            measure_divergence(MeasuredSeries(LOSS, 8, still, still)).control_over_baseline,
            1e-6,
        )
        == "no"
    )


def test_without_an_interval_nothing_is_decided() -> None:
    assert is_above(Estimate(9.0, None, None), 0.0) == "undecided"
    assert is_above(None, 0.0) == "undecided"


def test_all_hold_only_if_each_does_and_any_if_one_does() -> None:
    assert all_hold(["yes", "yes"]) == "yes"
    assert all_hold(["yes", "undecided"]) == "undecided"
    assert all_hold(["yes", "undecided", "no"]) == "no"
    assert any_holds(["no", "yes"]) == "yes"
    assert any_holds(["no", "undecided"]) == "undecided"
    assert any_holds(["no", "no"]) == "no"
    assert (negate("yes"), negate("no"), negate("undecided")) == (
        "no",
        "yes",
        "undecided",
    )
    assert (all_hold([]), any_holds([])) == ("undecided", "undecided")


def test_a_missing_value_makes_difference_and_mean_missing() -> None:
    assert subtract_runs((3.0, None, 1.0), (1.0, 1.0, None)) == (2.0, None, None)
    assert mean_within_runs([(3.0, None), (1.0, 1.0)]) == (2.0, None)
