import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.papers.shift.divergence import (
    Divergence,
    all_hold,
    any_holds,
    divergence,
    is_above,
    less,
    mean_by_run,
    mean_of,
    opposite,
)
from overheard.papers.shift.followed import Followed
from overheard.papers.shift.measure import LOSS
from overheard.statistics.estimate import Estimate

STRAIGHT = {number: float(number) for number in range(6)}


def of(shifted: tuple[float, ...], control: tuple[float, ...]) -> Divergence:
    return Divergence(shifted, control, (0.0,) * len(control), shifted, control, 3.0)


def test_a_divergence_is_told_in_the_round_of_the_shift_and_in_no_other() -> None:
    # The line through 0..4 gives 5 at round 5; 8 is 3 off. Round 6 is no matter.
    run = {**STRAIGHT, 5: 8.0, 6: 99.0}
    told = divergence(Followed(LOSS, 5, (run,), (STRAIGHT,)))
    assert told.shifted == (pytest.approx(3.0),)
    assert told.control == (pytest.approx(0.0, abs=1e-9),)


def test_an_outlier_is_students_with_the_freedom_that_the_line_leaves() -> None:
    # Five rounds less two for the line: 3 degrees, 97.5 % at 3.182.
    told = divergence(Followed(LOSS, 5, (STRAIGHT,), (STRAIGHT,)))
    assert told.outlier == pytest.approx(3.182, abs=1e-3)


def test_a_run_that_tells_too_few_rounds_counts_in_no_mean() -> None:
    told = divergence(Followed(LOSS, 5, ({5: 1.0}, {**STRAIGHT, 5: 8.0}), ({5: 1.0}, STRAIGHT)))
    assert told.shifted[0] is None
    assert told.over_control is not None
    assert told.over_control.mean == pytest.approx(3.0)
    assert told.over_control.low is None


def test_means_over_runs_have_students_interval() -> None:
    # 1, 2, 3: mean 2, deviation 1, 4.303 * 1 / sqrt(3) = 2.484.
    told = mean_by_run((1.0, 2.0, None, 3.0))
    assert told is not None
    assert (told.mean, told.low, told.high) == (
        2.0,
        pytest.approx(-0.484, abs=1e-3),
        pytest.approx(4.484, abs=1e-3),
    )


def test_nothing_told_has_no_mean_and_one_run_no_interval() -> None:
    assert mean_by_run((None, None)) is None
    assert mean_by_run((2.0,)) == Estimate(2.0, None, None)


def test_a_shift_shows_where_every_run_is_farther_off_than_its_control() -> None:
    assert of((5.0, 5.1, 4.9), (1.0, 1.1, 1.0)).shows == "yes"
    assert of((5.0, 5.1, 4.9), (1.0, 1.1, 1.0)).is_silent == "no"


def test_runs_like_their_controls_do_not_show_a_shift() -> None:
    alike = of((1.0, 1.1, 0.9), (1.1, 1.0, 1.1))
    assert alike.shows == "undecided"
    # All deviations lie near 1, far below the outlier's 3.
    assert alike.is_silent == "yes"


def test_a_deviation_like_an_outliers_is_not_called_silent_for_want_of_runs() -> None:
    assert of((5.0, 1.0), (1.0, 5.0)).is_silent == "undecided"


def test_a_measure_nearer_to_its_trend_than_the_control_shows_no_shift() -> None:
    assert of((1.0, 1.1, 0.9), (5.0, 5.1, 5.0)).shows == "no"


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(-5, 5))
def test_an_interval_that_holds_the_bar_leaves_it_undecided(
    low: float, width: float, bar: float
) -> None:
    holds = is_above(Estimate(low + width / 2, low, low + width), bar)
    assert holds == ("yes" if low > bar else "no" if low + width <= bar else "undecided")


def test_an_exchange_breaks_the_trend_where_the_control_is_off_it_as_never_before() -> None:
    # Rounds 5, 6 and 7 lie on the line through those before; round 8 is 1 off it.
    calm = {number: float(number) for number in range(8)}
    swapped = ({**calm, 8: 9.0}, {**calm, 8: 9.1})
    told = divergence(Followed(LOSS, 8, swapped, swapped))
    assert told.before == (pytest.approx(0.0, abs=1e-9),) * 2
    assert is_above(told.over_calm, 0.0) == "yes"
    still = ({**calm, 8: 8.0}, {**calm, 8: 8.0})
    assert is_above(divergence(Followed(LOSS, 8, still, still)).over_calm, 1e-6) == "no"


def test_without_an_interval_nothing_is_decided() -> None:
    assert is_above(Estimate(9.0, None, None), 0.0) == "undecided"
    assert is_above(None, 0.0) == "undecided"


def test_all_hold_only_if_each_does_and_some_if_one_does() -> None:
    assert all_hold(["yes", "yes"]) == "yes"
    assert all_hold(["yes", "undecided"]) == "undecided"
    assert all_hold(["yes", "undecided", "no"]) == "no"
    assert any_holds(["no", "yes"]) == "yes"
    assert any_holds(["no", "undecided"]) == "undecided"
    assert any_holds(["no", "no"]) == "no"
    assert (opposite("yes"), opposite("no"), opposite("undecided")) == (
        "no",
        "yes",
        "undecided",
    )
    assert (all_hold([]), any_holds([])) == ("undecided", "undecided")


def test_what_one_of_them_does_not_tell_their_difference_and_mean_do_not_tell() -> None:
    assert less((3.0, None, 1.0), (1.0, 1.0, None)) == (2.0, None, None)
    assert mean_of([(3.0, None), (1.0, 1.0)]) == (2.0, None)
