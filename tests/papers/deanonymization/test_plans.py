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
    for scenario in WORLDS:
        made = plan(
            scenario, people("random"), (every_update((published(scenario, "shadow"),)),)
        )
        assert made.data.people is not None
        assert made.data.people.shadow_devices
        assert made.data.people.share == 0.5


def test_every_update_has_its_own_pseudonym_as_published() -> None:
    attacks = (published(BLOGS, "shadow"),)
    assert every_update(attacks).pseudonyms == "round"
    assert every_sender(attacks).pseudonyms == "run"
    assert "defenses" in every_update(attacks, adapts=True).knows
    assert "defenses" not in every_update(attacks).knows


def test_published_attacks_read_the_scenarios_layer_and_wccn_comes_last() -> None:
    attacks = identifiers(BLOGS, "simulated")
    assert [type(one) for one in attacks] == [*PUBLISHED, ReidentifyWccn]
    assert all("layer='last_bias'" in repr(one) for one in attacks[:-1])
    assert published(BLOGS, "shadow", 1).layer == 1


def test_the_setting_of_a_quick_run_says_what_is_reduced() -> None:
    threats = (every_update((published(WISDM, "shadow"),)),)
    run, full = (plan(scenario, people("random"), threats) for scenario in (HURRIED, WISDM))
    description = setting(WISDM, run, full)
    assert "1 of 3 seeds" in description
    assert "10 of 24 rounds" in description
    assert "quick" not in setting(WISDM, full)
