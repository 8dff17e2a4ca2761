from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.link_wccn import LinkWccn
from overheard.testing.planted_users import ALL_USERS, make_user, simulate_users, users_of
from tests.runs.scaffold_users import simulate_scaffold


def infer(attack, run, view=None):
    view = view or run.transcript.seen_by(SERVER)
    return attack.infer(view, run.targets, run.knowledge, Seed(0))


def gap(run, claims) -> float:
    """Return how much higher pairs of one user score than pairs of two users."""
    same, other = [], []
    for target, claim in claims.items():
        for compared, score in zip(claim.others, claim.scores.tolist(), strict=True):
            is_same = users_of(run)[compared] == users_of(run)[target]
            (same if is_same else other).append(score)
    return sum(same) / len(same) - sum(other) / len(other)


@pytest.mark.parametrize("updates", ["shadow", "simulated"])
def test_updates_of_one_user_are_similar_in_all_rounds(updates, different) -> None:
    assert gap(different, infer(LinkWccn(updates), different)) > 0.4


def test_finds_no_similarity_among_exchangeable_users_with_fresh_examples(alike) -> None:
    assert abs(gap(alike, infer(LinkWccn(), alike))) < 0.1


def test_links_clients_that_keep_their_examples_even_if_users_are_exchangeable() -> None:
    run = simulate_users([replace(make_user(0), name=f"user {n}") for n in ALL_USERS], Seed(0))
    assert gap(run, infer(LinkWccn(), run)) > 0.2


def test_compares_neither_senders_of_one_round_nor_shadow_devices(different) -> None:
    for target, claim in infer(LinkWccn(), different).items():
        own = target.partition("-")[0]
        assert set(claim.others) == {t for t in different.targets if t.partition("-")[0] != own}


def test_refuses_to_link_lasting_pseudonyms() -> None:
    run = simulate_users([make_user(n) for n in ALL_USERS], Seed(0), anonymous=False)
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        infer(LinkWccn(), run)


def test_refuses_to_compare_senders_of_one_round(different) -> None:
    view = different.transcript.seen_by(SERVER).during((0,))
    first = tuple(target for target in different.targets if target.startswith("anon/0"))
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        infer(LinkWccn(), replace(different, targets=first), view)


def test_refuses_an_unobserved_target_by_name(different) -> None:
    with pytest.raises(NeedsError, match="no update of anon/77-0 can be read"):
        infer(LinkWccn(), replace(different, targets=(Party("anon/77-0"),)))


@pytest.mark.slow
def test_under_scaffold_updates_of_one_user_match_across_rounds(tmp_path) -> None:
    run = simulate_scaffold(tmp_path)
    claims, same, other = infer(LinkWccn(), run), [], []
    for target, claim in claims.items():
        for compared, score in zip(claim.others, claim.scores.tolist(), strict=True):
            is_same = users_of(run)[compared] == users_of(run)[target]
            (same if is_same else other).append(score)
    # A guess is right for half of all such pairs. Without variates it is 0.44.
    right = [one > another for one in same for another in other]
    assert sum(right) / len(right) > 0.85
