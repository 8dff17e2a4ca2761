"""Rankings of known users are compared with permuted users."""

from math import log

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.question import identity_fits
from overheard.statistics.permutation_test import re_pairings, sum_over_pairings
from tests.questions.null_p_values import assert_uniform, smallest_p_values


def test_a_person_fits_a_user_by_the_rank_of_that_user() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 5.0]])
    fits = identity_fits(scores, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, 2]))
    # Ranks of users 0 and 2: 1 and 3; 2.5 (tied) and 1. Means over targets are subtracted.
    first, second = np.array([0.0, -log(3)]), np.array([-log(2.5), 0.0])
    mean = (first + second) / 2
    assert fits == pytest.approx(np.array([first - mean, second - mean]))


def test_a_user_whom_the_attacker_does_not_know_fits_nobody() -> None:
    scores = np.array([[3.0, 2.0], [1.0, 5.0]])
    fits = identity_fits(scores, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, -1]))
    assert fits[:, 1].tolist() == [0.0, 0.0]


def fits_of_runs(number: int, strength: float) -> np.ndarray:
    """Three runs of six users; a user's scores are alike in all runs."""
    random = np.random.default_rng(number)
    style = random.normal(size=(4, 6, 6)) + strength * np.eye(6)
    scores = np.tile(style, (1, 3, 1)) + 0.3 * random.normal(size=(4, 18, 6))
    users, runs = np.tile(np.arange(6), 3), np.repeat(np.arange(3), 6)
    fits = np.stack([identity_fits(one, users, runs, np.arange(6)) for one in scores])
    return sum_over_pairings(fits, re_pairings(np.zeros(6, dtype=int), Seed(number)))


def test_scores_of_recurring_users_have_uniform_p_values() -> None:
    assert_uniform(smallest_p_values(lambda number: fits_of_runs(number, 0.0)))


def test_users_that_are_recognised_are_found() -> None:
    assert (smallest_p_values(lambda number: fits_of_runs(number, 3.0)) <= 0.025).mean() > 0.9
