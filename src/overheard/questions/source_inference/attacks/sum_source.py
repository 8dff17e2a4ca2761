"""The client that holds a record, from sums over cohorts that vary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, SUMS
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.estimators.observed_rounds import make_claim
from overheard.simulation.sum_holders import find_record_holders

LARGEST_P = 0.05
"""Largest p-value of the cohorts among exchanged ones at which they are believed."""


@final
@dataclass(frozen=True, slots=True)
class SumSource(Attack[RecordSources]):
    """Compares how well sums fit a record's gradient with and without each client.

    It reads no single update, so it works behind secure aggregation if cohorts vary. The
    whitened fit of a record's gradient in a sum (`simulation.gradient_evidence`) is higher in
    the rounds in which its holder took part. Clients whose other records are alike raise it
    too, and so does what neighbouring rounds have in common: these are parts of the noise
    (`participation.record_holders`). Where single updates can be read, each is a sum of one
    client.

    Who took part is taken as the recording says. If fits go along with the cohorts no better
    than with those of neighbouring sums, that may be wrong, and clients are as likely as each
    other.

    Args:
        most_rounds: at most this many rounds are read, evenly spaced.

    """

    most_rounds: Positive = 100

    name: ClassVar[str] = "sum_source"
    claim_type: ClassVar = RecordSources
    needs: ClassVar = frozenset({SUMS, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard; the fit is that of `whitened_source`, and sums as equations about clients "
        "are those of Kerkouche et al. 2023 (PROLIN, arXiv 2303.03908, section 4)"
    )
    is_joint: ClassVar[bool] = True

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on.

        After an adaptive optimizer they depend on the batch too, which no defense changes.
        """
        return frozenset({"loss"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, RecordSources]:
        """Claim the posterior of the holders of all records.

        Raises:
            NeedsError: if there are fewer than two targets, cohorts do not vary, or no sum can
                be read.

        """
        if len(targets) < 2:
            raise NeedsError("updates or sums of two clients or more, by each client")
        found = find_record_holders(view, targets, knowledge, self.most_rounds, self.name)
        places = [found.sums.clients.index(target) for target in targets]
        ratios = torch.from_numpy(found.odds.log_ratios)
        if found.odds.cohorts_p > LARGEST_P:
            ratios = torch.zeros_like(ratios)
        # A record of a client that is not asked about is one of no target.
        among_targets = ratios.softmax(0)[places].sum(0)
        held = (1 - torch.from_numpy(found.odds.nobody)) * among_targets
        sizes = found.sums.sizes
        claim = make_claim(
            targets,
            knowledge,
            ratios[places],
            1 - held.clamp(0, 1),
            () if sizes is None else tuple(sizes[place] for place in places),
        )
        return {COHORT: claim}
