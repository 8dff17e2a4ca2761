from dataclasses import replace

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.prior_updates import KnownUpdates
from overheard.linkage.stranger import UNKNOWN
from overheard.linkage.user_evidence import SHRINKAGES, WARMTH, UserEvidence, learn_evidence
from overheard.linkage.user_space import mean_by

USERS, HOLDOUT, PIECES, ROUNDS, DIMS = 8, 4, 4, 3, 20

SPACES = len(SHRINKAGES)


def traits(seed: int = 0) -> Tensor:
    """Mean update of each user, holdout users last."""
    return torch.randn(USERS + HOLDOUT, DIMS, generator=Seed(seed).generator())


def updates(trait: Tensor, noise: float, seed: int, pieces: int = PIECES) -> KnownUpdates:
    """Chunks of each user and round: the user's trait, the round's mean, and noise."""
    draw = Seed(seed).generator()
    people = torch.arange(len(trait)).repeat_interleave(pieces).repeat(ROUNDS)
    rounds = torch.arange(ROUNDS).repeat_interleave(len(trait) * pieces)
    round_means = 5 * torch.randn(ROUNDS, DIMS, generator=draw)
    vectors = trait[people] + round_means[rounds]
    vectors = vectors + noise * torch.randn(vectors.shape, generator=draw)
    chunks = torch.arange(pieces).repeat(len(trait) * ROUNDS)
    names = tuple(f"user {number}" for number in range(len(trait)))
    return KnownUpdates(vectors, people, rounds, chunks, names, USERS)


def score_updates(evidence: UserEvidence, known: dict, count: int = 1) -> Tensor:
    """Evidence for each user from each single update."""
    places = [
        reading.places(one.vectors, one.rounds)
        for reading, one in zip(evidence.readings, known.values(), strict=True)
    ]
    return evidence.scores(places, torch.full((len(places[0]),), count))


def share_identified(scores: Tensor, people: Tensor) -> float:
    known = people < USERS
    return float((scores.argmax(1) == people)[known].double().mean())


KNOWN = {-1: updates(traits(), 1.0, 1)}
LEARNED = learn_evidence(KNOWN)
SENT = updates(traits(), 1.0, 1, 2)
"""Two further updates per user and round, with the same traits and round means."""


def test_identifies_users_by_new_updates() -> None:
    assert share_identified(score_updates(LEARNED, {-1: SENT}), SENT.people) > 0.9


def test_identical_users_are_identified_at_chance_level() -> None:
    identical = learn_evidence({-1: updates(0 * traits(), 1.0, 1)})
    sent = updates(0 * traits(), 1.0, 2, 8)
    # 192 updates: by chance one of 8, with a standard error of .024.
    assert (
        share_identified(score_updates(identical, {-1: sent}), sent.people) < 0.125 + 3 * 0.024
    )


def test_an_uninformative_layer_has_almost_no_weight() -> None:
    noise = updates(0 * traits(), 1.0, 3)
    both = learn_evidence({-1: KNOWN[-1], "all": noise})
    assert both.of_one.shape == (2 * SPACES,)
    assert float(both.of_one[SPACES:].sum()) < 0.1 * float(both.of_one[:SPACES].sum())


def test_scores_are_calibrated_log_probabilities() -> None:
    noisy = learn_evidence({-1: updates(traits(), 3.0, 1)})
    sent = updates(traits(), 3.0, 1, 8)
    scores = score_updates(noisy, {-1: sent})
    right = share_identified(scores, sent.people)
    chances = scores.softmax(1)[sent.people < USERS]
    assert 0.3 < right < 0.9
    assert float(chances.amax(1).mean()) == pytest.approx(right, abs=0.15)


def test_separates_unknown_from_known_users() -> None:
    strangers = torch.randn(USERS, DIMS, generator=Seed(9).generator())
    # The seed is that of the known updates, so the round means are the same.
    seen, unseen = (
        LEARNED.stranger.chances(score_updates(LEARNED, {-1: updates(trait, 1.0, 1, 2)}))
        for trait in (traits()[:USERS], strangers)
    )
    assert float((unseen[:, None] > seen[None]).double().mean()) > 0.8
    # As many of either: the mean chance is about the share.
    assert float(torch.cat([seen, unseen]).mean()) == pytest.approx(0.5, abs=0.15)


