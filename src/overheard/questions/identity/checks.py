"""Contract tests on who sent an update: runs whose users differ, or are identical."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.known_facts.known_users import KnownUsers
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.scorer import IdentityScorer
from overheard.testing.planted_users import AGES, USER_CHECKS, UserQuestionChecks
from overheard.testing.require import require
from overheard.testing.trial import AttackTrial, claims_about


def ranks_all_known_users(trial: AttackTrial) -> None:
    """Check that it ranks every candidate user, and nobody else."""
    known = set(KnownUsers.of(trial.first_run.knowledge).prior_examples)
    for claim in claims_about(trial, trial.first_run):
        require(
            set(claim.users) == known,
            f"{trial.attack.name} ranks {sorted(claim.users)}, expected {sorted(known)}",
        )


@final
@dataclass(frozen=True, slots=True)
class IdentityChecks(UserQuestionChecks):
    """Runs whose users differ, or are identical."""

    name = "identity"
    attack_checks = (*USER_CHECKS, ranks_all_known_users)
    scorer = IdentityScorer()
    example = Identity(tuple(AGES), torch.zeros(3))
