from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.questions.same_sender.attacks.link_wccn import LinkWccn
from overheard.testing.worlds.planted_identity import EVERYONE, federate_people, person


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
def test_updates_of_one_user_lie_near_each_other_in_all_rounds(updates, different) -> None:
    assert gap(different, links(LinkWccn(updates), different)) > 0.4


def test_where_all_are_alike_and_nothing_stays_none_are_nearer(alike) -> None:
    assert abs(gap(alike, links(LinkWccn(), alike))) < 0.1


def test_who_keeps_the_same_examples_is_linked_though_all_are_alike() -> None:
    still = federate_people([replace(person(0), name=f"user {n}") for n in EVERYONE], Seed(0))
    assert gap(still, links(LinkWccn(), still)) > 0.2


def test_senders_of_one_round_and_shadow_devices_are_not_compared(different) -> None:
    for who, claim in links(LinkWccn(), different).items():
        own = who.partition("-")[0]
        assert set(claim.others) == {t for t in different.targets if t.partition("-")[0] != own}


def test_nearness_has_no_direction_and_lies_within_one(different) -> None:
    told = links(LinkWccn(), different)
    for who, claim in told.items():
        assert float(claim.scores.abs().max()) <= 1 + 1e-6
        there = claim.scores[claim.others.index(one := claim.others[0])]
        back = told[one].scores[told[one].others.index(who)]
        assert float(there) == pytest.approx(float(back), abs=1e-6)


def test_lasting_pseudonyms_are_nobody_elses() -> None:
    run = federate_people([person(n) for n in EVERYONE], Seed(0), anonymous=False)
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        links(LinkWccn(), run)


def test_of_one_round_nobody_is_compared(different) -> None:
    view = different.transcript.seen_by(SERVER).during((0,))
    first = tuple(who for who in different.targets if who.startswith("anon/0"))
    with pytest.raises(NeedsError, match="pseudonyms = 'round'"):
        links(LinkWccn(), replace(different, targets=first), view)


def test_who_was_not_heard_is_refused_by_name(different) -> None:
    with pytest.raises(NeedsError, match="no update of anon/77-0 can be read"):
        links(LinkWccn(), replace(different, targets=(Party("anon/77-0"),)))


@pytest.mark.parametrize("settings", [{"layers": ()}, {"pieces": 1}, {"most_rounds": 0}])
def test_settings_that_mean_nothing_are_refused(settings) -> None:
    with pytest.raises(ValueError, match="or more"):
        LinkWccn(**settings)
