"""Claims about attributes are compared with those of permuted people."""

from math import log

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.attribute.statistics.re_paired_attributes import attribute_fits
from overheard.statistics.pairing_sums import sum_over_pairings
from overheard.statistics.person_pairings import group_by_runs
from overheard.statistics.re_pairing import re_pairings
from tests.questions.null_p_values import assert_uniform, smallest_p_values

PEOPLE, RUNS = 8, 5


def test_a_person_fits_people_of_the_claimed_value() -> None:
    claims = np.array([[[0.89, 0.11], [0.11, 0.89]]])
    fits = attribute_fits(claims, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, 1]))
    # ln 0.9 and ln 0.12, less their mean.
    half = (log(0.9) - log(0.12)) / 2
    assert fits[0] == pytest.approx(np.array([[half, -half], [-half, half]]))


def test_a_value_that_is_not_claimed_fits_nobody_better() -> None:
    claims = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    fits = attribute_fits(claims, np.array([0, 1]), np.zeros(2, dtype=int), np.array([0, -1]))
    assert fits[0, :, 1].tolist() == [0.0, 0.0]


def fits_over_runs(number: int, strength: float, people_of_runs: str) -> np.ndarray:
    """Claims of three attacks; a person's claims are alike in all runs, and runs are biased."""
    random = np.random.default_rng(number)
    everyone = PEOPLE if people_of_runs == "same" else PEOPLE + 6
    values = random.permutation(np.arange(everyone) % 2)
    style = 1.5 * random.normal(size=(3, everyone)) + strength * (2 * values - 1)
    people = np.concatenate(
        [random.permutation(everyone)[:PEOPLE] for _ in range(RUNS)]
        if people_of_runs == "drawn"
        else [np.arange(PEOPLE)] * RUNS
    )
    runs = np.repeat(np.arange(RUNS), PEOPLE)
    bias = random.normal(size=(3, RUNS))[:, runs]
    odds = style[:, people] + bias + 0.3 * random.normal(size=(3, len(people)))
    chosen = 1 / (1 + np.exp(-odds))
    present, people = np.unique(people, return_inverse=True)
    fits = attribute_fits(np.stack([1 - chosen, chosen], 2), people, runs, values[present])
    groups = group_by_runs(people, runs, len(present))
    return sum_over_pairings(fits, re_pairings(groups, Seed(number)))


@pytest.mark.parametrize("people_of_runs", ["same", "drawn"])
def test_claims_about_recurring_people_have_uniform_p_values(people_of_runs: str) -> None:
    assert_uniform(
        smallest_p_values(lambda number: fits_over_runs(number, 0.0, people_of_runs))
    )


def test_claims_that_follow_the_attribute_are_found() -> None:
    found = smallest_p_values(lambda number: fits_over_runs(number, 3.0, "same"))
    assert (found <= 0.025).mean() > 0.9
