"""Rules for every scorer and every question."""

import pytest

from overheard.plans import kinds
from overheard.testing.scorer import SCORER_CHECKS, ScorerCheck, check_question, scorer_trial

SCORERS = kinds.SCORERS.parts()


@pytest.mark.parametrize("name", sorted(SCORERS))
@pytest.mark.parametrize("check", SCORER_CHECKS)
def test_every_scorer(name: str, check: ScorerCheck) -> None:
    check(scorer_trial(SCORERS[name]()))


@pytest.mark.parametrize("name", kinds.QUESTIONS.parts())
def test_every_question(name: str) -> None:
    check_question(kinds.QUESTIONS.parts()[name]())
