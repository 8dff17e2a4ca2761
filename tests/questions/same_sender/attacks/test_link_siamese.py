from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard.testing.planted_users import ALL_USERS, make_user, simulate_users, users_of

QUICK = LinkSiamese(pairs=8000)


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
def test_updates_of_one_user_match_across_rounds(updates, different) -> None:
    assert gap(different, infer(replace(QUICK, updates=updates), different)) > 0.3


def test_finds_no_match_among_exchangeable_users_with_fresh_examples(alike) -> None:
    assert abs(gap(alike, infer(QUICK, alike))) < 0.05


def test_links_clients_that_keep_their_examples_even_if_users_are_exchangeable() -> None:
    run = simulate_users([replace(make_user(0), name=f"user {n}") for n in ALL_USERS], Seed(0))
    assert gap(run, infer(QUICK, run)) > 0.1


def test_compares_neither_senders_of_one_round_nor_shadow_devices(different) -> None:
    for target, claim in infer(QUICK, different).items():
        own = target.partition("-")[0]
        assert set(claim.others) == {t for t in different.targets if t.partition("-")[0] != own}


@pytest.mark.slow
def test_refuses_to_link_lasting_pseudonyms() -> None:
    run = simulate_users([make_user(n) for n in ALL_USERS], Seed(0), anonymous=False)
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        infer(QUICK, run)


def test_refuses_to_learn_from_one_round(different) -> None:
    view = different.transcript.seen_by(SERVER).during((0,))
    with pytest.raises(NeedsError, match="let it observe two rounds or more"):
        infer(QUICK, different, view)
