"""Resolution is the share of a client's variance that the sums explain."""

import numpy as np
import pytest

from overheard.participation.resolution import find_resolution


def test_one_sum_of_two_clients_reveals_a_third_of_each():
    # I + A'A = [[2, 1], [1, 2]], whose inverse has 2/3 on its diagonal.
    found = find_resolution(np.array([[1.0, 1.0]]))
    assert found.by_round == pytest.approx(np.full((1, 2), 1 / 3))


def test_a_client_that_is_in_no_sum_so_far_has_resolution_0():
    # Alone in its sum, a client has 1 - 1/2.
    found = find_resolution(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert found.by_round == pytest.approx(np.array([[0.5, 0.0], [0.5, 0.5]]))


def test_rounds_one_by_one_give_the_inverse_of_all_rounds():
    drawn = np.random.default_rng(0).random((12, 7)) < 0.5
    weights = drawn * np.linspace(0.5, 2, 7)
    for rounds in (1, 5, 12):
        whole = np.linalg.inv(np.eye(7) + weights[:rounds].T @ weights[:rounds])
        last = find_resolution(weights).by_round[rounds - 1]
        assert last == pytest.approx(1 - whole.diagonal())


def test_fixed_cohorts_reveal_less_than_their_share_however_many_rounds():
    # 5 clients always together: t / (1 + 5 t) each, below 1/5.
    found = find_resolution(np.ones((100, 5)))
    assert found.largest == pytest.approx(100 / 501)
    assert found.amplification[100] is None


def test_amplification_is_the_error_of_least_squares():
    # x1 = y1 - y2 and x2 = y2: errors of sqrt(2) and 1, and their median.
    found = find_resolution(np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert found.amplification == {1: None, 2: pytest.approx((2**0.5 + 1) / 2)}
