"""Claims about label shares are compared with other shares that might as well be true."""

from math import log

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.label_shares.statistics.re_paired_shares import (
    redrawn_share_fits,
    share_fits,
)
from overheard.statistics.permutation_test import re_pairings, sum_over_pairings
from tests.questions.null_p_values import assert_uniform, smallest_p_values


def shares(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.dirichlet([0.5] * 10, shape)


def test_a_fit_weighs_logarithms_of_claims_by_true_shares() -> None:
    claims = np.array([[[0.74, 0.26], [0.5, 0.5]]])
    truths = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    fits = redrawn_share_fits(claims, truths)
    # The floor is 0.01: ln 0.75 + ln 0.51, and ln 0.27 + ln 0.51. The truths' own logarithms
    # are ln 1.01 for each of two targets, at half their weight.
    own = log(1.01)
    assert fits[:, 0] == pytest.approx(
        [log(0.75) + log(0.51) - own, log(0.27) + log(0.51) - own]
    )


@pytest.mark.parametrize("attacks", [1, 6])
def test_independent_claims_have_uniform_p_values(attacks: int) -> None:
    def fits_of(number: int) -> np.ndarray:
        random = np.random.default_rng(number)
        common = shares(random, 1, 5)  # attacks are correlated
        claims = 0.5 * common + 0.5 * shares(random, attacks, 5)
        return redrawn_share_fits(claims, shares(random, 200, 5))

    assert_uniform(smallest_p_values(fits_of))


@pytest.mark.parametrize(("clients", "part", "least"), [(5, 0.5, 0.95), (10, 0.2, 0.8)])
def test_claims_with_a_part_of_the_truth_are_found(
    clients: int, part: float, least: float
) -> None:
    def fits_of(number: int) -> np.ndarray:
        random = np.random.default_rng(number)
        truths = shares(random, 200, clients)
        return redrawn_share_fits(
            part * truths[0] + (1 - part) * shares(random, 4, clients), truths
        )

    assert (smallest_p_values(fits_of) <= 0.025).mean() >= least


def test_one_client_and_one_run_are_enough_with_redrawn_partitions() -> None:
    def fits_of(number: int) -> np.ndarray:
        truths = shares(np.random.default_rng(number), 200, 1)
        return redrawn_share_fits(truths[:1], truths)

    assert (smallest_p_values(fits_of) <= 0.025).mean() > 0.95


def test_permuted_clients_of_a_recording_have_uniform_p_values() -> None:
    def fits_of(number: int) -> np.ndarray:
        random = np.random.default_rng(number)
        fits = share_fits(
            shares(random, 3, 6), np.arange(6), np.zeros(6, dtype=int), shares(random, 1, 6)
        )
        return sum_over_pairings(fits, re_pairings(np.zeros(6, dtype=int), Seed(number)))

    assert_uniform(smallest_p_values(fits_of))


def test_what_all_claims_have_in_common_fits_no_client_better() -> None:
    truths = shares(np.random.default_rng(0), 1, 6)
    claims = np.tile(truths.mean(1), (1, 6, 1))  # the shares of the cohort, for every client
    fits = share_fits(claims, np.arange(6), np.zeros(6, dtype=int), truths)
    sums = sum_over_pairings(fits, re_pairings(np.zeros(6, dtype=int), Seed(0)))
    assert sums == pytest.approx(0, abs=1e-12)


def test_a_client_of_several_runs_is_permuted_alike_in_all() -> None:
    truths = np.repeat(shares(np.random.default_rng(0), 1, 3), 2, axis=0)
    claims = np.tile(truths[:1], (1, 1, 1)).repeat(2, axis=0).reshape(1, 6, 10)
    units, runs = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    both = share_fits(claims, units, runs, truths)
    one = share_fits(claims[:, :3], units[:3], runs[:3], truths[:1])
    assert both == pytest.approx(2 * one)
