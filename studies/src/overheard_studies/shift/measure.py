"""The measures by round: the paper's sources of leakage, and validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.questions.shift.attacks import shift, validation_shift
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.estimators.model_comparisons import Information, Metric
from overheard.questions.shift.estimators.trend import Trend

INFORMATION: tuple[Information, ...] = ("weights", "representations", "gradients")

METRICS: tuple[Metric, ...] = ("cosine", "procrustes", "cmd")

METRIC_NAMES: Mapping[Metric, str] = {
    "cosine": "cosine",
    "procrustes": "Procrustes distance",
    "cmd": "CMD",
}


@final
@dataclass(frozen=True, slots=True)
class LeakageMeasure:
    """A measure with one value per round.

    Args:
        key: name in the keys of values.
        name: name in words.
        attack: attack that computes it.

    """

    key: str
    name: str
    attack: ShiftTrend | ValidationShift

    @property
    def trend(self) -> Trend:
        """Return the trend with which the attack compares the measure."""
        return Trend(self.attack.trend)

    @property
    def standardized_trend(self) -> Trend:
        """Return the same trend, in units of its standard error."""
        return Trend(self.attack.trend, standardise=True)

    def read_series(
        self, view: View, target: Party, knowledge: Knowledge
    ) -> Mapping[int, float]:
        """Return the values by round."""
        one = self.attack
        if isinstance(one, ValidationShift):
            return validation_shift.validation_series(
                view, target, knowledge, measure=one.measure, extract=one.extract
            )
        return shift.model_change_series(
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
    """Make the measure of attacker information under a metric (a source of leakage).

    Args:
        information: part of the models that is compared.
        metric: metric of the comparison.
        layer: the only layer that is used; None = all layers as one.

    """
    context = "" if layer is None else f"_layer_{layer}"
    return LeakageMeasure(
        f"{information}_{metric}{context}",
        f"{METRIC_NAMES[metric]} of {information}"
        + ("" if layer is None else f", layer {layer}"),
        ShiftTrend(information, metric, layer),
    )


LEAKAGE_SOURCES = tuple(
    source_of_leakage(information, metric) for information in INFORMATION for metric in METRICS
)
"""All nine sources of Figure 5."""

LOSS = LeakageMeasure("validation_loss", "validation loss", ValidationShift("loss"))

ACCURACY = LeakageMeasure(
    "validation_accuracy", "validation accuracy", ValidationShift("accuracy")
)
