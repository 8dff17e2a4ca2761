"""What every attack must keep to; a new one is found and held to it by itself."""

from dataclasses import replace
from typing import Any

import pytest

from overheard.core.attack import Attack
from overheard.plans import kinds
from overheard.testing import adapting
from overheard.testing.attack import AttackCheck, gain_checks, general_checks
from overheard.testing.trial import trial_of
from overheard.testing.truth_apart import truth_loaded_by

ATTACKS = kinds.ATTACKS.parts()

SHORTER: dict[str, dict[str, int]] = {
    "amortised": {"steps": 20},
    "ldia": {"epochs": 10},
    "link_siamese": {"pairs": 1600},
    "match_cross_modal": {"pairs": 1600},
    "match_siamese": {"pairs": 1600},
    "ppa": {"epochs": 20, "retraining": 1, "samples": 32},
    "profile": {"epochs": 5},
    "whispers": {"epochs": 10},
}
"""Learning so short that it can be done often, where it does not matter how good it is."""


def quick(name: str) -> Any:
    return ATTACKS[name](**SHORTER.get(name, {}))


# Attack by attack, so that what one learned is at hand for its next check.
CASES = [
    pytest.param(attack, check, id=f"{name}-{check.__name__}")
    for name in ATTACKS
    for attack, checks in (
        (quick(name), general_checks()),
        (ATTACKS[name](), gain_checks(ATTACKS[name].answers)),
    )
    for check in checks
]


@pytest.mark.parametrize(("attack", "check"), CASES)
def test_every_attack(attack: Attack[Any], check: AttackCheck) -> None:
    check(trial_of(attack))


@pytest.mark.parametrize("name", [name for name in ATTACKS if hasattr(quick(name), "updates")])
@pytest.mark.parametrize("check", adapting.CHECKS)
def test_who_learns_from_shadow_devices_does_not_adapt(name: str, check: AttackCheck) -> None:
    attack = quick(name)
    shadowing = replace(attack, updates="shadow")
    assert (attack.rehearsal(), shadowing.rehearsal()) == ("known users", "shadow devices")
    check(trial_of(shadowing))


def test_no_attack_loads_the_truth() -> None:
    assert truth_loaded_by(*(attack.__module__ for attack in ATTACKS.values())) == ()
