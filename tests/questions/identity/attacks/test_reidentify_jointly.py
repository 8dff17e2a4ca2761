"""The paper's perceptron with a second output for an attribute."""

from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.questions.identity.attacks.reidentify import ReidentifyJointly
from tests.questions.attribute.attacks.test_attribute_mlp import IDENTIFYING, LEAKING
from tests.runs.planted_users import PlantedUsers, user

SHADOWS = ReidentifyJointly(updates="shadow", steps=600)


def top_1(crowd: PlantedUsers, attack: ReidentifyJointly = SHADOWS) -> float:
    targets = crowd.targets()
    claims = attack.infer(crowd.view(), tuple(targets), crowd.knowledge(), Seed(0))
    named = [claims[target].users[int(claims[target].scores.argmax())] for target in targets]
    return sum(name == user(n) for name, n in zip(named, targets.values(), strict=True)) / len(
        named
    )


class TestReidentifyJointly:
    def test_names_users_whose_updates_differ(self):
        assert top_1(IDENTIFYING) > 0.9

    def test_is_limited_by_the_attribute_if_only_that_differs(self):
        # 8 of 16 users share each value: 1 in 8 by chance, with 48 targets +- 0.05.
        assert top_1(PlantedUsers(user_effect=0.0, attribute_effect=1.0)) < 0.3

    def test_needs_an_attribute(self):
        knowledge = LEAKING.knowledge()
        bare = replace(knowledge, facts=Facts(replace(KnownUsers.of(knowledge), attributes={})))
        target = next(iter(LEAKING.targets()))
        with pytest.raises(NeedsError, match="attribute"):
            SHADOWS.infer(LEAKING.view(), (target,), bare, Seed(0))
