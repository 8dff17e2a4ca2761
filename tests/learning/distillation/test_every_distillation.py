"""Every distillation method passes the checks of `overheard.testing`."""

from collections.abc import Callable

import pytest

from overheard.learning.distillation.distillation import Distillation
from overheard.plans.registries import DISTILLATIONS
from overheard.testing.distillation import DISTILLATION_CHECKS


@pytest.mark.parametrize("name", DISTILLATIONS.plugins())
@pytest.mark.parametrize("check", DISTILLATION_CHECKS)
def test_every_distillation(name: str, check: Callable[[Distillation], None]) -> None:
    way = DISTILLATIONS.plugins()[name]
    assert way() == way()
    check(way())
