"""What is followed from round to round: the paper's sources of leakage, and validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.questions.shift.attacks import shift, validation_shift
from overheard.questions.shift.attacks.shift import Information, Metric, ShiftTrend
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.estimators.trend import Trend

INFORMATION: tuple[Information, ...] = ("weights", "representations", "gradients")

METRICS: tuple[Metric, ...] = ("cosine", "procrustes", "cmd")

NAMES: Mapping[Metric, str] = {
    "cosine": "cosine",
    "procrustes": "Procrustes distance",
    "cmd": "CMD",
}


@final
@dataclass(frozen=True, slots=True)
class LeakageMeasure:
    """One number a round.

    Args:
        key: its name in figures.
        name: in words.
        attack: that follows it.

    """

    key: str
    name: str
    attack: ShiftTrend | ValidationShift

    @property
    def trend(self) -> Trend:
        """The trend that the attack holds it against."""
        return Trend(self.attack.trend)

    @property
    def standardised(self) -> Trend:
        """The same trend, in units of its standard error."""
        return Trend(self.attack.trend, standardise=True)

    def series(self, view: View, target: Party, knowledge: Knowledge) -> Mapping[int, float]:
        """The number by round."""
        one = self.attack
        if isinstance(one, ValidationShift):
            return validation_shift.series(
                view, target, knowledge, measure=one.measure, extract=one.extract
            )
        return shift.series(
            view,
            target,
            knowledge,
            information=one.information,
            metric=one.metric,
            layer=one.layer,
            probe=one.probe,
            extract=one.extract,
        )


def source_of_leakage(
    information: Information, metric: Metric, layer: str | None = None
) -> LeakageMeasure:
    """Attacker information compared by a metric, which the paper calls a source of leakage.

    Args:
        information: what of the models is compared.
        metric: how.
        layer: the only layer looked at; None = all as one.

    """
    where = "" if layer is None else f"_layer_{layer}"
    return LeakageMeasure(
        f"{information}_{metric}{where}",
        f"{NAMES[metric]} of {information}" + ("" if layer is None else f", layer {layer}"),
        ShiftTrend(information, metric, layer),
    )


SOURCES = tuple(
    source_of_leakage(information, metric) for information in INFORMATION for metric in METRICS
)
"""All nine of Figure 5."""

LOSS = LeakageMeasure("validation_loss", "validation loss", ValidationShift("loss"))

ACCURACY = LeakageMeasure(
    "validation_accuracy", "validation accuracy", ValidationShift("accuracy")
)
