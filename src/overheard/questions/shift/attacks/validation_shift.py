"""A shift as a break in the trend of the validation loss: what the shift paper has to beat."""

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
from overheard.learning.evaluate import logits_of_cohort
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.models_heard import ModelsHeard
from overheard.questions.shift.estimators.trend import Trend

Measure = Literal["loss", "accuracy"]


@final
@dataclass(frozen=True, slots=True)
class ValidationShift(Attack[Shift]):
    """Validates the target's model of each round, and watches for a break.

    The models, the trend and the statistic are those of `shift`; what is followed is the mean
    cross-entropy (in nats) or the accuracy (0..1) on the attacker's own examples, each of them
    weighing alike. As a level it takes no round to compare with, so it starts a round sooner.
    The paper does not say whether the model it validates is the global one; `extract=False`
    takes that.

    Args:
        measure: what is followed.
        trend: rounds that the line is fitted to.
        extract: whether the observers' own influence is removed from the broadcasts.
        standardise: whether the statistic is in units of its standard error (`Trend`).

    """

    measure: Measure = "loss"
    trend: int = 5
    extract: bool = True
    standardise: bool = False

    name: ClassVar[str] = "validation_shift"
    answers: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), section 5.3: its comparison"
    )

    def __post_init__(self) -> None:
        """Refuse a line that nothing determines."""
        self._trend()

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim the round at which the measure broke its trend most, for each target.

        Raises:
            NeedsError: if too few rounds on end can be read.

        """
        claims = {}
        for target in targets:
            told = series(view, target, knowledge, measure=self.measure, extract=self.extract)
            heard = ModelsHeard(view, target, self.extract).rounds()
            teller = f"{self.name} on {target}"
            claims[target] = self._trend().shift(told, heard, 0, teller)
        return claims

    def _trend(self) -> Trend:
        return Trend(self.trend, self.standardise)


def series(
    view: View,
    target: Party,
    knowledge: Knowledge,
    *,
    measure: Measure = "loss",
    extract: bool = True,
) -> dict[int, float]:
    """Measure a target's model of each round, as far as the value is a finite number.

    The settings are those of `ValidationShift`.
    """
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    course = ModelsHeard(view, target, extract)
    labels = knowledge.auxiliary.labels.cpu()
    told = {}
    for number, logits in zip(
        course.rounds(),
        logits_of_cohort(
            knowledge.build_model,
            course.models(),
            knowledge.auxiliary.inputs,
            device=knowledge.means.device,
        ),
        strict=True,
    ):
        # A ranking of numbers that are none would still have an accuracy.
        if bool(logits.isfinite().all()):
            value = (
                cross_entropy(logits.double(), labels)
                if measure == "loss"
                else (logits.argmax(1) == labels).double().mean()
            )
            told[number] = float(value)
    return told
