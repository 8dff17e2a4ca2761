"""Matchers of updates link senders of one user."""

from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard.questions.same_sender.attacks.link_wccn import LinkWccn
from overheard.testing.planted_users import ALL_USERS, make_user, simulate_users, users_of
from tests.runs.scaffold_users import simulate_scaffold

SIAMESE, WCCN = LinkSiamese(pairs=8000), LinkWccn()

each_attack = pytest.mark.parametrize("attack", [SIAMESE, WCCN], ids=["siamese", "wccn"])


def infer(attack, run, view=None):
    view = view or run.transcript.seen_by(SERVER)
    return attack.infer(view, run.targets, run.knowledge, Seed(0))


def pair_scores(run, claims) -> tuple[list[float], list[float]]:
    """Return the scores of pairs of one user, and of pairs of two users."""
    same, other = [], []
    for target, claim in claims.items():
        for compared, score in zip(claim.others, claim.scores.tolist(), strict=True):
            is_same = users_of(run)[compared] == users_of(run)[target]
            (same if is_same else other).append(score)
    return same, other


def gap(run, claims) -> float:
    """Return how much higher pairs of one user score than pairs of two users."""
    same, other = pair_scores(run, claims)
    return sum(same) / len(same) - sum(other) / len(other)


@pytest.mark.parametrize(("attack", "least"), [(SIAMESE, 0.3), (WCCN, 0.4)])
@pytest.mark.parametrize("updates", ["shadow", "simulated"])
def test_updates_of_one_user_match_across_rounds(attack, least, updates, different) -> None:
    assert gap(different, infer(replace(attack, updates=updates), different)) > least


@pytest.mark.parametrize(("attack", "most"), [(SIAMESE, 0.05), (WCCN, 0.1)])
def test_finds_no_match_among_exchangeable_users_with_fresh_examples(
    attack, most, alike
) -> None:
    assert abs(gap(alike, infer(attack, alike))) < most


@pytest.mark.parametrize(("attack", "least"), [(SIAMESE, 0.1), (WCCN, 0.2)])
def test_links_clients_that_keep_their_examples_even_if_users_are_exchangeable(
    attack, least
) -> None:
    run = simulate_users([replace(make_user(0), name=f"user {n}") for n in ALL_USERS], Seed(0))
    assert gap(run, infer(attack, run)) > least


@each_attack
def test_compares_neither_senders_of_one_round_nor_shadow_devices(attack, different) -> None:
    for target, claim in infer(attack, different).items():
        own = target.partition("-")[0]
        assert set(claim.others) == {t for t in different.targets if t.partition("-")[0] != own}


@pytest.mark.slow
@each_attack
def test_refuses_to_link_lasting_pseudonyms(attack) -> None:
    run = simulate_users([make_user(n) for n in ALL_USERS], Seed(0), anonymous=False)
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        infer(attack, run)


def test_refuses_to_learn_from_one_round_or_to_compare_its_senders(different) -> None:
    view = different.transcript.seen_by(SERVER).during((0,))
    with pytest.raises(NeedsError, match="let it observe two rounds or more"):
        infer(SIAMESE, different, view)
    first = tuple(target for target in different.targets if target.startswith("anon/0"))
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        infer(WCCN, replace(different, targets=first), view)


def test_refuses_an_unobserved_target_by_name(different) -> None:
    with pytest.raises(NeedsError, match="no update of anon/77-0 can be read"):
        infer(WCCN, replace(different, targets=(Party("anon/77-0"),)))


@pytest.mark.slow
def test_under_scaffold_updates_of_one_user_match_across_rounds(tmp_path) -> None:
    run = simulate_scaffold(tmp_path)
    same, other = pair_scores(run, infer(WCCN, run))
    # A guess is right for half of all such pairs. Without variates it is 0.44.
    right = [one > another for one in same for another in other]
    assert sum(right) / len(right) > 0.85
