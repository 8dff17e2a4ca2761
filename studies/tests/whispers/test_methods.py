from overheard_studies.whispers.methods import METHODS, PPA, select_attacks


def test_a_quick_attack_has_the_name_of_the_full_one() -> None:
    for one in METHODS:
        assert one.quick_attack.name == one.attack.name == one.key


def test_only_quick_runs_get_the_quick_attacks() -> None:
    assert select_attacks((PPA,), quick=True) == (PPA.quick_attack,)
    assert select_attacks((PPA,), quick=False) == (PPA.attack,)
    assert PPA.quick_attack != PPA.attack
