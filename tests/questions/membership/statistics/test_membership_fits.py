"""Scores of records are compared with owners permuted within labels, or among canaries."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.membership.statistics.re_paired_owners import (
    NON_MEMBER,
    group_gains,
    membership_fits,
    record_ranks,
)
from overheard.statistics.permutation_test import re_pairings
from tests.questions.null_p_values import assert_uniform, smallest_p_values


def test_a_fit_is_the_difference_of_mean_ranks() -> None:
    ranks = record_ranks(np.array([[5.0, 1.0, 1.0, 3.0]]))
    # Ranks 4, 1.5, 1.5, 3 of 4, at the middles of their steps.
    assert ranks.tolist() == [[3.5 / 4, 1 / 4, 1 / 4, 2.5 / 4]]
    owners = np.array([[0, NON_MEMBER, NON_MEMBER, 0], [NON_MEMBER, 0, NON_MEMBER, 0]])
    fits = membership_fits(ranks, np.array([0]), owners)
    assert fits[:, 0] == pytest.approx([0.75 - 0.25, 1.75 / 4 - 2.25 / 4])


def test_for_one_target_a_fit_is_the_auc_less_a_half() -> None:
    scores = np.random.default_rng(0).normal(size=(1, 40))
    owners = np.where(np.arange(40) < 15, 0, NON_MEMBER)[None]
    wins = (scores[0, :15, None] > scores[0, 15:]).mean()
    fit = membership_fits(record_ranks(scores), np.array([0]), owners)[0, 0]
    assert fit == pytest.approx(wins - 0.5)


def test_a_claim_counts_only_records_of_its_target_as_members() -> None:
    ranks = np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 0.5]])
    fits = membership_fits(ranks, np.array([0, 1]), np.array([[0, 1, NON_MEMBER]]))
    assert fits.tolist() == [[0.5, -0.5]]


def fits_of_run(number: int, exchange: str, strength: float = 0.0) -> np.ndarray:
    """Two clients with labels of their own; scores know labels, and how hard a record is."""
    random = np.random.default_rng(number)
    labels = random.integers(0, 4, 200)
    wants = random.dirichlet([0.5] * 4, 2)
    owners = np.full(200, NON_MEMBER)
    for number_of_client, want in enumerate(wants):
        free = np.flatnonzero(owners == NON_MEMBER)
        odds = want[labels[free]] + 1e-6
        owners[random.choice(free, 30, replace=False, p=odds / odds.sum())] = number_of_client
    hard = random.normal(size=200)
    scores = np.stack(
        [
            hard + 2 * wants[target][labels] + strength * (owners == target)
            for target in (0, 0, 1, 1)
        ]
    ) + random.normal(size=(4, 200))
    groups = labels if exchange == "same label" else np.zeros(200, dtype=int)
    pairings = re_pairings(groups, Seed(number), draws=199)
    fits = membership_fits(record_ranks(scores), np.array([0, 0, 1, 1]), owners[pairings])
    return fits[:, [0, 1]] + fits[:, [2, 3]]


def test_scores_that_know_only_labels_have_uniform_p_values_within_labels() -> None:
    assert_uniform(smallest_p_values(lambda number: fits_of_run(number, "same label")))


def test_across_labels_they_would_be_said_to_leak() -> None:
    found = smallest_p_values(lambda number: fits_of_run(number, "all"))
    assert (found <= 0.025).mean() > 0.5


def test_members_that_score_higher_are_found_within_labels() -> None:
    found = smallest_p_values(lambda number: fits_of_run(number, "same label", 1.0))
    assert (found <= 0.025).mean() > 0.9


def test_what_labels_gain_is_the_mean_auc_over_all_pairings() -> None:
    labels = np.array([0, 0, 1, 1, 1, 1, 0, 1, 2, 2])
    owners = np.array([0, 0, 0, 1, 1, NON_MEMBER, NON_MEMBER, NON_MEMBER, NON_MEMBER, 1])
    scores = np.array([[9.0, 8, 3, 3, 6, 4, 5, 1, 2, 7], [1.0, 2, 5, 6, 3, 3, 8, 9, 4, 7]])
    targets = np.array([0, 1])
    pairings = re_pairings(labels, Seed(0))
    assert len(pairings) == 6 * 120 * 2  # all of them
    aucs = []
    for claimed, target in zip(scores, targets, strict=True):
        members = np.array([claimed[owners[one] == target] for one in pairings])
        others = np.array([claimed[owners[one] == NON_MEMBER] for one in pairings])
        above = members[:, :, None] > others[:, None]
        tied = members[:, :, None] == others[:, None]
        aucs.append(float((above + tied / 2).mean()))
    gains = group_gains(record_ranks(scores), targets, owners, labels)
    assert gains == pytest.approx(np.array(aucs) - 0.5)


def test_groups_of_all_records_gain_nothing() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 30))
    owners = np.repeat([0, 1, NON_MEMBER], 10)
    gains = group_gains(record_ranks(scores), np.array([0, 1]), owners, np.zeros(30, dtype=int))
    assert gains == pytest.approx(np.zeros(2), abs=1e-12)
