from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.known_facts.known_users import NO_EMBEDDINGS, KnownUsers
from overheard.questions.identity.attacks.match import MatchCrossModal
from overheard.questions.identity.estimators.user_classes import NO_UPDATE_SCORE
from tests.runs.identity_claims import infer_claims, share_identified, with_known_users

QUICK = MatchCrossModal(pairs=8000)


def test_names_users_by_their_embeddings_alone(different) -> None:
    # Permuted priors with the same embeddings do not reduce accuracy.
    priors = KnownUsers.of(different.knowledge).prior_examples
    backwards = dict(zip(priors, reversed(priors.values()), strict=True))
    found = infer_claims(QUICK, with_known_users(different, prior_examples=backwards))
    assert share_identified(different, found) > 0.4


@pytest.mark.slow
def test_permuted_embeddings_reduce_accuracy(different) -> None:
    all_embeddings = KnownUsers.of(different.knowledge).embeddings
    known = list(KnownUsers.of(different.knowledge).prior_examples)
    shifted = {
        **all_embeddings,
        **{user: all_embeddings[known[n - 1]] for n, user in enumerate(known)},
    }
    right, wrong = (
        share_identified(different, infer_claims(QUICK, run))
        for run in (different, with_known_users(different, embeddings=shifted))
    )
    assert wrong < right - 0.3


@pytest.mark.slow
def test_learning_from_candidate_users_raises_accuracy(different) -> None:
    learned = replace(QUICK, learn_from="everyone")
    assert share_identified(different, infer_claims(learned, different)) > share_identified(
        different, infer_claims(QUICK, different)
    )


def test_ranks_a_user_without_an_embedding_last(different) -> None:
    all_embeddings = KnownUsers.of(different.knowledge).embeddings
    fewer = {user: vector for user, vector in all_embeddings.items() if user != "user 2"}
    for claim in infer_claims(QUICK, with_known_users(different, embeddings=fewer)).values():
        assert claim.scores[claim.users.index("user 2")] == NO_UPDATE_SCORE


def test_refuses_to_run_without_embeddings(different) -> None:
    with pytest.raises(NeedsError, match="has 0: choose a data set that provides them"):
        infer_claims(QUICK, with_known_users(different, embeddings=NO_EMBEDDINGS))


def test_without_holdout_users_the_error_names_the_remedy(different) -> None:
    known = KnownUsers.of(different.knowledge).prior_examples
    all_embeddings = KnownUsers.of(different.knowledge).embeddings
    fewer = {user: all_embeddings[user] for user in known}
    with pytest.raises(NeedsError, match=r"holdout, or set learn_from = 'everyone'"):
        infer_claims(QUICK, with_known_users(different, embeddings=fewer))
