"""Membership by the inner product of the sent update with the gradient of each record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import rounds_to_read
from overheard.questions.membership.estimators.update_likelihood import log_likelihood_ratios
from overheard.questions.membership.estimators.update_products import compute_update_products


@final
@dataclass(frozen=True, slots=True)
class GradientMembership(Attack[Membership]):
    """How well the update points along minus the gradient of each record, in all layers.

    Local training adds minus the gradients of its examples, at weights between the broadcast
    and the local model. The attack takes each record's gradient at the broadcast, at the mean
    of simulated local models, and halfway. The inner product with the update is weighted by the
    inverse covariance of what a client without the record sends: noise, measured on the update
    itself, and the differences between simulated clients (a matched filter). Scales are fitted
    to simulated clients with known members (`estimators.update_likelihood`).

    It reads the update and not the confidence of a model. So it sees members where noise hides
    them from `lira`. Without noise and after many local epochs `lira_pooled` sees more.

    After many local steps, or with Adam or momentum, gradients are a rough guide. So some local
    models (`trainings`) train on each record, beside the same auxiliary examples. How much
    their updates differ, blended with the gradient, is the direction. That is stronger after
    many local steps, and it costs `trainings` local trainings a record and round. With 0 the
    cost is that of the shadow models, and of three gradients a record and round.

    Args:
        models: shadow models per round; fewer for models above a million parameters.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        trainings: local models per round that train on each record; 0 = gradients alone; None
            = 2 if clients train for several epochs, models are small and records few, else 0
            (`default_trainings`).

    """

    models: Annotated[int, Ge(8)] = 256
    most_rounds: Positive = 5
    trainings: NotNegative | None = None

    name: ClassVar[str] = "gradient_membership"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard, based on Nasr et al. 2023 (Tight Auditing of Differentially Private "
        "Machine Learning, USENIX Security): the inner product of update and gradient"
    )
    quick_settings: ClassVar = {"models": 32, "trainings": 0}

    def training_source(self) -> TrainingSource:
        """Return that it trains shadow models."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record.

        Raises:
            NeedsError: if no shadow model trained on any candidate record.

        """
        rounds_of = rounds_to_read(view, targets, self.most_rounds)
        targets_by_round = {
            number: [target for target in targets if number in rounds_of[target]]
            for number in sorted({number for rounds in rounds_of.values() for number in rounds})
        }
        products = compute_update_products(
            view, knowledge, targets_by_round, self.models, self.trainings
        )
        claims = {}
        for target, rounds in rounds_of.items():
            ratios = log_likelihood_ratios(
                [products[number].shadows for number in rounds],
                [products[number].targets[target] for number in rounds],
            )
            claims[target] = Membership(ratios.float())
        return claims
