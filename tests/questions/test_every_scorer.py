"""Rules for every scorer and every question."""

import pytest

from overheard.plans import registries
from overheard.testing.scorer import (
    SCORER_CHECKS,
    ScorerCheck,
    check_question,
)
from overheard.testing.trial import checks_of

SCORERS = registries.SCORERS.plugins()


@pytest.mark.parametrize("name", sorted(SCORERS))
@pytest.mark.parametrize("check", SCORER_CHECKS)
def test_every_scorer(name: str, check: ScorerCheck) -> None:
    check(checks_of(SCORERS[name].claim_type))


@pytest.mark.parametrize("name", registries.QUESTIONS.plugins())
def test_every_question(name: str) -> None:
    check_question(registries.QUESTIONS.plugins()[name]())
