"""Estimates with intervals, ranks with ties, and evenly spaced rounds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.estimate import (
    Estimate,
    are_below,
    convert_estimate,
    estimate_strongest,
    student_estimate,
    student_quantile,
    widen,
)
from overheard.statistics.evenly_spaced import select_evenly_spaced
from overheard.statistics.run_means import estimate_mean
from overheard.statistics.tied_rank import TiedRank, rank_candidate


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
    assert converted.low <= converted.mean <= converted.high
    ends = sorted(factor * end + offset for end in (1 - below, 1 + above))
    assert [converted.low, converted.high] == pytest.approx(ends)


def test_one_attack_keeps_its_interval() -> None:
    one = student_estimate(0.3, 0.1, 4.0, "runs")
    strongest = estimate_strongest([one])
    assert (strongest.mean, strongest.low, strongest.high) == pytest.approx(
        (0.3, one.low, one.high)
    )


def test_the_lower_end_is_divided_among_the_attacks() -> None:
    # Two attacks at 4 degrees of freedom: the lower ends are at 1.25 %. The upper end is that
    # of the attack with the wider interval, which is not the best on average.
    best = student_estimate(0.3, 0.1, 4.0, "runs")
    wide = student_estimate(0.2, 0.2, 4.0, "runs")
    strongest = estimate_strongest([best, wide])
    assert strongest.mean == 0.3
    assert strongest.low == pytest.approx(0.3 - 0.1 * student_quantile(0.0125, 4.0))
    assert strongest.high == pytest.approx(0.2 + 0.2 * 2.776, abs=1e-3)
    assert strongest.basis == "runs"


def test_an_attack_without_an_interval_leaves_the_upper_end_open() -> None:
    gains = [student_estimate(0.3, 0.1, 4.0, "these runs"), Estimate(0.1, None, None)]
    strongest = estimate_strongest(gains)
    assert strongest.high is None
    assert strongest.basis == "these runs"
    assert estimate_strongest([Estimate(0.1, None, None)]).low is None


def test_gains_are_below_a_margin_only_if_all_upper_ends_are() -> None:
    near, far = Estimate(0.0, -0.1, 0.04), Estimate(0.0, -0.1, 0.06)
    assert are_below([near, near], 0.05)
    assert not are_below([near, far], 0.05)
    assert not are_below([near, Estimate(0.0, None, None)], 0.05)
    assert not are_below([Estimate(0.0, -0.1, 0.05)], 0.05)


@pytest.mark.parametrize("runs", [2, 10])
def test_the_best_of_twelve_equal_attacks_is_covered(runs: int) -> None:
    # All true gains are 0. The naive interval of the best covers 0 in 82 % of audits or fewer.
    # 95 % of 600 are 570, with a standard deviation of 5.
    generator, covered, naive = Seed(2).numpy(), 0, 0
    run = np.repeat(np.arange(runs), 5)
    for _ in range(600):
        gains = [estimate_mean(generator.normal(size=runs * 5), run) for _ in range(12)]
        strongest, best = estimate_strongest(gains), max(gains, key=lambda one: one.mean)
        assert strongest.high is not None
        covered += strongest.low <= 0 <= strongest.high
        naive += best.low <= 0
    assert covered >= 555
    assert naive < 510


def test_counts_better_and_tied_candidates() -> None:
    scores = torch.tensor([0.3, 0.9, 0.3, 0.1])
    assert [rank_candidate(scores, number) for number in range(4)] == [
        TiedRank(1, 2), TiedRank(0, 1), TiedRank(1, 2), TiedRank(3, 1),
    ]  # fmt: skip


def test_a_tie_across_the_limit_is_within_it_with_a_probability() -> None:
    # Two are better; three share ranks 3, 4 and 5, of which 2 are among the first 4.
    shared = TiedRank(2, 3)
    assert [shared.probability_within(length) for length in (2, 4, 5, 9)] == pytest.approx(
        [0, 2 / 3, 1, 1]
    )
    assert shared.reciprocal_rank() == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)


def test_includes_the_first_and_the_last_or_only_the_last() -> None:
    assert select_evenly_spaced(range(20), 5) == (0, 4, 9, 14, 19)
    assert select_evenly_spaced((2, 3, 7, 9), 2) == (2, 9)
    assert select_evenly_spaced((2, 3, 7, 9), 1) == (9,)


def test_refuses_zero_rounds() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        select_evenly_spaced(range(3), 0)
