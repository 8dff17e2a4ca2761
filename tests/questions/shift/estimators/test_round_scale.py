"""One scale for all rounds: late evidence counts as much as that of the first rounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.questions.shift.estimators.round_scale import fit_round_scale


def test_statistics_are_deviations_of_their_roots_from_simulated_runs() -> None:
    # The roots are value^(2/3): 1 -> 1, 8 -> 4, 27 -> 9. Round 0: mean 2.5, deviation 1.5.
    scale = fit_round_scale([{0: 1.0, 1: 8.0}, {0: 8.0, 1: 27.0}])
    assert scale.standardise({0: 27.0, 1: 8.0}) == pytest.approx(
        {0: (9 - 2.5) / 1.5, 1: (4 - 6.5) / 2.5}
    )


def test_the_first_rounds_no_longer_hide_a_later_shift() -> None:
    runs = [{0: 1000.0 + 100 * number, 5: 1.0 + number / 10} for number in range(20)]
    scale = fit_round_scale(runs)
    unshifted, shifted = {0: 2000.0, 5: 2.0}, {0: 2000.0, 5: 9.0}
    assert max(shifted, key=shifted.__getitem__) == 0
    standardised = scale.standardise(shifted)
    assert max(standardised, key=standardised.__getitem__) == 5
    assert max(scale.standardise(unshifted).values()) < 2


@given(
    st.lists(st.floats(0, 1e6), min_size=8, max_size=20),
    st.floats(1e-3, 1e3),
)
def test_units_do_not_matter(values: list[float], factor: float) -> None:
    values = [*values, max(values) + 1, max(values) + 2]
    one = fit_round_scale([{0: value} for value in values])
    other = fit_round_scale([{0: factor * value} for value in values])
    assert other.standardise({0: 5 * factor})[0] == pytest.approx(
        one.standardise({0: 5.0})[0], rel=1e-6, abs=1e-6
    )


def test_rounds_that_a_run_lacks_have_no_scale() -> None:
    scale = fit_round_scale([{0: 1.0, 1: 2.0}, {1: 3.0}])
    assert scale.standardise({0: 5.0, 1: 5.0, 2: 5.0}).keys() == {1}


def test_equal_statistics_do_not_make_rounding_evidence() -> None:
    scale = fit_round_scale([{0: 8.0, 1: 8.0}] * 4)
    assert scale.standardise({0: 8.0 + 1e-8})[0] == pytest.approx(0, abs=0.01)


def test_statistics_of_0_in_all_runs_have_no_scale() -> None:
    assert fit_round_scale([{0: 0.0}, {0: 0.0}]).mean == {}
    assert fit_round_scale([]).mean == {}
