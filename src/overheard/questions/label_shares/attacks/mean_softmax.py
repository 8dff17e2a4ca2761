"""Label shares from the local model's mean output: a baseline that every attack must beat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.confusion import confusion_of_updates
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)


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

    def has_separate_targets(self) -> bool:
        """Return True: each model is run by itself."""
        return True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's mean output, averaged over its observed rounds."""
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for _, start, updates in view.updates_by_round(targets):
            deltas = [update.delta for update in updates.values()]
            matrices = confusion_of_updates(start, deltas, knowledge)
            for target, matrix in zip(updates, matrices, strict=True):
                rounds[target].append(matrix.mean(0))
        return claim_mean_over_rounds(rounds)
