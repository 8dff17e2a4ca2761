"""Label shares from the local model's mean output: a baseline that every attack must beat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.messages import apply_update
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.confusion import mean_output_by_class
from overheard.learning.evaluate import logits_of_models
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class MeanSoftmax(Attack[LabelShares]):
    """Mean softmax output of the local model over auxiliary examples.

    All classes have equal weight. A model just trained on many examples of a class predicts
    that class more often. Rounds are averaged. Nothing is solved or trained: an attack that
    does not beat this baseline is useless. It misleads if the global model itself prefers some
    classes.
    """

    name: ClassVar[str] = "mean_softmax"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL})
    source: ClassVar[str] = (
        "folklore; output-only form of label inference, a baseline for others"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's mean output, averaged over its observed rounds."""
        assert knowledge.auxiliary is not None
        assert knowledge.build_model is not None
        auxiliary, broadcasts = knowledge.auxiliary, view.broadcasts()
        claims = {}
        for target in targets:
            observed = sorted(
                (number, update.delta)
                for number, update in view.updates(target).items()
                if number in broadcasts
            )
            local = (apply_update(broadcasts[number], delta) for number, delta in observed)
            outputs = logits_of_models(knowledge.build_model, local, auxiliary.inputs)
            means = [
                mean_output_by_class(logits, auxiliary.labels).mean(0) for logits in outputs
            ]
            claims[target] = LabelShares(
                normalize_to_shares(torch.stack(means).mean(0)).float()
            )
        return claims
