"""Rules for every attack; new attacks are found and tested automatically."""

from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from overheard.core.attack import Attack
from overheard.plans import registries
from overheard.testing.attack import (
    ADAPTATION_CHECKS,
    GENERAL_CHECKS,
    find_truth_imports,
    uses_training_matches_claims,
)
from overheard.testing.trial import AttackCheck, AttackTrial, checks_of

pytestmark = pytest.mark.slow

ATTACKS = registries.ATTACKS.plugins()


def quick(name: str) -> Any:
    return ATTACKS[name](**ATTACKS[name].quick_settings)


def trial_of(attack: Attack[Any]) -> AttackTrial:
    return AttackTrial(attack, checks_of(attack.claim_type))


# Ordered by attack, so that checks reuse what an attack has learned.
CASES = [
    pytest.param(attack, check, id=f"{name}-{check.__name__}")
    for name in ATTACKS
    for attack, checks in (
        (quick(name), GENERAL_CHECKS),
        (
            ATTACKS[name](**ATTACKS[name].accurate_settings),
            checks_of(ATTACKS[name].claim_type).attack_checks,
        ),
    )
    for check in checks
]


@pytest.mark.parametrize(("attack", "check"), CASES)
def test_every_attack(attack: Attack[Any], check: AttackCheck) -> None:
    check(trial_of(attack))


@pytest.mark.parametrize("name", [name for name in ATTACKS if hasattr(quick(name), "updates")])
@pytest.mark.parametrize("check", ADAPTATION_CHECKS)
def test_attacks_that_learn_from_shadow_devices_do_not_adapt(
    name: str, check: AttackCheck
) -> None:
    attack = quick(name)
    on_shadows = replace(attack, updates="shadow")
    assert (attack.training_source(), on_shadows.training_source()) == (
        "known users",
        "shadow devices",
    )
    check(trial_of(on_shadows))


def choices_of(attack: Attack[Any]) -> list[Attack[Any]]:
    """Return the attack with every other value of each setting that is a choice."""
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
        if checks_of(ATTACKS[name].claim_type).is_about_labels
        for choice in choices_of(quick(name))
        if choice.training_source() == "none"
    ],
    ids=repr,
)
def test_every_choice_of_settings_uses_the_training_that_it_states(attack: Attack[Any]) -> None:
    uses_training_matches_claims(trial_of(attack))


def test_no_attack_loads_the_ground_truth() -> None:
    assert find_truth_imports(*(attack.__module__ for attack in ATTACKS.values())) == ()
