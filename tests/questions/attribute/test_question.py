"""Claims about attributes are compared with those of permuted users."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.findings.finding import ClaimRow, Finding
from overheard.questions.attribute.question import attribute_fits, count_by_value
from overheard.statistics.permutation_test import group_by_runs, re_pairings, sum_over_pairings
from tests.auditing.identity_findings import identity_finding
from tests.questions.null_p_values import assert_uniform, smallest_p_values

USERS, RUNS = 8, 5


def test_a_person_fits_people_of_the_claimed_value() -> None:
    claims = np.array([[0.89, 0.11], [0.11, 0.89]])
    fits = attribute_fits(claims, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, 1]))
    # ln 0.9 and ln 0.12, less their mean.
    half = (log(0.9) - log(0.12)) / 2
    assert fits == pytest.approx(np.array([[half, -half], [-half, half]]))


def test_a_value_that_is_not_claimed_fits_nobody_better() -> None:
    claims = np.array([[0.9, 0.1], [0.2, 0.8]])
    fits = attribute_fits(claims, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, -1]))
    assert fits[:, 1].tolist() == [0.0, 0.0]


def fits_over_runs(number: int, strength: float, users_of_runs: str) -> np.ndarray:
    """Claims of three attacks; a user's claims are alike in all runs, and runs are biased."""
    random = np.random.default_rng(number)
    everyone = USERS if users_of_runs == "same" else USERS + 6
    values = random.permutation(np.arange(everyone) % 2)
    style = 1.5 * random.normal(size=(3, everyone)) + strength * (2 * values - 1)
    users = np.concatenate(
        [random.permutation(everyone)[:USERS] for _ in range(RUNS)]
        if users_of_runs == "drawn"
        else [np.arange(USERS)] * RUNS
    )
    runs = np.repeat(np.arange(RUNS), USERS)
    bias = random.normal(size=(3, RUNS))[:, runs]
    odds = style[:, users] + bias + 0.3 * random.normal(size=(3, len(users)))
    chosen = 1 / (1 + np.exp(-odds))
    present, users = np.unique(users, return_inverse=True)
    fits = np.stack(
        [
            attribute_fits(np.stack([1 - one, one], 1), users, runs, values[present])
            for one in chosen
        ]
    )
    groups = group_by_runs(users, runs, len(present))
    return sum_over_pairings(fits, re_pairings(groups, Seed(number)))


@pytest.mark.parametrize("users_of_runs", ["same", "drawn"])
def test_claims_about_recurring_people_have_uniform_p_values(users_of_runs: str) -> None:
    assert_uniform(smallest_p_values(lambda number: fits_over_runs(number, 0.0, users_of_runs)))


def test_claims_that_follow_the_attribute_are_found() -> None:
    found = smallest_p_values(lambda number: fits_over_runs(number, 3.0, "same"))
    assert (found <= 0.025).mean() > 0.9


VALUES = ("young", "old")


def claimed(user: str, true: str, accuracy: float, number: int, seed: int = 0) -> Finding:
    bare = identity_finding((0.5, 0.5), user, number, users=VALUES, seed=seed)
    is_true = tuple(float(value == true) for value in VALUES)
    row = ClaimRow(is_true if true in VALUES else (*is_true, 1.0))
    return replace(bare, true=row, scores=(Score("accuracy", accuracy, "higher", {}, {}),))


def test_rare_values_have_the_weight_of_frequent_ones() -> None:
    # Young: 3 of 4 correct; old: none of 1. The mean is 3/8; plain accuracy is 3/5.
    findings = [claimed("a", "young", float(n < 3), n) for n in range(4)] + [
        claimed("b", "old", 0.0, 4)
    ]
    (run,) = count_by_value(findings)
    assert run.balanced_accuracy().value() == pytest.approx(3 / 8)
    assert run.correct.shape == (2, 2)


def test_a_true_value_that_is_not_claimed_is_an_additional_value() -> None:
    (run,) = count_by_value([claimed("a", "young", 1.0, 0), claimed("b", "ancient", 0.0, 1)])
    assert run.balanced_accuracy().value() == pytest.approx(1 / 2)


def test_runs_are_counted_separately() -> None:
    runs = count_by_value(
        [claimed("a", "young", 1.0, 0), claimed("a", "young", 0.0, 0, seed=1)]
    )
    assert [run.balanced_accuracy().value() for run in runs] == [1, 0]
