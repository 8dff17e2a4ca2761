"""Contract tests on linkage: runs whose users differ, or are identical."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.parties import client
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.testing.planted_users import USER_CHECKS, UserQuestionChecks
from overheard.testing.require import require
from overheard.testing.trial import AttackTrial, cached_claims


def compares_with_other_senders_only(trial: AttackTrial) -> None:
    """Check that it compares a sender with other senders only."""
    senders = set(trial.first_run.targets)
    for target, claim in cached_claims(trial.attack, trial.first_run).items():
        require(
            isinstance(claim, SameSender) and set(claim.others) <= senders - {target},
            f"{trial.attack.name} compares {target} with a party that is not another sender",
        )


@final
@dataclass(frozen=True, slots=True)
class SameSenderChecks(UserQuestionChecks):
    """Runs whose users differ, or are identical."""

    name = "same_sender"
    attack_checks = (*USER_CHECKS, compares_with_other_senders_only)
    scorer = SameSenderScorer()
    example = SameSender((client(1), client(2)), torch.zeros(2))
