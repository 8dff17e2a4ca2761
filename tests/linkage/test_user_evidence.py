from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.known_updates import KnownUpdates
from overheard.linkage.user_evidence import (
    DEFAULT_WEIGHT,
    SHRINKAGES,
    UNCALIBRATED,
    UserEvidence,
    fit_user_evidence,
)
from overheard.linkage.wccn import mean_by_user

USERS, HOLDOUT, PIECES, ROUNDS, DIMS = 8, 4, 4, 3, 20

SPACES = len(SHRINKAGES)


def traits(seed: int = 0) -> Tensor:
    """Mean update of each user, holdout users last."""
    return torch.randn(USERS + HOLDOUT, DIMS, generator=Seed(seed).generator())


def updates(trait: Tensor, noise: float, seed: int, pieces: int = PIECES) -> KnownUpdates:
    """Chunks of each user and round: the user's trait, the round's mean, and noise."""
    draw = Seed(seed).generator()
    users = torch.arange(len(trait)).repeat_interleave(pieces).repeat(ROUNDS)
    rounds = torch.arange(ROUNDS).repeat_interleave(len(trait) * pieces)
    round_means = 5 * torch.randn(ROUNDS, DIMS, generator=draw)
    vectors = trait[users] + round_means[rounds]
    vectors = vectors + noise * torch.randn(vectors.shape, generator=draw)
    chunks = torch.arange(pieces).repeat(len(trait) * ROUNDS)
    names = tuple(f"user {number}" for number in range(len(trait)))
    return KnownUpdates(vectors, users, rounds, chunks, names, USERS)


def rows_of(known: KnownUpdates, rows: Tensor) -> KnownUpdates:
    """Return some of the updates, in this order."""
    numbers = {
        name: getattr(known, name)[rows] for name in ("vectors", "users", "rounds", "chunks")
    }
    return replace(known, **numbers)


def score_updates(evidence: UserEvidence, known: dict, count: int = 1) -> Tensor:
    """Evidence for each user from each single update."""
    places = [
        reading.project(one.vectors, one.rounds)
        for reading, one in zip(evidence.layer_evidence, known.values(), strict=True)
    ]
    return evidence.scores(places, torch.full((len(places[0]),), count))


def share_identified(scores: Tensor, values: Tensor) -> float:
    known = values < USERS
    return float((scores.argmax(1) == values)[known].double().mean())


KNOWN = {-1: updates(traits(), 1.0, 1)}
SENT = updates(traits(), 1.0, 1, 2)
"""Two further updates per user and round, with the same traits and round means."""


@cache
def learned() -> UserEvidence:
    return fit_user_evidence(KNOWN)


def test_identifies_users_by_new_updates() -> None:
    assert share_identified(score_updates(learned(), {-1: SENT}), SENT.users) > 0.9


def test_identical_users_are_identified_at_chance_level() -> None:
    identical = fit_user_evidence({-1: updates(0 * traits(), 1.0, 1)})
    sent = updates(0 * traits(), 1.0, 2, 8)
    # 192 updates: by chance one of 8, with a standard error of .024.
    assert (
        share_identified(score_updates(identical, {-1: sent}), sent.users) < 0.125 + 3 * 0.024
    )


def test_an_uninformative_layer_has_almost_no_weight() -> None:
    noise = updates(0 * traits(), 1.0, 3)
    both = fit_user_evidence({-1: KNOWN[-1], "all": noise})
    assert both.single_weights.shape == (2 * SPACES,)
    assert float(both.single_weights[SPACES:].sum()) < 0.1 * float(
        both.single_weights[:SPACES].sum()
    )


def test_scores_are_calibrated_log_probabilities() -> None:
    noisy = fit_user_evidence({-1: updates(traits(), 3.0, 1)})
    sent = updates(traits(), 3.0, 1, 8)
    scores = score_updates(noisy, {-1: sent})
    right = share_identified(scores, sent.users)
    chances = scores.softmax(1)[sent.users < USERS]
    assert 0.3 < right < 0.9
    assert float(chances.amax(1).mean()) == pytest.approx(right, abs=0.15)


