from overheard_studies.whispers.setting import METHODS, PPA


def test_a_quick_attack_has_the_name_of_the_full_one() -> None:
    for one in METHODS:
        assert one.select(quick=True).name == one.select(quick=False).name == one.key


def test_only_quick_runs_get_the_quick_attacks() -> None:
    assert PPA.select(quick=True) == PPA.quick_attack != PPA.attack
    assert PPA.select(quick=False) == PPA.attack
