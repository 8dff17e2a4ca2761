from overheard.papers.deanonymization.identifiers import PUBLISHED, identifiers, published
from overheard.papers.deanonymization.plans import (
    every_sender,
    every_update,
    people,
    plan,
    setting,
)
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, WORLDS
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn


def test_both_devices_of_a_user_take_part_as_published() -> None:
    for world in WORLDS:
        made = plan(world, people("random"), (every_update((published(world, "shadow"),)),))
        assert made.data.people is not None
        assert made.data.people.shadow_devices
        assert made.data.people.share == 0.5


def test_published_updates_are_told_apart_one_by_one() -> None:
    attacks = (published(BLOGS, "shadow"),)
    assert every_update(attacks).pseudonyms == "round"
    assert every_sender(attacks).pseudonyms == "run"
    assert "defenses" in every_update(attacks, adapts=True).knows
    assert "defenses" not in every_update(attacks).knows


def test_published_attacks_read_the_layer_of_their_world_and_ours_stands_beside_them() -> None:
    attacks = identifiers(BLOGS, "simulated")
    assert [type(one) for one in attacks] == [*PUBLISHED, ReidentifyWccn]
    assert all("layer='last_bias'" in repr(one) for one in attacks[:-1])
    assert published(BLOGS, "shadow", 1).layer == 1


def test_a_reduced_run_says_what_was_cut() -> None:
    threats = (every_update((published(WISDM, "shadow"),)),)
    run, full = (plan(world, people("random"), threats) for world in (HURRIED, WISDM))
    told = setting(WISDM, run, full)
    assert "1 of 3 seeds" in told
    assert "10 of 24 rounds" in told
    assert "quick" not in setting(WISDM, full)
