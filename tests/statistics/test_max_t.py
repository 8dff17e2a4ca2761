"""Adjusted p-values keep their level for the best of several attacks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.max_t import adjusted_p_values


def test_one_attack_has_the_share_of_pairings_that_reach_the_true_one():
    # Rows 1 and 3 reach 2: with the true row three of four.
    statistics = np.array([[2.0], [3.0], [1.0], [2.0]])
    assert adjusted_p_values(statistics).tolist() == [0.75]


def test_the_stronger_of_two_attacks_competes_with_both():
    # Standardised, each column is +-1.5 or +-0.5 times the same number. Attack 0 has its
    # largest value in row 0, and attack 1 reaches the same height in row 3: 2 of 4. Attack 1
    # competes with itself only: its value 0 is reached in all rows but none lower: 4 of 4.
    statistics = np.array([[3.0, 0.0], [2.0, 10.0], [1.0, 20.0], [0.0, 30.0]])
    assert adjusted_p_values(statistics).tolist() == [0.5, 1.0]


def test_a_weaker_attack_has_no_smaller_p_value_than_a_stronger_one():
    # Attack 1 alone would have p = 1/4: rows below lie under it. Attack 0 has the larger
    # standardised value, as its other values are equal; attack 1 reaches it nowhere.
    statistics = np.array([[4.0, 3.0], [0.0, 2.0], [0.0, 1.0], [0.0, 0.0]])
    assert adjusted_p_values(statistics).tolist() == [0.25, 0.25]


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-100, 100))
def test_units_of_an_attack_do_not_matter(number: int, scale: float, offset: float):
    statistics = Seed(number).numpy().normal(size=(50, 3))
    changed = statistics * [1.0, scale, 1.0] + [0.0, offset, 0.0]
    assert adjusted_p_values(changed) == pytest.approx(adjusted_p_values(statistics))


def test_an_attack_without_spread_or_statistic_gets_one_and_changes_no_other():
    one = Seed(0).numpy().normal(size=(30, 1))
    constant, missing = np.full((30, 1), 0.1 + 0.2), np.full((30, 1), np.nan)
    constant[3] = 0.3  # differs by rounding
    p_values = adjusted_p_values(np.hstack([constant, one, missing]))
    assert p_values[[0, 2]].tolist() == [1.0, 1.0]
    assert p_values[1] == adjusted_p_values(one)[0]
    assert adjusted_p_values(missing).tolist() == [1.0]


def test_sums_that_differ_by_rounding_are_tied():
    # 0.1 + 0.2 + 0.3 has two values, depending on the order.
    statistics = np.array([[0.1 + 0.2 + 0.3], [0.3 + 0.2 + 0.1], [0.0], [0.0]])
    assert adjusted_p_values(statistics).tolist() == [0.5]


def test_refuses_statistics_without_the_true_pairing():
    with pytest.raises(ValueError, match="true pairing"):
        adjusted_p_values(np.empty((0, 2)))


@pytest.mark.parametrize("attacks", [1, 12])
def test_the_best_of_attacks_that_read_nothing_keeps_the_level(attacks: int):
    # 40 pairings: p <= 0.025 exactly if the true one is the first of 40. In 2,000 audits that
    # is 50 times with a standard deviation of 7.
    generator = Seed(5).numpy()
    common = generator.normal(size=(2000, 40, 1))
    statistics = common + generator.normal(size=(2000, 40, attacks))
    leaks = sum(adjusted_p_values(one).min() <= 0.025 for one in statistics)
    assert 29 <= leaks <= 71


def test_the_level_holds_for_heavy_tails_and_ties():
    generator = Seed(6).numpy()
    statistics = np.round(generator.standard_cauchy((1000, 100, 4)))
    leaks = sum(adjusted_p_values(one).min() <= 0.05 for one in statistics)
    assert leaks <= 72  # 50 expected at most, three standard deviations above


def test_an_attack_that_reads_the_target_has_the_smallest_p_value():
    statistics = Seed(7).numpy().normal(size=(200, 4))
    statistics[0, 2] = 9.0
    p_values = adjusted_p_values(statistics)
    assert p_values[2] == 1 / 200
    assert (np.delete(p_values, 2) > 0.025).all()
