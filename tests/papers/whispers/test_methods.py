from overheard.papers.whispers.methods import METHODS, PPA, attacks_of


def test_a_quick_attack_has_the_name_of_the_full_one() -> None:
    for one in METHODS:
        assert one.hurried.name == one.attack.name == one.key


def test_only_quick_runs_get_the_quick_attacks() -> None:
    assert attacks_of((PPA,), quick=True) == (PPA.hurried,)
    assert attacks_of((PPA,), quick=False) == (PPA.attack,)
    assert PPA.hurried != PPA.attack
