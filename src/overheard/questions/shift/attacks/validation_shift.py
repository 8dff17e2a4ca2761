"""Shift detection by a break in the trend of the validation loss: the paper's baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from torch.nn.functional import cross_entropy

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_models
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.target_models import TargetModels
from overheard.questions.shift.estimators.trend import Trend

ValidationMeasure = Literal["loss", "accuracy"]


@final
@dataclass(frozen=True, slots=True)
class ValidationShift(Attack[Shift]):
    """Validates the target's model of each round and detects a break in the trend.

    The models, the trend and the statistic are those of `shift`. The tracked value is the mean
    cross-entropy (in nats) or the accuracy (0..1) on the attacker's own examples, equally
    weighted. It needs no round before to compare with, so it starts one round earlier. The
    paper does not state whether it validates the global model; `extract=False` does.

    Args:
        measure: the tracked value.
        trend: number of rounds that the line is fitted to.
        extract: whether the observers' own influence is removed from the broadcasts.
        standardise: whether the statistic is in units of its standard error (`Trend`).

    """

    measure: ValidationMeasure = "loss"
    trend: int = 5
    extract: bool = True
    standardise: bool = False

    name: ClassVar[str] = "validation_shift"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), section 5.3: its comparison"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        self._trend()

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim for each target the round with the largest break in the trend.

        Raises:
            NeedsError: if too few consecutive rounds are readable.

        """
        claims = {}
        for target in targets:
            values = validation_series(
                view, target, knowledge, measure=self.measure, extract=self.extract
            )
            rounds = TargetModels(view, target, self.extract).rounds()
            subject = f"{self.name} on {target}"
            claims[target] = self._trend().claim_shift(values, rounds, 0, subject)
        return claims

    def _trend(self) -> Trend:
        return Trend(self.trend, self.standardise)


def validation_series(
    view: View,
    target: Party,
    knowledge: Knowledge,
    *,
    measure: ValidationMeasure = "loss",
    extract: bool = True,
) -> dict[int, float]:
    """Validate a target's model of each round; omit non-finite values.

    The settings are those of `ValidationShift`.
    """
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    target_models = TargetModels(view, target, extract)
    labels = knowledge.auxiliary.labels.cpu()
    values = {}
    for number, logits in zip(
        target_models.rounds(),
        logits_of_models(
            knowledge.build_model,
            target_models.models(),
            knowledge.auxiliary.inputs,
            device=knowledge.compute.device,
        ),
        strict=True,
    ):
        # Non-finite logits would still have an accuracy.
        if bool(logits.isfinite().all()):
            value = (
                cross_entropy(logits.double(), labels)
                if measure == "loss"
                else (logits.argmax(1) == labels).double().mean()
            )
            values[number] = float(value)
    return values
