from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard.testing.worlds.planted_identity import EVERYONE, federate_people, person

QUICK = LinkSiamese(pairs=8000)


def links(attack, run, view=None):
    view = view or run.transcript.seen_by(SERVER)
    return attack.infer(view, run.targets, run.knowledge, Seed(0))


def gap(run, told) -> float:
    """How much higher the scores of two of one user are than those of two users."""
    same, other = [], []
    for who, claim in told.items():
        for one, score in zip(claim.others, claim.scores.tolist(), strict=True):
            alike = run.truth.users[one] == run.truth.users[who]
            (same if alike else other).append(score)
    return sum(same) / len(same) - sum(other) / len(other)


@pytest.mark.parametrize("updates", ["shadow", "simulated"])
def test_updates_of_one_user_match_across_rounds(updates, different) -> None:
    assert gap(different, links(replace(QUICK, updates=updates), different)) > 0.3


def test_where_all_are_alike_and_nothing_stays_nothing_matches(alike) -> None:
    assert abs(gap(alike, links(QUICK, alike))) < 0.05


def test_who_keeps_the_same_examples_is_linked_though_all_are_alike() -> None:
    still = federate_people([replace(person(0), name=f"user {n}") for n in EVERYONE], Seed(0))
    assert gap(still, links(QUICK, still)) > 0.1


def test_senders_of_one_round_and_shadow_devices_are_not_compared(different) -> None:
    for who, claim in links(QUICK, different).items():
        own = who.partition("-")[0]
        assert set(claim.others) == {t for t in different.targets if t.partition("-")[0] != own}


def test_a_match_has_no_direction(different) -> None:
    told = links(QUICK, different)
    first, second = "anon/0-0", "anon/1-0"
    there = told[first].scores[told[first].others.index(second)]
    back = told[second].scores[told[second].others.index(first)]
    torch.testing.assert_close(there, back)


@pytest.mark.slow
def test_lasting_pseudonyms_are_nobody_elses() -> None:
    run = federate_people([person(n) for n in EVERYONE], Seed(0), anonymous=False)
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        links(QUICK, run)


def test_one_round_teaches_no_match(different) -> None:
    view = different.transcript.seen_by(SERVER).during((0,))
    with pytest.raises(NeedsError, match="let it observe two rounds or more"):
        links(QUICK, different, view)
