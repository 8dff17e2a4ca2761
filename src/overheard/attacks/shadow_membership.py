"""Membership that boosted stumps learned from shadow models' answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.bank.record_readings import confidence, read_records, with_shadows
from overheard.core.attack import Attack
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge, Need
from overheard.core.membership import Membership
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View

LARGEST = 10
"""Answers that are told, the surest first."""

MOST_LABELS = 20
"""Classes up to which a record's label is told to the stumps."""


@final
@dataclass(frozen=True, slots=True)
class ShadowMembership(Attack[Membership]):
    """A classifier of answers, trained where it is known who was inside.

    Shadow models learn from some of the attacker's examples and of the records in question. For
    each of them and each record it is known whether the record was inside; boosted stumps learn
    to tell it by the model's answers, the surest first, how sure it is of the true label, and
    which label that is. The mean over rounds of their log-odds is the score.

    The paper boosts with CatBoost (depth 1, 10,000 iterations) on 128 shadow models; here it is
    scikit-learn's boosting. It learns one rule for all records, so hard records that were
    trained on and easy ones that were not are told apart worse than by `lira`.

    Args:
        models: shadow models a round.
        stumps: boosted.
        most_rounds: that are read.

    """

    models: int = 32
    stumps: int = 300
    most_rounds: int = 6

    name: ClassVar[str] = "shadow_membership"
    answers: ClassVar = Membership
    needs: ClassVar = frozenset(
        {
            Need.UPDATES,
            Need.BROADCASTS,
            Need.AUXILIARY,
            Need.MODEL,
            Need.RECIPE,
            Need.CANDIDATES,
        }
    )
    source: ClassVar[str] = (
        "Shokri et al. 2017 (Membership Inference Attacks Against Machine Learning Models, "
        "S&P), as in FLiP (arXiv 2410.19548), Sections V-B and VI-D2"
    )

    def __post_init__(self) -> None:
        """Refuse what learns nothing."""
        if self.models < 2 or self.stumps < 1 or self.most_rounds < 1:
            raise ValueError(
                f"models are 2 or more, stumps and most_rounds 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-odds of each record."""
        assert knowledge.candidates is not None
        records = knowledge.candidates
        readings = with_shadows(
            read_records(view, targets, knowledge, self.most_rounds),
            view,
            knowledge,
            self.models,
            asked=True,
            seed=seed,
        )
        inside = readings.inside.flatten().numpy()
        odds = dict[int, HistGradientBoostingClassifier]()
        for number, answers in readings.shadows.items():
            boosted = HistGradientBoostingClassifier(
                max_depth=1,
                max_iter=self.stumps,
                class_weight="balanced",
                early_stopping=False,
                random_state=seed.child("stumps", number).value % 2**31,
            )
            odds[number] = boosted.fit(_told(answers, records), inside)
        claims = {}
        for target, told in readings.targets.items():
            scores = [
                odds[number].decision_function(_told(answers.unsqueeze(0), records))
                for number, answers in told.items()
            ]
            claims[target] = Membership(torch.from_numpy(np.mean(scores, 0)).float())
        return claims


def _told(
    answers: Float[Tensor, "models records classes"], records: Examples
) -> NDArray[np.float64]:
    """What the stumps see of each model and record: rows of numbers."""
    classes = answers.shape[-1]
    surest = answers.double().softmax(-1).sort(-1, descending=True).values[..., :LARGEST]
    parts = [surest, confidence(answers, records).unsqueeze(-1)]
    if classes <= MOST_LABELS:
        label = one_hot(records.labels, classes).double()
        parts.append(label.expand(len(answers), -1, -1))
    told: NDArray[np.float64] = torch.cat(parts, -1).flatten(0, 1).numpy()
    return told
