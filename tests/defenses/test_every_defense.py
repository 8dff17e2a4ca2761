"""Every defense in the folder passes the checks of `overheard.testing`."""

from collections.abc import Callable

import pytest

from overheard.core.defense import Defense
from overheard.plans.registries import DEFENSES
from overheard.testing.defense import DEFENSE_CHECKS


@pytest.mark.parametrize("name", DEFENSES.plugins())
@pytest.mark.parametrize("check", DEFENSE_CHECKS)
def test_every_defense(name: str, check: Callable[[Defense], None]) -> None:
    defense = DEFENSES.plugins()[name]()
    assert defense.name == name
    check(defense)
