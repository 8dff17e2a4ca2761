"""Membership of single clients, from sums over cohorts that vary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, SUMS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.simulation.sum_holders import find_record_holders


@final
@dataclass(frozen=True, slots=True)
class SumMembership(Attack[Membership]):
    """Compares how well sums fit a record's gradient with and without a client.

    It reads no single update, so it works behind secure aggregation if cohorts vary. A record
    that a client trains on raises the whitened fit of its gradient
    (`simulation.gradient_evidence`) in the sums that the client is in. The score is the
    log-likelihood ratio that this client holds the record, against no client
    (`participation.record_holders`): other clients that share rounds with the holder have high
    scores too, and `sum_source` of the question "source_inference" compares them. Where single
    updates can be read, each is a sum of one client.

    Args:
        most_rounds: at most this many rounds are read, evenly spaced.

    """

    most_rounds: Positive = 100

    name: ClassVar[str] = "sum_membership"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({SUMS, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard; the fit is that of `whitened_membership`, and sums as equations about "
        "clients are those of Kerkouche et al. 2023 (PROLIN, arXiv 2303.03908, section 4)"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on.

        After an adaptive optimizer they depend on the batch too, which no defense changes.
        """
        return frozenset({"loss"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record.

        Raises:
            NeedsError: if cohorts do not vary, or no sum can be read.

        """
        found = find_record_holders(view, targets, knowledge, self.most_rounds, self.name)
        ratios = torch.from_numpy(found.odds.log_ratios).float()
        return {
            target: Membership(ratios[found.sums.clients.index(target)]) for target in targets
        }
