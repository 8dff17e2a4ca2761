"""The paper's perceptron infers an attribute."""

from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from tests.runs.planted_users import VALUES, PlantedUsers, user

LEAKING = PlantedUsers(user_effect=0.5, attribute_effect=1.0)
"""Updates reveal the attribute and the user."""

IDENTIFYING = PlantedUsers(user_effect=1.0, attribute_effect=0.0)
"""Updates reveal the user, whose identity is independent of the attribute."""

SHADOWS = AttributeMlp(updates="shadow", steps=600)


def balanced_accuracy(attack: AttributeMlp, crowd: PlantedUsers) -> float:
    targets = crowd.targets()
    claims = attack.infer(crowd.view(), tuple(targets), crowd.knowledge(), Seed(0))
    correct = {value: [] for value in VALUES}
    for target, number in targets.items():
        claim = claims[target]
        claimed = claim.values[int(claim.probabilities.argmax())]
        correct[crowd.value(number)].append(claimed == crowd.value(number))
    return sum(sum(hits) / len(hits) for hits in correct.values()) / len(correct)


class TestAttributeMlp:
    @pytest.mark.parametrize("jointly", [False, True])
    def test_infers_an_attribute_that_affects_updates(self, jointly):
        assert balanced_accuracy(replace(SHADOWS, jointly=jointly), LEAKING) > 0.9

    @pytest.mark.parametrize("jointly", [False, True])
    def test_is_near_chance_if_the_attribute_does_not_affect_updates(self, jointly):
        # 16 users: one standard error is 0.5 / 16^(1/2) = 0.125.
        attack = replace(SHADOWS, jointly=jointly)
        assert abs(balanced_accuracy(attack, IDENTIFYING) - 0.5) < 0.26

    def test_learns_only_from_users_who_do_not_participate(self):
        crowd = LEAKING
        knowledge = crowd.knowledge()
        values = KnownUsers.of(knowledge).attributes["side"]
        # Participants have wrong values, which matter only if the attack learns from them.
        wrong = {
            name: value
            if name in KnownUsers.of(knowledge).holdout
            else VALUES[value == VALUES[0]]
            for name, value in values.items()
        }
        known_users = replace(KnownUsers.of(knowledge), attributes={"side": wrong})
        target = next(iter(crowd.targets()))
        one, other = (
            SHADOWS.infer(crowd.view(), (target,), known, Seed(0))[target].numbers()
            for known in (
                knowledge,
                replace(knowledge, facts=knowledge.facts.having(known_users)),
            )
        )
        assert one == other

    def test_asks_for_a_choice_among_several_attributes(self):
        knowledge = LEAKING.knowledge()
        values = KnownUsers.of(knowledge).attributes["side"]
        known_users = replace(
            KnownUsers.of(knowledge), attributes={"side": values, "age": values}
        )
        several = replace(knowledge, facts=knowledge.facts.having(known_users))
        target = next(iter(LEAKING.targets()))
        with pytest.raises(NeedsError, match="age, side"):
            SHADOWS.infer(LEAKING.view(), (target,), several, Seed(0))
        chosen = replace(SHADOWS, attribute="age")
        claim = chosen.infer(LEAKING.view(), (target,), several, Seed(0))[target]
        assert claim.attribute == "age"

    def test_refuses_to_learn_from_holdout_users_if_there_are_none(self):
        knowledge = LEAKING.knowledge()
        priors = KnownUsers.of(knowledge).prior_examples
        known_users = KnownUsers(
            priors,
            shadow_devices={
                device: name
                for device, name in KnownUsers.of(knowledge).shadow_devices.items()
                if name in priors
            },
            attributes={"side": {user(n): LEAKING.value(n) for n in range(LEAKING.users)}},
        )
        target = next(iter(LEAKING.targets()))
        with pytest.raises(NeedsError, match=r"data\.people\.holdout"):
            SHADOWS.infer(
                LEAKING.view(), (target,), Knowledge(2, facts=Facts(known_users)), Seed(0)
            )
