"""Shift detection by a break in the trend of the validation loss: the paper's baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative
from overheard.core.view import View
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.model_comparisons import (
    ValidationMeasure,
    validate_models,
    validation_comparison,
)
from overheard.questions.shift.estimators.trend import Trend
from overheard.questions.shift.estimators.trend_reader import TrendReader, series_of_target


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
        simulated_runs: as in `shift`; models are then validated on the auxiliary examples that
            no simulated client trains on.

    """

    measure: ValidationMeasure = "loss"
    trend: Annotated[int, Ge(2)] = 5
    extract: bool = True
    standardise: bool = False
    simulated_runs: NotNegative = 0

    name: ClassVar[str] = "validation_shift"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), section 5.3: its comparison"
    )

    def check_together(self) -> None:
        """Refuse a trend that the settings do not allow."""
        self._reader()

    def training_source(self) -> TrainingSource:
        """Return whose updates it is trained on."""
        return "virtual clients" if self.simulated_runs else "none"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim for each target the round with the largest break in the trend.

        Raises:
            NeedsError: if too few consecutive rounds are readable, or the inputs of simulations
                are missing.

        """
        reader = self._reader()
        return {target: reader.claim_shift(view, target, knowledge) for target in targets}

    def _reader(self) -> TrendReader:
        return TrendReader(
            self.name,
            validation_comparison(self.measure),
            Trend(self.trend, self.standardise),
            self.extract,
            self.simulated_runs,
        )


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
    return series_of_target(view, target, validate_models(knowledge, measure), extract)
