"""Fits of sums tell the holder of a record; data that are alike, or wrong cohorts, do not."""

import numpy as np
import pytest

from overheard.participation.record_holders import HolderOdds, fit_holders

CLIENTS, ROUNDS, RECORDS, OUTSIDERS = 10, 60, 200, 200


def drawn(effect: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return fits of sums, the weights of clients, and the holder of each record; -1 = none."""
    draws = np.random.default_rng(seed)
    took_part = np.array([draws.permutation(CLIENTS) < CLIENTS // 2 for _ in range(ROUNDS)])
    holders = np.append(np.arange(RECORDS) % CLIENTS, np.full(OUTSIDERS, -1))
    likeness = 0.3 * draws.normal(size=(CLIENTS, len(holders)))
    fits = draws.normal(size=(ROUNDS, len(holders))) + took_part @ likeness
    fits[:, :RECORDS] += effect * took_part[:, holders[:RECORDS]]
    return fits, took_part / took_part.sum(axis=1, keepdims=True), holders


def odds_of(fits: np.ndarray, weights: np.ndarray) -> HolderOdds:
    return fit_holders(fits, np.ones_like(fits), weights, np.arange(len(fits)))


def chances_of(odds: HolderOdds) -> np.ndarray:
    shares = np.exp(odds.log_ratios - odds.log_ratios.max(axis=0))
    chances: np.ndarray = shares / shares.sum(axis=0)
    return chances


def test_the_holder_is_named_and_probabilities_are_right_as_often_as_they_say() -> None:
    fits, weights, holders = drawn(effect=0.9)
    odds = odds_of(fits, weights)
    chances = chances_of(odds)[:, :RECORDS]
    right = chances.argmax(axis=0) == holders[:RECORDS]
    # A fit of variance 1 and 60 rounds: the effect .9 of a client is about 2.5 deviations of
    # the difference between two clients.
    assert right.mean() > 0.6
    said = chances.max(axis=0).mean()
    assert right.mean() - 0.2 < said < right.mean() + 0.05
    assert odds.nobody[RECORDS:].mean() > odds.nobody[:RECORDS].mean() + 0.2


def test_records_that_are_only_like_the_data_of_a_client_name_no_holder() -> None:
    fits, weights, _ = drawn(effect=0.0)
    assert chances_of(odds_of(fits, weights)).max(axis=0).mean() < 0.25


def test_wrong_cohorts_name_no_holder() -> None:
    fits, weights, holders = drawn(effect=0.9)
    shuffled = weights[np.random.default_rng(1).permutation(ROUNDS)]
    chances = chances_of(odds_of(fits, shuffled))[:, :RECORDS]
    right = chances.argmax(axis=0) == holders[:RECORDS]
    assert right.mean() < 0.2
    assert chances.max(axis=0).mean() < 0.35


@pytest.mark.slow
@pytest.mark.parametrize("records", [5, RECORDS])
def test_exchanges_tell_wrong_cohorts_however_few_records_are_held(records: int) -> None:
    fits, weights, _ = drawn(effect=0.9)
    fits = fits[:, RECORDS - records :]
    wrong = [
        odds_of(fits, weights[np.random.default_rng(seed).permutation(ROUNDS)]).cohorts_p
        for seed in range(1, 5)
    ]
    assert odds_of(fits, weights).cohorts_p <= 0.05
    assert sorted(wrong)[1] > 0.05


def test_single_updates_of_one_round_need_no_other_round() -> None:
    draws = np.random.default_rng(0)
    holders = np.arange(RECORDS) % CLIENTS
    fits = draws.normal(size=(CLIENTS, RECORDS))
    fits[holders, np.arange(RECORDS)] += 3
    odds = fit_holders(fits, np.ones_like(fits), np.eye(CLIENTS), np.zeros(CLIENTS, int))
    assert (chances_of(odds).argmax(axis=0) == holders).mean() > 0.8
    assert odds.cohorts_p == 0


def test_sums_that_say_nothing_leave_the_others_as_they_are() -> None:
    fits, weights, holders = drawn(effect=1.5)
    fits[: ROUNDS // 2 + 1] = 0.0
    chances = chances_of(odds_of(fits, weights))[:, :RECORDS]
    assert (chances.argmax(axis=0) == holders[:RECORDS]).mean() > 0.6


def test_scale_and_sums_that_say_nothing_change_no_odds() -> None:
    fits, weights, _ = drawn(effect=0.9)
    scaled = fit_holders(7 * fits, np.full_like(fits, 49.0), weights, np.arange(ROUNDS))
    assert scaled.log_ratios == pytest.approx(odds_of(fits, weights).log_ratios, abs=1e-3)
    nothing = odds_of(np.zeros_like(fits), weights)
    assert np.isfinite(nothing.log_ratios).all()
    assert np.ptp(chances_of(nothing), axis=0).max() < 1e-3
