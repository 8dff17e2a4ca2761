"""Rules for every scorer and every question."""

import pytest

from overheard.plans import registries
from overheard.testing.scorer import (
    SCORER_CHECKS,
    ScorerCheck,
    check_question,
    make_scorer_trial,
)

SCORERS = registries.SCORERS.plugins()


@pytest.mark.parametrize("name", sorted(SCORERS))
@pytest.mark.parametrize("check", SCORER_CHECKS)
def test_every_scorer(name: str, check: ScorerCheck) -> None:
    check(make_scorer_trial(SCORERS[name]()))


@pytest.mark.parametrize("name", registries.QUESTIONS.plugins())
def test_every_question(name: str) -> None:
    check_question(registries.QUESTIONS.plugins()[name]())
