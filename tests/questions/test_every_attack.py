"""What every attack must keep to; a new one is found and held to it by itself."""

from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from overheard.core.attack import Attack
from overheard.plans import kinds
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.shift.claim import Shift
from overheard.testing import adapting
from overheard.testing.attack import AttackCheck, gain_checks, general_checks
from overheard.testing.trial import trial_of
from overheard.testing.truth_apart import truth_loaded_by

pytestmark = pytest.mark.slow

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


def choices_of(attack: Attack[Any]) -> list[Attack[Any]]:
    """The same attack with every other choice that one of its settings leaves."""
    hints = get_type_hints(type(attack))
    return [
        replace(attack, **{field.name: choice})  # type: ignore[type-var]
        for field in fields(attack)  # type: ignore[arg-type]
        if get_origin(hints[field.name]) is Literal
        for choice in get_args(hints[field.name])
        if choice != getattr(attack, field.name)
    ]


@pytest.mark.parametrize(
    "attack",
    [
        choice
        for name in ATTACKS
        if ATTACKS[name].answers in (LabelShares, Shift)
        for choice in choices_of(quick(name))
        if choice.rehearsal() == "none"
    ],
    ids=repr,
)
def test_every_choice_of_settings_uses_the_training_as_it_says(attack: Attack[Any]) -> None:
    adapting.uses_the_training_as_it_says(trial_of(attack))


def test_no_attack_loads_the_truth() -> None:
    assert truth_loaded_by(*(attack.__module__ for attack in ATTACKS.values())) == ()
