"""The client whose update fits a record's gradient best, whitened layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.estimators.observed_rounds import (
    make_claim,
    rounds_to_read,
    stated_examples,
)
from overheard.questions.source_inference.estimators.source_mixture import fit_source_odds
from overheard.simulation.gradient_evidence import (
    LARGEST_CHANGE,
    compute_gradient_evidence,
    is_diverged,
)


@final
@dataclass(frozen=True, slots=True)
class WhitenedSource(Attack[RecordSources]):
    """Compares how well the updates of all clients fit a record's gradient, whitened.

    The fit of an update and a record's gradient is their inner product, weighted by the inverse
    of the covariance of each layer's update, with gradients on the way from the broadcast to
    the client's model (`simulation.gradient_evidence`). Fits and strengths are added over the
    rounds of a client. How large the fit of the client that holds a record is, how much it
    varies, and how many records no client holds, is fitted to the fits of all records and
    clients: see `estimators.source_mixture`. So there are no shadow models, and
    probabilities are about equal where updates tell nothing.

    Args:
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        prior: of clients, if one of them holds a record: "equal", as candidate records are
            drawn, or by the "sizes" that updates state, as for records drawn from all.

    """

    most_rounds: Positive = 5
    prior: Literal["equal", "sizes"] = "equal"

    name: ClassVar[str] = "whitened_source"
    claim_type: ClassVar = RecordSources
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard; the fit is that of its whitened attacks on membership: Leemann et al. 2023 "
        "(GLiR, NeurIPS) with the covariance of Martens and Grosse 2015 (K-FAC)"
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
        """Claim the probabilities of the fitted mixture.

        Raises:
            NeedsError: if there are fewer than two targets, if fewer than two sent an update of
                a trained model, or if sizes are needed and hidden.

        """
        prior = self._prior(view, targets)
        senders = rounds_to_read(view, targets, self.most_rounds)
        readable = {
            sender
            for number, sent in senders.items()
            for sender in sent
            if not is_diverged(view.updates(sender)[number].delta)
        }
        if len(readable) < 2:
            raise NeedsError(
                f"{self.name} compares clients, and fewer than two sent an update without "
                f"numbers beyond {LARGEST_CHANGE:g}: see whether training diverged, or whether "
                "updates were recorded as they were sent"
            )
        shape = len(targets), len(candidate_records(knowledge))
        fits, strengths = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
        for number, found in compute_gradient_evidence(view, knowledge, senders).items():
            places = [targets.index(sender) for sender in senders[number]]
            fits[places] += found.fit
            strengths[places] += found.strength
        odds = fit_source_odds(fits, strengths, prior)
        claim = make_claim(
            targets, knowledge, odds.log_odds, odds.nobody, stated_examples(view, targets)
        )
        return {COHORT: claim}

    def _prior(self, view: View, targets: Sequence[Party]) -> Float[Tensor, " clients"]:
        if self.prior == "equal":
            return torch.full((len(targets),), 1 / len(targets), dtype=torch.float64)
        sizes = torch.tensor(stated_examples(view, targets), dtype=torch.float64)
        if not len(sizes):
            raise NeedsError(
                f"{self.name} with the prior 'sizes' needs the number of examples of each "
                "client in clear: take the prior 'equal'"
            )
        return sizes / sizes.sum()
