"""Membership by the loss of a record alone: a baseline for other attacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import CANDIDATES, MODEL, TRAINED_MODEL
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import (
    read_record_logits,
    record_confidence,
)


@final
@dataclass(frozen=True, slots=True)
class LossMembership(Attack[Membership]):
    """Claims membership if the target's model is more confident than the median over records.

    The score is the log-odds of the true label under the target's updated model, averaged over
    rounds, minus the median over all candidate records. Half of them are thus claimed as
    members. Log-odds order records as the loss does. Without classes, the log-odds of all
    labels or minus the log of the squared error take their place. The attack cannot distinguish
    a member from an easy record, so it fails at low false positive rates. An observer who has
    the final model alone reads that one, about the cohort.

    Args:
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    most_rounds: Positive = 5

    name: ClassVar[str] = "loss_membership"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({TRAINED_MODEL, MODEL, CANDIDATES})
    source: ClassVar[str] = (
        "Yeom et al. 2018 (Privacy Risk in Machine Learning, CSF), Adversary 2; the threshold "
        "is Overheard's"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the centred log-odds of each record."""
        readings = read_record_logits(view, targets, knowledge, self.most_rounds)
        claims = {}
        for target, logits_by_round in readings.targets.items():
            log_odds = torch.stack(
                [
                    record_confidence(logits, candidate_records(knowledge), knowledge.kind)
                    for logits in logits_by_round.values()
                ]
            ).mean(0)
            claims[target] = Membership((log_odds - log_odds.median()).float())
        return claims
