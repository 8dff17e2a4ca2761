"""Shift detection by a break in the trend of model changes between rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge

from overheard.core.attack import Attack, TrainingSource
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive
from overheard.core.view import View
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.model_comparisons import (
    Information,
    Metric,
    change_comparison,
    compare_changes,
)
from overheard.questions.shift.estimators.trend import Trend
from overheard.questions.shift.estimators.trend_reader import TrendReader, series_of_target


@final
@dataclass(frozen=True, slots=True)
class ShiftTrend(Attack[Shift]):
    """Compares the target's models of consecutive rounds and detects a break in their trend.

    The target's model is extracted from the global model (`TargetModels`). The attacker
    compares its weights, its layers' outputs on fixed examples, or its gradients
    g(t) = w(t-1) - w(t). A metric compares round t with the round before. The statistic of
    round t is the divergence of this value from the line through the `trend` rounds before
    (`Trend`). The model of round t is trained on the data of round t, so new data in round t
    appear at t; a client observes it with the next broadcast.

    It raises no alarm, as the paper states neither a threshold nor a rate of false alarms. The
    claimed round is that of the largest statistic. It can mislead: new examples of the same
    kind change the same values, which only a control run can distinguish. The first rounds, in
    which the model learns fastest, break any trend.

    A gap in the observed rounds, or non-finite weights, restarts the trend. The attack refuses
    to run without a long enough sequence of consecutive rounds.

    Differs from the paper: the length of the trend, which is not stated there, is 5; outputs of
    the last layer are taken before the softmax; the Procrustes distance is normalised (see
    `procrustes`).

    Args:
        information: the part of the models that is compared. Representations need the
            architecture and auxiliary examples of every class; the others need neither.
        metric: the distance or similarity. "cmd" is as printed in the paper, "scaled_cmd" as
            Zellinger et al. define it.
        layer: the name of the only layer to compare, such as "2"; None = all layers together.
        trend: number of rounds that the line is fitted to.
        extract: whether the observers' own influence is removed from the broadcasts.
        probe: number of auxiliary examples for representations: the first ones of each class,
            in equal numbers, rounded up; all examples of a rarer class.
        standardise: whether the statistic is in units of its standard error (`Trend`); the
            paper's is not.
        simulated_runs: maximum number of runs without a shift that the attacker simulates,
            within the virtual clients of its compute settings; 0 = none. The statistic of each
            round is then standardised by that of the same round in these runs
            (`estimators.round_scale`), as `shift_tracking` does it. This needs auxiliary
            examples, the architecture and the recipe. The paper simulates none.

    """

    information: Information = "gradients"
    metric: Metric = "cosine"
    layer: str | None = None
    trend: Annotated[int, Ge(2)] = 5
    extract: bool = True
    probe: Positive = 100
    standardise: bool = False
    simulated_runs: NotNegative = 0

    name: ClassVar[str] = "shift"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), sections 4 and 5.3"
    )

    def check_together(self) -> None:
        """Refuse a trend that the settings do not allow."""
        self._reader()

    def training_source(self) -> TrainingSource:
        """Return whose updates it is trained on."""
        return "virtual clients" if self.simulated_runs else "none"

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that affect the claims."""
        return frozenset({"model"} if self.information == "representations" else ())

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim for each target the round with the largest break in the trend.

        Raises:
            NeedsError: if too few consecutive rounds are readable, the layer does not exist, or
                the inputs of representations or simulations are missing.

        """
        reader = self._reader()
        return {target: reader.claim_shift(view, target, knowledge) for target in targets}

    def _reader(self) -> TrendReader:
        comparison = change_comparison(self.information, self.metric, self.layer, self.probe)
        return TrendReader(
            self.name,
            comparison,
            Trend(self.trend, self.standardise),
            self.extract,
            self.simulated_runs,
        )


def model_change_series(
    view: View,
    target: Party,
    knowledge: Knowledge,
    *,
    information: Information = "gradients",
    metric: Metric = "cosine",
    layer: str | None = None,
    probe: int = 100,
    extract: bool = True,
) -> dict[int, float]:
    """Compare a target's model in each round with that of the round before.

    Return values by round, if both rounds were observed and the value is finite. The settings
    are those of `ShiftTrend`.

    Raises:
        NeedsError: if the layer does not exist, or the inputs of representations are missing.

    """
    comparison = compare_changes(knowledge, information, metric, layer, probe)
    return series_of_target(view, target, comparison, extract)
