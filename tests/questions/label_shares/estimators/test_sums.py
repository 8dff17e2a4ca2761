"""Sums over cohorts that vary tell the shares of single clients; wrong cohorts are noticed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from overheard.core.attack import check_needs
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.participation.observed_sums import ObservedSums, find_sums
from overheard.questions.label_shares.attacks.sum_shares import (
    FEW_SUMS,
    HIDDEN_SIZES,
    MOST_DRIFT,
    MOST_UNEXPLAINED,
    SumShares,
    doubt_count,
    doubt_weights,
    find_doubt,
)
from overheard.questions.label_shares.estimators.sum_posterior import (
    SharesPosterior,
    draw_shares,
)
from overheard.questions.label_shares.estimators.sum_response import (
    SumReadings,
    SumResponse,
    contrasts,
    fit_response,
)

CLIENTS, ROUNDS, CLASSES = 8, 24, 5
SERVER_ALONE = frozenset({SERVER})


def drawn(*, is_moving: bool = False) -> tuple[SumReadings, np.ndarray]:
    """Return readings that respond linearly to shares, and the true shares of clients.

    Clients that move have a single label in the last round. The truth is then the mean over the
    rounds of their own.
    """
    draws = np.random.default_rng(3)
    response = draws.normal(size=(ROUNDS, CLASSES, 10))
    virtual_shares = draws.dirichlet(np.ones(CLASSES), 80)
    truth = draws.dirichlet(np.full(CLASSES, 0.5), CLIENTS)

    def read(shares: np.ndarray) -> np.ndarray:
        """Return readings, (clients, rounds, numbers), with noise that lasts and noise anew."""
        lasting = draws.normal(size=(len(shares), 1, 10)) * 0.1
        anew = draws.normal(size=(len(shares), ROUNDS, 10)) * 0.1
        return np.einsum("vtc,tcd->vtd", shares, response) + lasting + anew

    def stay(shares: np.ndarray) -> np.ndarray:
        return np.repeat(shares[:, None], ROUNDS, axis=1)

    cohorts = np.array([draws.permutation(CLIENTS) < CLIENTS // 2 for _ in range(ROUNDS)])
    weights = cohorts / cohorts.sum(axis=1, keepdims=True)
    moved = (np.linspace(0, 1, ROUNDS) if is_moving else np.zeros(ROUNDS))[:, None]
    shares = (1 - moved) * stay(truth) + moved * stay(
        np.eye(CLASSES)[np.arange(CLIENTS) % CLASSES]
    )
    sums = np.einsum("ti,itd->td", weights, read(shares))
    halves = np.arange(80) % 2
    readings = SumReadings(
        read(stay(virtual_shares)), virtual_shares, halves, sums, np.arange(ROUNDS), weights
    )
    return readings, np.einsum("ti,itc->ic", cohorts / cohorts.sum(axis=0), shares)


def posterior(readings: SumReadings, sweeps: int = 20) -> SharesPosterior:
    return draw_shares(fit_response(readings), CLASSES, sweeps, np.random.default_rng(0))


def test_contrasts_are_orthonormal_differences() -> None:
    basis = contrasts(4)
    assert basis.T @ basis == pytest.approx(np.eye(3))
    assert basis.sum(axis=0) == pytest.approx(np.zeros(3))


@pytest.mark.slow
def test_the_posterior_contains_the_truth_and_beats_the_mean_of_all_clients() -> None:
    readings, truth = drawn()
    found = posterior(readings)
    error = np.abs(np.median(found.draws, axis=0) - truth).sum(axis=1).mean()
    assert error < 0.3 * np.abs(truth - truth.mean(axis=0)).sum(axis=1).mean()
    low, high = np.quantile(found.draws, (0.05, 0.95), axis=0)
    assert ((low <= truth) & (truth <= high)).mean() > 0.75
    assert (found.wrong, found.exchange_p) == (0, 0.05)


def test_shares_drift_around_their_mean_over_the_rounds_of_a_client() -> None:
    one = np.eye(2)
    response = SumResponse.of(
        np.zeros((3, 2)),
        np.stack([one, one, one]),
        np.array([[1.0, 0], [0, 1], [1, 0]]),
        np.eye(3),
        np.zeros((3, 3)),
        np.array([0, 1, 2]),
    )
    # A walk over the whole span has -3 between its ends, which is 1.5 and -1.5 around its mean.
    # Shares of three labels differ by a third of that in each contrast. The other client is
    # read once, so that it is at its mean.
    expected = np.kron([[0.5, 0, -0.5], [0, 0, 0], [-0.5, 0, 0.5]], one)
    assert response.drift() == pytest.approx(expected)


@pytest.mark.slow
def test_constant_shares_do_not_drift_and_moving_ones_do() -> None:
    constant, _ = drawn()
    moving, truth = drawn(is_moving=True)
    assert posterior(constant, sweeps=1).drift == 0
    found = posterior(moving)
    assert found.drift > 0.01
    low, high = np.quantile(found.draws, (0.05, 0.95), axis=0)
    assert ((low <= truth) & (truth <= high)).mean() > 0.75


def test_a_drift_that_is_large_or_erratic_is_doubted() -> None:
    fits = SharesPosterior(
        np.zeros((1, 1, 2)),
        scale=1.0,
        extra=0.0,
        drift=MOST_DRIFT,
        unexplained=0.0,
        wrong=0,
        exchange_p=None,
    )
    assert find_doubt(fits, 40) is None
    # New noise in each sum, such as that of a defense, is no drift.
    assert find_doubt(replace(fits, drift=0.0, unexplained=MOST_UNEXPLAINED), 40) is None
    for doubted in (
        replace(fits, drift=2 * MOST_DRIFT),
        replace(fits, unexplained=MOST_UNEXPLAINED),
    ):
        doubt = find_doubt(doubted, 40)
        assert doubt is not None
        assert "change so much over the rounds" in doubt


@pytest.mark.slow
def test_a_wrong_cohort_is_left_out() -> None:
    readings, _ = drawn()
    weights = readings.weights.copy()
    weights[5] = (weights[5] == 0) / (weights[5] == 0).sum()  # all others took part
    assert posterior(replace(readings, weights=weights), sweeps=1).wrong == 1


@pytest.mark.slow
def test_cohorts_that_are_all_wrong_fit_no_better_than_others() -> None:
    readings, _ = drawn()
    order = np.random.default_rng(1).permutation(ROUNDS)
    found = posterior(replace(readings, weights=readings.weights[order]), sweeps=1)
    assert found.exchange_p is not None
    assert found.exchange_p > 0.05


def transcript_of(
    cohorts: list[list[int]], *announced_to: Party, total: int | None = 20
) -> Transcript:
    """Return a run in which each client adds its number; sums are read by the server too."""
    messages = []
    for number, cohort in enumerate(cohorts):
        members = frozenset(map(client, cohort))
        everyone = frozenset(map(client, range(4)))
        mean = torch.tensor([sum(cohort) / len(cohort)])
        messages.append(Message(number, SERVER, everyone, Broadcast({"w": torch.zeros(1)})))
        for one in cohort:
            delta = {"w": torch.tensor([float(one)])}
            messages.append(Message(number, client(one), frozenset(), Update(delta, 10)))
        body = Aggregate({"w": mean}, members, total)
        messages.append(Message(number, COHORT, SERVER_ALONE.union(announced_to), body))
    return Transcript(tuple(messages))


def view_of(cohorts: list[list[int]], *observers: Party, total: int | None = 20) -> View:
    """Return what the server and these observers see of it."""
    return transcript_of(cohorts, total=total).seen_by(SERVER, *observers)


def test_sums_name_their_clients_and_their_sizes_follow() -> None:
    found = find_sums(view_of([[0, 1], [1, 2], [0, 2]]), 100)
    assert found is not None
    assert found.sizes == (10, 10, 10)
    assert found.weights.tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]
    assert [float(delta["w"]) for delta in found.deltas] == [0.5, 1.5, 1.0]
    assert (found.rank, found.separable) == (3, 3)


def test_an_observer_subtracts_its_own_update() -> None:
    found = find_sums(view_of([[0, 1], [1, 2], [0, 2]], client(0)), 100)
    assert found is not None
    assert found.clients == (client(1), client(2))
    assert [float(delta["w"]) for delta in found.deltas] == pytest.approx([1.0, 1.5, 2.0])


def test_a_client_is_refused_where_it_does_not_know_who_took_part() -> None:
    cohorts, listener = [[0, 1], [1, 2], [0, 2]], client(0)
    hidden = transcript_of(cohorts).seen_by(listener)
    assert COHORT not in hidden.senders()
    assert len(hidden.updates(COHORT)) == 2  # consecutive broadcasts give the sums themselves
    with pytest.raises(NeedsError, match="who took part in a round must be known"):
        check_needs(SumShares(), hidden, client(1), Knowledge(CLASSES))
    with pytest.raises(NeedsError, match="who took part in a round must be known"):
        SumShares().infer(hidden, (client(1),), Knowledge(CLASSES), Seed(0))
    announced = find_sums(transcript_of(cohorts, listener).seen_by(listener), 100)
    assert announced is not None
    assert announced.clients == (client(1), client(2))
    assert announced.weights.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert [float(delta["w"]) for delta in announced.deltas] == pytest.approx([1.0, 1.5, 2.0])


def test_a_trend_of_who_takes_part_is_noticed() -> None:
    readings, _ = drawn()
    rounds = tuple(range(ROUNDS))
    clients = tuple(map(client, range(CLIENTS)))
    at_random = ObservedSums(clients, rounds, (), (), readings.weights, None)
    assert at_random.trend_p() > 0.01
    weights = np.zeros((ROUNDS, CLIENTS))
    weights[: ROUNDS // 2, :4], weights[ROUNDS // 2 :, 4:] = 0.25, 0.25
    assert replace(at_random, weights=weights).trend_p() < 1e-6


def test_hidden_sizes_that_may_differ_are_doubted() -> None:
    cohorts = [[0, 1], [1, 2], [0, 2]]
    hidden, known = (
        find_sums(view_of(cohorts, total=None), 100),
        find_sums(view_of(cohorts), 100),
    )
    assert hidden is not None
    assert known is not None
    assert doubt_weights(hidden, (50, 5000)) == HIDDEN_SIZES
    assert doubt_weights(hidden, (50, 100)) is None
    assert doubt_weights(known, (50, 5000)) is None


def test_the_cohort_is_no_target() -> None:
    with pytest.raises(NeedsError, match="single clients"):
        SumShares().infer(view_of([[0, 1]]), (COHORT,), Knowledge(CLASSES), Seed(0))


def test_fixed_cohorts_are_refused_with_their_rank() -> None:
    groups = view_of([[0, 1], [2, 3]] * 3)
    with pytest.raises(NeedsError, match="and the sums have rank 2 of 4 clients"):
        SumShares().infer(groups, (client(0),), Knowledge(CLASSES), Seed(0))


def test_fewer_sums_than_clients_are_doubted() -> None:
    few, enough = (
        find_sums(view_of(cohorts), 100)
        for cohorts in ([[0, 1], [1, 2]], [[0, 1], [1, 2], [0, 2]])
    )
    assert few is not None
    assert enough is not None
    assert (doubt_count(few), doubt_count(enough)) == (FEW_SUMS, None)
