"""Sums over pairings add the fits that a pairing selects."""

from math import log

import numpy as np
import pytest

from overheard.statistics.pairing_sums import log_fit, sum_over_pairings


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
