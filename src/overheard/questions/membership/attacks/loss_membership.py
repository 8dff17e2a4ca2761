"""Membership by the loss of a record alone: the floor for every other attack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_readings import confidence, read_records


@final
@dataclass(frozen=True, slots=True)
class LossMembership(Attack[Membership]):
    """A record was trained on if the target's model is surer of its label than of others'.

    The score is the log-odds of the true label under the model at which the target arrived, the
    mean over rounds, less the median over all records in question: half of them are so told to
    be members. Log-odds order records as the loss does. It cannot tell a record that was
    trained on from an easy one, so it fails where few false positives are allowed.

    Args:
        most_rounds: that are read, evenly from the first to the last.

    """

    most_rounds: int = 5

    name: ClassVar[str] = "loss_membership"
    answers: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, CANDIDATES})
    source: ClassVar[str] = (
        "Yeom et al. 2018 (Privacy Risk in Machine Learning, CSF), Adversary 2; the threshold "
        "is ours"
    )

    def __post_init__(self) -> None:
        """Refuse to read nothing."""
        if self.most_rounds < 1:
            raise ValueError(f"most_rounds is 1 or more, got {self.most_rounds}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim how likely each record was trained on."""
        assert knowledge.candidates is not None
        readings = read_records(view, targets, knowledge, self.most_rounds)
        claims = {}
        for target, answers in readings.targets.items():
            sure = torch.stack(
                [confidence(logits, knowledge.candidates) for logits in answers.values()]
            ).mean(0)
            claims[target] = Membership((sure - sure.median()).float())
        return claims
