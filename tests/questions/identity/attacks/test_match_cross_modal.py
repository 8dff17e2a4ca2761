from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.known_users import NO_EMBEDDINGS
from overheard.questions.identity.attacks.match_cross_modal import MatchCrossModal
from overheard.questions.identity.estimators.user_classes import UNHEARD
from tests.worlds.telling_who import claims, knowing, named

QUICK = MatchCrossModal(pairs=8000)


def test_users_are_named_by_their_embeddings_alone(different) -> None:
    # Other priors of those who are named, and the same embeddings: nothing is lost by it.
    priors = different.knowledge.people.priors
    backwards = dict(zip(priors, reversed(priors.values()), strict=True))
    told = claims(QUICK, knowing(different, priors=backwards))
    assert named(different, told) > 0.4


@pytest.mark.slow
def test_embeddings_of_others_name_others(different) -> None:
    own = different.knowledge.people.embeddings
    known = list(different.knowledge.people.priors)
    shifted = {**own, **{user: own[known[n - 1]] for n, user in enumerate(known)}}
    right, wrong = (
        named(different, claims(QUICK, run))
        for run in (different, knowing(different, embeddings=shifted))
    )
    assert wrong < right - 0.3


@pytest.mark.slow
def test_who_learns_from_everyone_knows_more(different) -> None:
    learned = replace(QUICK, learn_from="everyone")
    assert named(different, claims(learned, different)) > named(
        different, claims(QUICK, different)
    )


def test_a_user_without_an_embedding_comes_last(different) -> None:
    own = different.knowledge.people.embeddings
    less = {user: vector for user, vector in own.items() if user != "user 2"}
    for claim in claims(QUICK, knowing(different, embeddings=less)).values():
        assert claim.scores[claim.users.index("user 2")] == UNHEARD


def test_shadow_devices_of_holdout_users_teach_as_well(different) -> None:
    assert named(different, claims(replace(QUICK, updates="shadow"), different)) > 0.4


def test_without_embeddings_it_is_refused(different) -> None:
    with pytest.raises(NeedsError, match="has 0: take a data set that has them"):
        claims(QUICK, knowing(different, embeddings=NO_EMBEDDINGS))


def test_without_holdout_users_the_mend_is_told(different) -> None:
    known = different.knowledge.people.priors
    own = different.knowledge.people.embeddings
    less = {user: own[user] for user in known}
    with pytest.raises(NeedsError, match=r"holdout, or set learn_from = 'everyone'"):
        claims(QUICK, knowing(different, embeddings=less))


def test_alike_embeddings_tie(different) -> None:
    known = different.knowledge.people
    same = dict.fromkeys(known.embeddings, torch.ones(3))
    for claim in claims(QUICK, knowing(different, embeddings=same)).values():
        assert len(set(claim.scores.tolist())) == 1
