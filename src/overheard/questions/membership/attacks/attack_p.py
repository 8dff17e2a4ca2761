"""Membership by the loss of a record against that of a population: attack P."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Gt, Lt
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import AUXILIARY, CANDIDATES, MODEL, TRAINED_MODEL
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
class AttackP(Attack[Membership]):
    """Claims membership if few records of the population fit the target's model as well.

    The population is the auxiliary examples, which the client did not train on. The score is
    the confidence in the record, minus the value that a share `false_positive_rate` of the
    population exceeds (linear interpolation). As in `loss_membership`, which differs in the
    threshold alone, confidence is the log-odds of the true label, averaged over rounds.

    Args:
        false_positive_rate: the share of the population above the threshold; the paper varies
            it.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    false_positive_rate: Annotated[float, Gt(0), Lt(1)] = 0.1
    most_rounds: Positive = 5

    name: ClassVar[str] = "attack_p"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({TRAINED_MODEL, AUXILIARY, MODEL, CANDIDATES})
    source: ClassVar[str] = (
        "Ye et al. 2022 (Enhanced Membership Inference Attacks against Machine Learning "
        "Models, CCS), attack P"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim how far the confidence in each record is above the threshold."""
        assert knowledge.auxiliary is not None

        def confidences(records: Examples) -> Mapping[Party, Float[Tensor, " records"]]:
            readings = read_record_logits(
                view, targets, knowledge, self.most_rounds, records
            ).targets
            return {
                target: torch.stack(
                    [record_confidence(one, records, knowledge.kind) for one in rounds.values()]
                ).mean(0)
                for target, rounds in readings.items()
            }

        population = confidences(knowledge.auxiliary)
        return {
            target: Membership((of_target - self.threshold(population[target])).float())
            for target, of_target in confidences(candidate_records(knowledge)).items()
        }

    def threshold(self, population: Float[Tensor, " others"]) -> Float[Tensor, ""]:
        """Return the confidence that a share `false_positive_rate` of a population exceeds."""
        return population.quantile(1 - self.false_positive_rate)
