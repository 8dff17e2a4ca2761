"""Every defense in the folder passes the checks of `overheard.testing`."""

from collections.abc import Callable

import pytest

from overheard.core.defense import Defense
from overheard.defenses.class_balanced import ClassBalanced
from overheard.plans.registries import DEFENSES
from overheard.testing.defense import DEFENSE_CHECKS, declares_repeated_examples


@pytest.mark.parametrize("name", DEFENSES.plugins())
@pytest.mark.parametrize("check", DEFENSE_CHECKS)
def test_every_defense(name: str, check: Callable[[Defense], None]) -> None:
    defense = DEFENSES.plugins()[name]()
    assert defense.name == name
    check(defense)


def test_a_defense_must_declare_that_it_repeats_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ClassBalanced, "repeats_examples", False)
    with pytest.raises(AssertionError, match="set repeats_examples = True"):
        declares_repeated_examples(ClassBalanced())
