"""Permutations of users among devices give the chance level for correlated updates."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.identity_rows import permuted_precisions
from overheard.questions.identity.statistics.ranking import build_rankings, precision_by_user
from tests.auditing.identity_findings import identity_finding, identity_run

SEED = Seed(6)


def test_permutations_of_two_devices_match_values_worked_by_hand() -> None:
    # Each is first for its own user, AP 1, and second for the other's, AP 1/2: the draws are 1
    # and 1/2 with even odds.
    ranked = build_rankings([
        identity_finding((1, 0), "a", 0, users=("a", "b")),
        identity_finding((0, 1), "b", 1, users=("a", "b")),
    ])  # fmt: skip
    null = permuted_precisions(ranked, SEED)
    assert set(null.tolist()) == {0.5, 1.0}
    assert null.mean() == pytest.approx(0.75, abs=0.03)


def test_the_range_excludes_identified_users_and_covers_chance_as_stated() -> None:
    planted = build_rankings(identity_run(2.0))
    assert (
        np.mean(list(precision_by_user(planted).values()))
        > permuted_precisions(planted, SEED).max()
    )
    # Of 40 runs without signal, 95 % should lie inside: 38, by chance 34 to 40.
    inside = 0
    for seed in range(40):
        no_signal = build_rankings(
            identity_run(0.0, all_users=8, updates=5, clump=2.0, seed=seed)
        )
        low, high = np.quantile(permuted_precisions(no_signal, SEED), [0.025, 0.975])
        inside += low <= np.mean(list(precision_by_user(no_signal).values())) <= high
    assert 34 <= inside <= 40


def test_correlated_updates_widen_the_range() -> None:
    spreads = [
        permuted_precisions(
            build_rankings(identity_run(0.0, updates=10, clump=clump)), SEED
        ).std()
        for clump in (0.0, 3.0)
    ]
    assert spreads[1] > 2 * spreads[0]


def test_unknown_users_are_permuted_too() -> None:
    # The unknown user's target ranks first for a, and b's own never does: devices a, b and x.
    ranked = build_rankings([
        identity_finding((0, 1), "a", 0, users=("a", "b")),
        identity_finding((1, 0), "b", 1, users=("a", "b")),
        identity_finding((2, 2), "x", 2, users=("a", "b")),
    ])  # fmt: skip
    assert permuted_precisions(ranked, SEED).max() == pytest.approx((1 + 1 / 2) / 2)
