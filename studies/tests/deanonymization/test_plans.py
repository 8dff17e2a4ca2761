from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
from overheard_studies.deanonymization.setting import (
    BLOGS,
    IDENTITY_ATTACKS,
    QUICK_WISDM,
    SCENARIOS,
    WISDM,
    build_identity_attacks,
    build_known_user_settings,
    build_plan,
    build_published_attack,
    build_threat,
    describe_setting,
)


def test_both_devices_of_a_user_take_part_as_published() -> None:
    for scenario in SCENARIOS:
        made = build_plan(
            scenario,
            build_known_user_settings("random"),
            (build_threat((build_published_attack(scenario, "shadow"),)),),
        )
        assert made.data.people is not None
        assert made.data.people.shadow_devices
        assert made.data.people.share == 0.5


def test_every_update_has_its_own_pseudonym_as_published() -> None:
    attacks = (build_published_attack(BLOGS, "shadow"),)
    assert build_threat(attacks).pseudonyms == "round"
    assert build_threat(attacks, by_sender=True).pseudonyms == "run"
    assert "defenses" in build_threat(attacks, adapts=True).knows
    assert "defenses" not in build_threat(attacks).knows


def test_published_attacks_read_the_scenarios_layer_and_wccn_comes_last() -> None:
    attacks = build_identity_attacks(BLOGS, "simulated")
    assert [type(one) for one in attacks] == list(IDENTITY_ATTACKS)
    assert isinstance(attacks[-1], ReidentifyWccn)
    assert all("layer='last_bias'" in repr(one) for one in attacks[:-1])
    assert build_published_attack(BLOGS, "shadow", 1).layer == 1


def test_the_setting_of_a_quick_run_says_what_is_reduced() -> None:
    threats = (build_threat((build_published_attack(WISDM, "shadow"),)),)
    run, full = (
        build_plan(scenario, build_known_user_settings("random"), threats)
        for scenario in (QUICK_WISDM, WISDM)
    )
    description = describe_setting(WISDM.name, run, full)
    assert "1 instead of 5 seeds" in description
    assert "10 instead of 24 rounds" in description
    assert "changed" not in describe_setting(WISDM.name, full, full)
