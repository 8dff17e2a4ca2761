"""Melis et al.'s forest infers an attribute."""

from dataclasses import replace

import pytest

from overheard.core.seeds import Seed
from overheard.questions.attribute.attacks.attribute_forest import TREES, AttributeForest
from tests.questions.attribute.attacks.test_attribute_mlp import (
    IDENTIFYING,
    LEAKING,
    balanced_accuracy,
)

SHADOWS = AttributeForest(updates="shadow")


class TestAttributeForest:
    def test_infers_an_attribute_that_enlarges_some_changes(self):
        assert balanced_accuracy(SHADOWS, LEAKING) > 0.9

    def test_is_near_chance_if_the_attribute_does_not_affect_updates(self):
        # 16 users: one standard error is 0.5 / 16^(1/2) = 0.125.
        assert abs(balanced_accuracy(SHADOWS, IDENTIFYING) - 0.5) < 0.26

    def test_a_value_that_no_known_user_has_stays_possible(self):
        # Of users 0 to 31, those from 16 on do not participate; only user 0 has "rare".
        crowd = replace(
            LEAKING, value=lambda number: ("rare", "a", "b")[min(number, 1 + number % 2)]
        )
        target = next(iter(crowd.targets()))
        claim = SHADOWS.infer(crowd.view(), (target,), crowd.knowledge(), Seed(0))[target]
        assert dict(zip(claim.values, claim.numbers(), strict=True))["rare"] == pytest.approx(
            1 / (TREES + 3)
        )
