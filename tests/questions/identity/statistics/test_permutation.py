"""Where devices swap identities, what is left is chance, clumps and all."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.permutation import permuted_precisions
from overheard.questions.identity.statistics.ranking import by_user, rankings
from tests.auditing.recognised import found, run

SEED = Seed(6)


def test_two_devices_swapped_are_worked_by_hand() -> None:
    # Each is first for its own user, AP 1, and second for the other's, AP 1/2: the draws are 1
    # and 1/2 with even odds.
    held = rankings([
        found((1, 0), "a", 0, users=("a", "b")), found((0, 1), "b", 1, users=("a", "b")),
    ])  # fmt: skip
    null = permuted_precisions(held, SEED)
    assert set(null.tolist()) == {0.5, 1.0}
    assert null.mean() == pytest.approx(0.75, abs=0.03)


def test_people_who_are_recognised_lie_far_outside_and_others_inside_as_often_as_said() -> None:
    planted = rankings(run(2.0))
    assert np.mean(list(by_user(planted).values())) > permuted_precisions(planted, SEED).max()
    # Of 40 runs in which nobody is recognised 95 % should lie inside: 38, by chance 34 to 40.
    inside = 0
    for seed in range(40):
        nobody = rankings(run(0.0, people=8, updates=5, clump=2.0, seed=seed))
        low, high = np.quantile(permuted_precisions(nobody, SEED), [0.025, 0.975])
        inside += low <= np.mean(list(by_user(nobody).values())) <= high
    assert 34 <= inside <= 40


def test_devices_swap_whole_so_that_clumps_widen_the_null() -> None:
    spreads = [
        permuted_precisions(rankings(run(0.0, updates=10, clump=clump)), SEED).std()
        for clump in (0.0, 3.0)
    ]
    assert spreads[1] > 2 * spreads[0]


def test_strangers_swap_too() -> None:
    # The stranger's target is first for a, b's own never: with three devices a, b and x.
    held = rankings([
        found((0, 1), "a", 0, users=("a", "b")),
        found((1, 0), "b", 1, users=("a", "b")),
        found((2, 2), "x", 2, users=("a", "b")),
    ])  # fmt: skip
    assert permuted_precisions(held, SEED).max() == pytest.approx((1 + 1 / 2) / 2)