def test_weights_grow_with_the_number_of_updates_up_to_a_limit() -> None:
    cosines = score_updates(
        replace(LEARNED, of_one=torch.ones(SPACES).double(), many=1), {-1: SENT}
    )
    pair = replace(
        LEARNED, of_one=torch.ones(SPACES).double(), of_many=3 * torch.ones(SPACES).double()
    )
    assert pair.many == ROUNDS
    # Of 3 rounds: (1 - 1/2) / (1 - 1/3) = 3/4 of the way from 1 to 3 for two updates.
    for count, weight in ((1, 1.0), (2, 2.5), (3, 3.0), (50, 3.0)):
        assert score_updates(pair, {-1: SENT}, count).allclose(weight * cosines)


def test_identical_users_tie() -> None:
    trait = traits()
    trait[1] = trait[0]
    known = updates(trait, 1.0, 1)
    is_twin, is_first = known.people == 1, known.people == 0
    vectors = known.vectors.clone()
    vectors[is_twin] = vectors[is_first]
    scores = score_updates(learn_evidence({-1: replace(known, vectors=vectors)}), {-1: SENT})
    assert scores[:, 0].allclose(scores[:, 1], atol=1e-6)


def test_a_user_without_updates_does_not_change_other_scores() -> None:
    known = KNOWN[-1]
    rest = known.people != 2
    reduced = replace(
        known,
        vectors=known.vectors[rest],
        people=known.people[rest],
        rounds=known.rounds[rest],
        chunks=known.chunks[rest],
    )
    evidence = learn_evidence({-1: reduced})
    assert evidence.heard.tolist() == [number != 2 for number in range(USERS)]
    scores = score_updates(evidence, {-1: SENT})
    assert not scores[:, 2].any()
    assert share_identified(scores, SENT.people.where(SENT.people != 2, USERS)) > 0.8


def test_without_two_chunks_nothing_is_calibrated() -> None:
    single = updates(traits(), 1.0, 1, 1)
    once = single.rounds == 0
    alone = replace(
        single,
        vectors=single.vectors[once],
        people=single.people[once],
        rounds=single.rounds[once],
        chunks=single.chunks[once],
    )
    evidence = learn_evidence({-1: alone})
    assert evidence.of_one.tolist() == [WARMTH / SPACES] * SPACES
    assert evidence.stranger is UNKNOWN
    assert evidence.least == float("inf")


def test_zero_updates_give_no_evidence() -> None:
    silent = replace(KNOWN[-1], vectors=0 * KNOWN[-1].vectors)
    scores = score_updates(
        learn_evidence({-1: silent}), {-1: replace(SENT, vectors=0 * SENT.vectors)}
    )
    assert not scores.any()


def test_evidence_does_not_depend_on_the_order() -> None:
    known = KNOWN[-1]
    order = torch.randperm(len(known.people), generator=Seed(5).generator())
    shuffled = replace(
        known,
        vectors=known.vectors[order],
        people=known.people[order],
        rounds=known.rounds[order],
        chunks=known.chunks[order],
    )
    again = score_updates(learn_evidence({-1: shuffled}), {-1: SENT})
    assert again.allclose(score_updates(LEARNED, {-1: SENT}), atol=1e-2, rtol=1e-3)


def test_updates_of_one_sender_are_more_similar_than_others() -> None:
    # Averaged over four chunks, the noise is half as large.
    sent = updates(traits(), 0.5, 1, 1)
    near = LEARNED.nearness([LEARNED.readings[0].places(sent.vectors, sent.rounds)])
    assert float(near.max()) <= 1 + 1e-9
    assert near.diagonal().allclose(torch.ones(len(near)).double())
    same = sent.people[:, None] == sent.people
    apart = sent.rounds[:, None] != sent.rounds
    same_user, different_users = near[same & apart], near[~same & apart]
    assert float((same_user > LEARNED.least).double().mean()) > 0.9
    assert float((different_users > LEARNED.least).double().mean()) < 0.1


def test_mean_projections_identify_better_than_single_ones() -> None:
    faint = learn_evidence({-1: updates(traits(), 4.0, 1)})
    sent = updates(traits(), 4.0, 1, 6)
    places = faint.readings[0].places(sent.vectors, sent.rounds)
    means = mean_by(places, sent.people, USERS + HOLDOUT)
    many = faint.scores([means], torch.full((USERS + HOLDOUT,), 6 * ROUNDS))
    one = share_identified(score_updates(faint, {-1: sent}), sent.people)
    assert share_identified(many, torch.arange(USERS + HOLDOUT)) > one + 0.1
