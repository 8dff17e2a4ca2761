"""Contract tests on attributes of users: runs whose users differ, or are identical."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.known_facts.known_users import KnownUsers
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.testing.planted_users import USER_CHECKS, UserQuestionChecks
from overheard.testing.require import require
from overheard.testing.trial import AttackTrial, claims_about


def claims_known_attribute_values(trial: AttackTrial) -> None:
    """Check that it claims a known attribute, with the values known of other users."""
    known = KnownUsers.of(trial.first_run.knowledge).attributes
    for claim in claims_about(trial, trial.first_run):
        require(
            set(claim.values) == set(known.get(claim.attribute, {}).values()),
            f"{trial.attack.name} claims {claim.attribute!r} with the values {claim.values}, "
            "which are not the known ones",
        )


@final
@dataclass(frozen=True, slots=True)
class AttributeChecks(UserQuestionChecks):
    """Runs whose users differ, or are identical."""

    name = "attribute"
    attack_checks = (*USER_CHECKS, claims_known_attribute_values)
    scorer = AttributeScorer()
    example = Attribute("age", ("old", "young"), torch.tensor([0.5, 0.5]))
