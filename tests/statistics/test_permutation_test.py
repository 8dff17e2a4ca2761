"""Re-pairings stay within groups and are equally likely."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.judgement import Judgement, holm_adjusted, judge
from overheard.statistics.permutation_test import (
    adjusted_p_values,
    count_arrangements,
    count_pairings,
    group_by_runs,
    log_fit,
    re_drawn_runs,
    re_pair_runs,
    re_pair_units,
    re_pairings,
    smallest_p_value,
    sum_by_user,
    sum_over_pairings,
)

SEED = Seed(3)


def test_all_permutations_within_groups_are_enumerated_once():
    # Groups {0, 2} and {1, 3, 4}: 2 x 6 pairings.
    pairings = re_pairings(np.array([7, 9, 7, 9, 9]), SEED)
    assert len(np.unique(pairings, axis=0)) == len(pairings) == 12
    assert pairings[0].tolist() == [0, 1, 2, 3, 4]
    assert {tuple(sorted(row)) for row in pairings[:, [0, 2]].tolist()} == {(0, 2)}
    assert {tuple(sorted(row)) for row in pairings[:, [1, 3, 4]].tolist()} == {(1, 3, 4)}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 200))
def test_every_pairing_permutes_within_groups(labels: list[int], most: int):
    groups = np.array(labels)
    pairings = re_pairings(groups, SEED, most, draws=20)
    sizes = np.unique(groups, return_counts=True)[1].tolist()
    assert len(pairings) == (count_pairings(sizes) if count_pairings(sizes) <= most else 21)
    assert (pairings[0] == np.arange(len(groups))).all()
    assert (np.sort(pairings, axis=1) == np.arange(len(groups))).all()
    assert (groups[pairings] == groups).all()


def test_random_pairings_are_uniform():
    # Each of 8 targets meets each of the others, and itself, in 1 of 8 pairings: 500 of 4,000
    # with a standard deviation of 21.
    pairings = re_pairings(np.zeros(8, dtype=np.int64), SEED, draws=4000)[1:]
    counts = np.array([np.bincount(column, minlength=8) for column in pairings.T])
    assert np.abs(counts - 500).max() < 5 * 21


def test_all_choices_among_alternatives_are_enumerated_once():
    choices = re_drawn_runs([3, 2], SEED)
    assert choices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]


def test_random_choices_include_what_happened():
    # Uniform over 4 alternatives, the first included: 2,500 each of 10,000, deviation 43.
    choices = re_drawn_runs([4] * 10, SEED, draws=10_000)
    assert choices.shape == (10_001, 10)
    assert (choices[0] == 0).all()
    counts = np.array([np.bincount(column, minlength=4) for column in choices[1:].T])
    assert np.abs(counts - 2500).max() < 5 * 43


@pytest.mark.parametrize(
    ("sizes", "smallest"),
    [
        ([4], 1 / 24),  # one recorded run of 4 clients: above 0.025
        ([5], 1 / 120),
        ([4, 4], 1 / 576),
        ([3, 3], 1 / 36),
        ([20], 1 / 1000),  # random pairings
        ([1, 1], 1.0),
    ],
)
def test_the_smallest_p_value_follows_from_the_sizes(sizes: list[int], smallest: float):
    assert smallest_p_value(count_pairings(sizes)) == pytest.approx(smallest)


def test_the_last_number_of_pairings_that_is_enumerated_has_the_smallest_p_value():
    assert (smallest_p_value(10_000), smallest_p_value(10_001)) == (1e-4, 1e-3)


def test_sums_add_what_exceeds_the_mean_of_a_run() -> None:
    fits = np.array([[4.0, 0.0], [2.0, 0.0], [10.0, 3.0], [10.0, 1.0]])
    users, runs = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    # Run means: (3, 0) and (10, 2). User 0: (1, 0) + (0, 1); user 1: (-1, 0) + (0, -1).
    assert sum_by_user(fits, users, runs, 2).tolist() == [[1.0, 1.0], [-1.0, -1.0]]


def test_a_bias_of_a_run_changes_nothing() -> None:
    random = np.random.default_rng(0)
    fits, users = random.normal(size=(6, 3)), np.array([0, 1, 2, 0, 1, 2])
    runs = np.array([0, 0, 0, 1, 1, 1])
    biased = fits + np.array([5.0, -2.0])[runs, None]
    assert sum_by_user(biased, users, runs, 3) == pytest.approx(
        sum_by_user(fits, users, runs, 3)
    )


def test_a_missing_claim_counts_as_the_mean() -> None:
    fits = np.array([[np.nan, 1.0], [2.0, 1.0], [4.0, 1.0]])
    sums = sum_by_user(fits, np.array([0, 1, 2]), np.zeros(3, dtype=int), 3)
    assert sums[:, 0].tolist() == [0.0, -1.0, 1.0]


def test_people_of_the_same_runs_form_a_group() -> None:
    users, runs = np.array([0, 1, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    groups = group_by_runs(users, runs, 4)
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_all_people_form_one_group_if_somebody_has_no_partner() -> None:
    users, runs = np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1])
    assert group_by_runs(users, runs, 3).tolist() == [0, 0, 0]


def test_each_claim_counts_with_the_truth_that_the_pairing_gives_it() -> None:
    fits = np.array(
        [[[1.0, 20.0], [300.0, 4000.0]], [[5.0, 6.0], [7.0, 8.0]], [[1.0, 0.0], [0.0, 2.0]]]
    )
    sums = sum_over_pairings(fits, np.array([[0, 1], [1, 0]]))
    # Attack 0: 1 + 4000, and 20 + 300; attack 1: 5 + 8, and 6 + 7; attack 2: 1 + 2, and 0.
    assert sums.tolist() == [[4001.0, 13.0, 3.0], [320.0, 13.0, 0.0]]


def test_an_attack_without_claims_has_no_sum() -> None:
    fits = np.full((1, 2, 2), np.nan)
    assert np.isnan(sum_over_pairings(fits, np.array([[0, 1]]))).all()


def test_a_claim_of_0_has_a_finite_cost() -> None:
    assert log_fit(np.array([0.0, 0.99])) == pytest.approx([log(0.01), 0.0])


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


def test_the_true_pairing_comes_first_and_all_others_follow() -> None:
    fits = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    found = re_pair_units(fits, np.zeros(3, dtype=int), range(3), Seed(0))
    # The identity fits 3 times; three transpositions once; two rotations never.
    assert found.fits[0, 0] == 3.0
    assert sorted(found.fits[:, 0]) == [0.0, 0.0, 1.0, 1.0, 1.0, 3.0]
    assert found.smallest_p_value == pytest.approx(1 / 6)


def test_units_with_equal_truths_are_no_different_pairings() -> None:
    # One of five users differs: five places for it.
    assert count_arrangements([0] * 5, "aaaab") == 5
    fits = np.random.default_rng(0).normal(size=(1, 5, 2))[:, :, [0, 0, 0, 0, 1]]
    found = re_pair_units(fits, np.zeros(5, dtype=int), "aaaab", Seed(0))
    assert found.smallest_p_value == pytest.approx(1 / 5)
    assert len(set(np.round(found.fits[:, 0], 9))) == 5


def test_few_random_pairings_limit_the_p_value() -> None:
    assert smallest_p_value(10**9, 1000) == 1e-3
    assert smallest_p_value(6, 720) == pytest.approx(1 / 6)


def test_few_pairings_of_all_runs_are_enumerated_together() -> None:
    groups = [np.array([0, 0]), np.array([0, 0, 0])]
    one, other = re_pair_runs(groups, Seed(0))
    joint = {
        (*first, *second) for first, second in zip(one.tolist(), other.tolist(), strict=True)
    }
    assert len(one) == len(other) == len(joint) == 2 * 6
    assert (one[0].tolist(), other[0].tolist()) == ([0, 1], [0, 1, 2])


def test_many_pairings_are_drawn_for_each_run_on_its_own() -> None:
    groups = [np.array([0] * 9 + [1] * 3), np.zeros(9, dtype=int)]
    one, other = re_pair_runs(groups, Seed(0))
    assert one.shape == (1000, 12)
    assert one[0].tolist() == list(range(12))
    # Nobody leaves its group.
    assert (np.sort(one[:, 9:], axis=1) == [9, 10, 11]).all()
    assert not (one[:, :9] == other).all()
