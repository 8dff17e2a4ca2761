"""The plugins of this package satisfy Overheard's contracts and find planted leaks."""

import pytest
from overheard_sizes.attack import StatedSize, UpdateNorm
from overheard_sizes.checks import LargerHalfChecks
from overheard_sizes.claim import LargerHalf
from overheard_sizes.defense import EvenNorm
from overheard_sizes.question import LargerHalfQuestion
from overheard_sizes.scorer import LargerHalfScorer

from overheard.core.parties import client
from overheard.testing import check_attack, check_defense, check_question, check_scorer


@pytest.mark.parametrize("attack", [UpdateNorm(), StatedSize()])
def test_attacks_find_the_leak_and_nothing_behind_the_defense(attack) -> None:
    check_attack(attack, LargerHalfChecks())


def test_the_defense_satisfies_its_contract() -> None:
    check_defense(EvenNorm())


def test_the_question_and_its_scorer_satisfy_their_contracts() -> None:
    check_question(LargerHalfQuestion())
    check_scorer(LargerHalfScorer(), LargerHalfChecks())


def test_refuses_an_invalid_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        LargerHalf((client(0),), (1.5,))
