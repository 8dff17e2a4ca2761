"""Claims about linked targets are compared with senders permuted within rounds."""

from math import log

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.same_sender.statistics.re_paired_senders import linkage_fits, pair_fits
from overheard.statistics.permutation_test import re_pairings
from tests.questions.null_p_values import assert_uniform, smallest_p_values

ROUNDS, SENDERS = 4, 5


def test_evidence_of_a_pair_is_its_rank_among_the_targets_compared() -> None:
    scores = np.array([[np.nan, 9.0, 2.0], [1.0, np.nan, 1.0], [0.0, 5.0, np.nan]])
    # Ties share the ranks 1 and 2.
    assert pair_fits(scores) == pytest.approx(
        np.array([[0, 0, -log(2)], [-log(1.5), 0, -log(1.5)], [-log(2), 0, 0]])
    )


def test_all_pairs_of_one_sender_count_in_both_directions() -> None:
    fits = np.array([[0, 1.0, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [10, 11, 12, 0]])
    senders, rounds = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    sums = linkage_fits(fits, senders, re_pairings(rounds, Seed(0)))
    # Linked: 0-2 and 1-3 (2 + 7 + 6 + 11), or 0-3 and 1-2 (3 + 10 + 5 + 8), twice each.
    assert sums[0] == 26.0
    assert sorted(sums.tolist()) == [26.0, 26.0, 26.0, 26.0]


def test_the_same_permutation_in_all_rounds_changes_nothing() -> None:
    random = np.random.default_rng(0)
    fits, senders = random.normal(size=(6, 6)), np.array([0, 1, 2, 0, 1, 2])
    alike = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    sums = linkage_fits(fits, senders, alike)
    assert sums[0] == pytest.approx(sums[1])


def fits_of_run(number: int, strength: float) -> np.ndarray:
    """Scores in which some targets, and neighbouring rounds, look alike to everybody."""
    random = np.random.default_rng(number)
    senders = np.concatenate([random.permutation(SENDERS) for _ in range(ROUNDS)])
    rounds = np.repeat(np.arange(ROUNDS), SENDERS)
    is_same = senders[:, None] == senders
    noise = random.normal(size=(2, len(rounds), len(rounds))) + random.normal(size=len(rounds))
    near = 2.0 * (abs(rounds[:, None] - rounds) == 1)
    scores = noise + near + strength * is_same
    scores[:, np.arange(len(rounds)), np.arange(len(rounds))] = np.nan
    pairings = re_pairings(rounds, Seed(number), draws=199)
    return np.stack([linkage_fits(pair_fits(one), senders, pairings) for one in scores], 1)


def test_claims_about_unlinked_targets_have_uniform_p_values() -> None:
    assert_uniform(smallest_p_values(lambda number: fits_of_run(number, 0.0)))


def test_linked_targets_are_found() -> None:
    assert (smallest_p_values(lambda number: fits_of_run(number, 2.0)) <= 0.025).mean() > 0.9
