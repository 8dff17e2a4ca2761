"""Verdicts follow from p-values, gains and margins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.statistics.judgement import Judgement, holm_adjusted, judge


@pytest.mark.parametrize(
    ("p_values", "gains", "smallest_p", "is_readable", "is_below_margin", "verdict"),
    [
        ([0.025, 0.4], [0.1, 0.2], 0.001, True, False, "leaks"),
        # A leak is told even if it is below the margin, or if guesses hardly err.
        ([0.001], [0.01], 0.001, False, True, "leaks"),
        # The p-value and the gain must be of the same attack.
        ([0.001, 0.4], [-0.1, 0.2], 0.001, True, False, "inconclusive"),
        # As small a p-value as the level can be reached, but is not.
        ([0.026], [0.2], 0.025, True, False, "inconclusive"),
        ([0.2], [0.2], 0.001, True, True, "no leak above margin"),
        ([1.0], [0.0], 1 / 24, True, True, "not enough to judge"),
        ([1.0], [0.0], 1 / 24, False, True, "nothing to read"),
    ],
)
def test_the_first_verdict_that_applies_is_given(
    p_values: list[float],
    gains: list[float],
    smallest_p: float,
    is_readable: bool,
    is_below_margin: bool,
    verdict: Judgement,
) -> None:
    found = judge(
        p_values,
        gains,
        smallest_p=smallest_p,
        is_readable=is_readable,
        is_below_margin=is_below_margin,
    )
    assert found == verdict


def test_holm_multiplies_the_smallest_by_the_number() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04: times 4, 3, 2, 1 = 0.04, 0.06, 0.06, 0.04 -> 0.06.
    assert holm_adjusted([0.03, 0.01, 0.04, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))


@given(st.lists(st.floats(0, 1), max_size=12))
def test_adjusted_values_keep_the_order_and_lie_above_their_own(p_values: list[float]) -> None:
    adjusted = holm_adjusted(p_values)
    assert all(p <= larger <= 1 for p, larger in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    ordered = [adjusted[index] for index in order]
    assert ordered == sorted(ordered)