def test_separates_unknown_from_known_users() -> None:
    strangers = torch.randn(USERS, DIMS, generator=Seed(9).generator())
    # The seed is that of the known updates, so the round means are the same.
    seen, unseen = (
        learned().open_set.probabilities(
            score_updates(learned(), {-1: updates(trait, 1.0, 1, 2)})
        )
        for trait in (traits()[:USERS], strangers)
    )
    assert float((unseen[:, None] > seen[None]).double().mean()) > 0.8
    # As many of either: the mean chance is about the share.
    assert float(torch.cat([seen, unseen]).mean()) == pytest.approx(0.5, abs=0.15)


def test_weights_grow_with_the_number_of_updates_up_to_a_limit() -> None:
    cosines = score_updates(
        replace(learned(), single_weights=torch.ones(SPACES).double(), update_count=1),
        {-1: SENT},
    )
    pair = replace(
        learned(),
        single_weights=torch.ones(SPACES).double(),
        mean_weights=3 * torch.ones(SPACES).double(),
    )
    assert pair.update_count == ROUNDS
    # Of 3 rounds: (1 - 1/2) / (1 - 1/3) = 3/4 of the way from 1 to 3 for two updates.
    for count, weight in ((1, 1.0), (2, 2.5), (3, 3.0), (50, 3.0)):
        assert score_updates(pair, {-1: SENT}, count).allclose(weight * cosines)


def test_a_user_without_updates_does_not_change_other_scores() -> None:
    known = KNOWN[-1]
    rest = known.users != 2
    reduced = rows_of(known, rest)
    evidence = fit_user_evidence({-1: reduced})
    assert evidence.has_updates.tolist() == [number != 2 for number in range(USERS)]
    scores = score_updates(evidence, {-1: SENT})
    assert not scores[:, 2].any()
    assert share_identified(scores, SENT.users.where(SENT.users != 2, USERS)) > 0.8


def test_without_two_chunks_nothing_is_calibrated() -> None:
    single = updates(traits(), 1.0, 1, 1)
    once = single.rounds == 0
    alone = rows_of(single, once)
    evidence = fit_user_evidence({-1: alone})
    assert evidence.single_weights.tolist() == [DEFAULT_WEIGHT / SPACES] * SPACES
    assert evidence.open_set is UNCALIBRATED
    assert evidence.link_threshold == float("inf")


def test_zero_updates_give_no_evidence() -> None:
    silent = replace(KNOWN[-1], vectors=0 * KNOWN[-1].vectors)
    scores = score_updates(
        fit_user_evidence({-1: silent}), {-1: replace(SENT, vectors=0 * SENT.vectors)}
    )
    assert not scores.any()


def test_evidence_does_not_depend_on_the_order() -> None:
    known = KNOWN[-1]
    order = torch.randperm(len(known.users), generator=Seed(5).generator())
    shuffled = rows_of(known, order)
    again = score_updates(fit_user_evidence({-1: shuffled}), {-1: SENT})
    assert again.allclose(score_updates(learned(), {-1: SENT}), atol=1e-2, rtol=1e-3)


def test_updates_of_one_sender_are_more_similar_than_others() -> None:
    # Averaged over four chunks, the noise is half as large.
    sent = updates(traits(), 0.5, 1, 1)
    near = learned().similarity(
        [learned().layer_evidence[0].project(sent.vectors, sent.rounds)]
    )
    assert float(near.max()) <= 1 + 1e-9
    assert near.diagonal().allclose(torch.ones(len(near)).double())
    same = sent.users[:, None] == sent.users
    apart = sent.rounds[:, None] != sent.rounds
    same_user, different_users = near[same & apart], near[~same & apart]
    assert float((same_user > learned().link_threshold).double().mean()) > 0.9
    assert float((different_users > learned().link_threshold).double().mean()) < 0.1


def test_mean_projections_identify_better_than_single_ones() -> None:
    faint = fit_user_evidence({-1: updates(traits(), 4.0, 1)})
    sent = updates(traits(), 4.0, 1, 6)
    places = faint.layer_evidence[0].project(sent.vectors, sent.rounds)
    means = mean_by_user(places, sent.users, USERS + HOLDOUT)
    many = faint.scores([means], torch.full((USERS + HOLDOUT,), 6 * ROUNDS))
    one = share_identified(score_updates(faint, {-1: sent}), sent.users)
    assert share_identified(many, torch.arange(USERS + HOLDOUT)) > one + 0.1
