"""Senders are permuted within rounds, and who recurs in several runs alike in all of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, ClaimRow, Finding
from overheard.plans.registries import questions
from overheard.statistics.permutation_test import RePairedFits, adjusted_p_values
from tests.questions.null_p_values import assert_uniform, smallest_p_values

ROUNDS = 3


def run_of(users: Sequence[str], features: np.ndarray, seed: int = 0) -> list[Finding]:
    """One finding for each user and round; the nearer two features are, the more evidence.

    Args:
        users: the users, each of whom sends in every round.
        features: one row for each user and round.
        seed: the seed of the run.

    """
    cell = Cell("none", seed, (SERVER,), "link", "Link()", "same_sender", tuple(range(ROUNDS)))
    sent = [(user, number) for user in users for number in range(ROUNDS)]
    names = [f"anon/{number}-{user}" for user, number in sent]
    findings = []
    for place, (user, number) in enumerate(sent):
        others = [other for other, (_, when) in enumerate(sent) if when != number]
        findings.append(
            Finding(
                cell,
                (names[place],),
                ClaimRow(
                    tuple(-float(np.abs(features[place] - features[o]).sum()) for o in others),
                    candidates=tuple(names[o] for o in others),
                ),
                ClaimRow(tuple(float(sent[o][0] == user) for o in others)),
                true_user=user,
                sent_rounds=(number,),
            )
        )
    return findings


def fits_of(findings: list[Finding]) -> RePairedFits:
    return questions()["same_sender"].re_paired_fits(findings, (), Seed(0))


def random_features(seed: int, users: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(users * ROUNDS, 2))


def test_equal_runs_of_the_same_users_are_no_further_evidence() -> None:
    one = run_of("abcd", random_features(0, 4))
    again = [replace(f, cell=replace(f.cell, seed=seed)) for seed in (0, 1, 2) for f in one]
    alone, together = fits_of(one), fits_of(again)
    assert together.fits == pytest.approx(3 * alone.fits)
    assert together.smallest_p_value == alone.smallest_p_value


def test_runs_of_other_users_are_permuted_on_their_own() -> None:
    runs = [
        *run_of("ab", random_features(0, 2), seed=0),
        *run_of("cd", random_features(1, 2), seed=1),
    ]
    # 2^3 orders of each run, of which half only exchange names: 4 * 4 that differ.
    assert fits_of(runs).smallest_p_value == pytest.approx(1 / 16)
    assert len(fits_of(runs).fits) == 64
    same = [
        *run_of("ab", random_features(0, 2), seed=0),
        *run_of("ba", random_features(1, 2), seed=1),
    ]
    assert fits_of(same).smallest_p_value == pytest.approx(1 / 4)


def test_a_user_who_is_in_one_run_only_is_skipped_in_the_other() -> None:
    features = random_features(0, 3)
    both = [
        *run_of("ab", features[: 2 * ROUNDS], seed=0),
        *run_of("bc", features[ROUNDS:], seed=1),
    ]
    found = fits_of(both)
    # Three users in each of three rounds; all sums are those of orders of the targets.
    assert len(found.fits) == 6**3
    first, second = (
        fits_of(run).fits[:, 0]
        for run in (run_of("ab", features[: 2 * ROUNDS]), run_of("bc", features[ROUNDS:]))
    )
    possible = set(np.add.outer(first, second).round(9).ravel().tolist())
    assert set(found.fits[:, 0].round(9).tolist()) <= possible
    assert found.fits[0, 0] == pytest.approx(first[0] + second[0])


@pytest.mark.slow
def test_data_that_recur_but_tell_no_user_have_uniform_p_values() -> None:
    # With runs permuted independently, 9 % of these p-values are .025 or less.
    def fits(number: int) -> np.ndarray:
        random, features = np.random.default_rng(number), random_features(number, 5)
        runs = [
            run_of("abcde", features + 0.5 * random.normal(size=features.shape), seed)
            for seed in range(3)
        ]
        return fits_of([finding for run in runs for finding in run]).fits

    assert_uniform(smallest_p_values(fits))


def test_users_whose_data_recur_are_linked() -> None:
    features = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), ROUNDS, axis=0)
    found = fits_of(run_of("abcd", features))
    assert adjusted_p_values(found.fits).min() <= 0.025
