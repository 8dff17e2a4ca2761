"""People are re-paired with all their targets, among people of the same runs."""

import numpy as np
import pytest

from overheard.statistics.person_pairings import group_by_runs, sum_by_person


def test_sums_add_what_exceeds_the_mean_of_a_run() -> None:
    fits = np.array([[4.0, 0.0], [2.0, 0.0], [10.0, 3.0], [10.0, 1.0]])
    people, runs = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    # Run means: (3, 0) and (10, 2). Person 0: (1, 0) + (0, 1); person 1: (-1, 0) + (0, -1).
    assert sum_by_person(fits, people, runs, 2).tolist() == [[1.0, 1.0], [-1.0, -1.0]]


def test_a_bias_of_a_run_changes_nothing() -> None:
    random = np.random.default_rng(0)
    fits, people = random.normal(size=(6, 3)), np.array([0, 1, 2, 0, 1, 2])
    runs = np.array([0, 0, 0, 1, 1, 1])
    biased = fits + np.array([5.0, -2.0])[runs, None]
    assert sum_by_person(biased, people, runs, 3) == pytest.approx(
        sum_by_person(fits, people, runs, 3)
    )


def test_a_missing_claim_counts_as_the_mean() -> None:
    fits = np.array([[np.nan, 1.0], [2.0, 1.0], [4.0, 1.0]])
    sums = sum_by_person(fits, np.array([0, 1, 2]), np.zeros(3, dtype=int), 3)
    assert sums[:, 0].tolist() == [0.0, -1.0, 1.0]


def test_people_of_the_same_runs_form_a_group() -> None:
    people, runs = np.array([0, 1, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    groups = group_by_runs(people, runs, 4)
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_all_people_form_one_group_if_somebody_has_no_partner() -> None:
    people, runs = np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1])
    assert group_by_runs(people, runs, 3).tolist() == [0, 0, 0]
