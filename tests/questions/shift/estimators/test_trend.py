"""Divergences from extrapolated lines match values worked by hand."""

from math import sqrt
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.questions.shift.estimators.trend import FLOAT32_PRECISION, Trend

VALUES = st.lists(st.integers(-50, 50), min_size=5, max_size=9)


def numbered(values, first=0):
    return {first + place: float(value) for place, value in enumerate(values)}


class TestDivergence:
    def test_is_zero_on_the_line_and_the_distance_off_it(self):
        assert Trend(3).divergences(numbered([1, 2, 3, 4])) == pytest.approx({3: 0})
        assert Trend(3).divergences(numbered([1, 2, 3, 6])) == pytest.approx({3: 2})
        assert Trend(3).divergences(numbered([1, 2, 3, 2])) == pytest.approx({3: 2})

    def test_uses_the_least_squares_line(self):
        # 1, 3, 2 around their mean 2 at -1, 0, 1: slope 0.5; at 2 the line is at 3.
        assert Trend(3).divergences(numbered([1, 3, 2, 5], first=7)) == pytest.approx({10: 2})

    def test_is_divided_by_its_standard_error_if_standardised(self):
        # The line 1.5, 2, 2.5 leaves -0.5, 1, -0.5: 1.5 with one degree of freedom. The factor
        # is (1 + 1/3 + 2^2/2)^(1/2) = (10/3)^(1/2), so 2 is divided by 5^(1/2).
        divergences = Trend(3, standardise=True).divergences(numbered([1, 3, 2, 5]))
        assert divergences == pytest.approx({3: 2 / sqrt(5)})

    def test_of_five_rounds_has_the_variance_that_theory_says(self):
        # 1 + 1/5 + 3^2/10 = 2.1; 0, 1, 0, 1, 0 leave a flat line at 0.4, squares 1.2 over 3
        # degrees of freedom, so 1 off the line is divided by (0.4 * 2.1)^(1/2).
        divergences = Trend(5, standardise=True).divergences(numbered([0, 1, 0, 1, 0, 1.4]))
        assert divergences == pytest.approx({5: 1 / sqrt(0.4 * 2.1)})

    def test_standardised_follows_students_distribution_on_noise(self):
        # The median of |t| with 3 degrees of freedom is 0.765.
        noise = Seed(0).numpy().normal(size=(4000, 6))
        divergences = [
            Trend(5, standardise=True).divergences(numbered(row))[5] for row in noise
        ]
        assert median(divergences) == pytest.approx(0.765, abs=0.03)

    def test_standardised_is_finite_off_a_line_without_scatter(self):
        divergences = Trend(5, standardise=True).divergences(numbered([2, 2, 2, 2, 2, 3]))
        assert divergences == pytest.approx({5: 1 / (3 * FLOAT32_PRECISION * sqrt(2.1))})

    def test_standardised_is_0_for_a_constant_series(self):
        assert Trend(5, standardise=True).divergences(numbered([0] * 6)) == {5: 0}

    def test_restarts_after_a_gap(self):
        series = numbered([0, 1, 2, 3]) | numbered([9, 10, 11, 13], first=5)
        # Values at 3 and at 8, each from the three before; none at 5 to 7.
        assert Trend(3).divergences(series) == pytest.approx({3: 0, 8: 1})

    @given(VALUES, st.integers(-5, 5), st.integers(-5, 5))
    def test_is_invariant_to_an_added_line(self, values, slope, height):
        laid = [value + height + slope * place for place, value in enumerate(values)]
        before, after = (Trend(3).divergences(numbered(v)) for v in (values, laid))
        assert after == pytest.approx(before, abs=1e-9)

    @given(VALUES, st.floats(0.01, 100))
    def test_standardised_is_invariant_to_the_scale(self, values, scale):
        trend = Trend(4, standardise=True)
        scaled = trend.divergences(numbered([value * scale for value in values]))
        divergences = trend.divergences(numbered(values))
        # Larger values come from the lower bound for rounding.
        for number, value in divergences.items():
            if value < 1000:
                assert scaled[number] == pytest.approx(value, rel=1e-6, abs=1e-6)


class TestShift:
    def test_is_claimed_at_the_first_of_the_largest_divergences_without_an_alarm(self):
        # The lines through (0, 0), (0, 0), (0, 3) are at 0, 0, 6 one round later.
        claim = Trend(2).claim_shift(numbered([0, 0, 0, 3, 0]), range(5), 0, "x")
        assert claim.evidence.rounds == (2, 3, 4)
        assert claim.evidence.statistic == pytest.approx((0, 3, 6))
        assert claim.evidence.since == 4
        assert claim.evidence.threshold is None
        assert claim.evidence.alarm is None
        assert claim.numbers() == ()
        # Through (0, 0), (0, 2), (2, 4), (4, 4): 0, 4, 6, 4.
        again = Trend(2).claim_shift(numbered([0, 0, 2, 4, 4, 4]), range(6), 0, "x")
        assert again.evidence.statistic == pytest.approx((2, 0, 2, 0))
        assert again.evidence.since == 2

    def test_refuses_too_few_rounds_and_states_both_numbers(self):
        with pytest.raises(
            NeedsError, match=r"x needs 8 consecutive rounds.*5.*reads 6 rounds, at most 4"
        ):
            Trend(5).claim_shift({}, (0, 1, 2, 3, 7, 8), 2, "x")

    def test_refuses_a_series_with_gaps_and_names_their_rounds(self):
        series = numbered([1, 1, 1]) | numbered([1, 1, 1], first=4)
        with pytest.raises(NeedsError, match=r"not finite around rounds 3$"):
            Trend(3).claim_shift(series, range(7), 0, "x")
