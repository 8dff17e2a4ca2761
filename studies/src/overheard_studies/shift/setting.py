"""The setting of the shift paper: data sets, measures by round, and plans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.view import View
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.shift_census import ShiftCensus
from overheard.learning.models.shift_conv import ShiftConv
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.shift.attacks import shift, validation_shift
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.estimators.model_comparisons import Information, Metric
from overheard.questions.shift.estimators.trend import Trend

LEARNING_RATE = 1e-4
"""Learning rate of Adam. The paper states it for the centralized model only. How far a shift
differs from an exchange depends on it, so quick runs have it too."""

BATCH_SIZE = 32
"""The paper does not state it."""

SEEDS = (0, 1, 2, 3, 4, 5)
"""Twice the paper's three runs, whose intervals leave nearly every statement undecided."""

CLIENTS = (2, 3, 5, 10)

SHIFTING_CLIENTS = {10: 3}
"""Number of shifting clients by number of clients, if it is more than one."""


@final
@dataclass(frozen=True, slots=True)
class ShiftSize:
    """How large a federation is, and how it trains.

    Args:
        source: source of the data.
        model: model that is trained.
        rounds: number of rounds.
        shift_round: first round on new data, from 0; one less than the paper's s.
        examples: examples of each client by number of clients; the centralized model has those
            for two clients.
        auxiliary: auxiliary examples for validation and representations; Overheard's detector
            uses as many as a client holds.
        rate: rate of Adam.
        batch: examples of a step.
        refresh_every: rounds after which all clients exchange their examples for others of the
            same distribution, again and again; None = nothing is exchanged before the shift.
        virtual: virtual clients of Overheard's detector in each round; None = it is not run.
        seeds: seeds of the runs.
        test: examples on which the accuracy is measured.

    """

    source: DataSource
    model: Model
    rounds: int
    shift_round: int
    examples: Mapping[int, int]
    auxiliary: int = 1000
    rate: float = LEARNING_RATE
    batch: int = BATCH_SIZE
    refresh_every: int | None = None
    virtual: int | None = None
    seeds: tuple[int, ...] = SEEDS
    test: int = 1000


@final
@dataclass(frozen=True, slots=True)
class ShiftScenario:
    """One data set of the paper.

    Args:
        name: as the paper writes it.
        labels: number of labels.
        training_examples: number of training examples in total.
        full: size of a full run.
        reduced: size of a quick run.
        even_share: share of even labels after the shift in the scalability study, if even and
            odd labels were equally frequent before.
        paper_size: sizes in the paper.
        hours: core hours for all runs of one setting at full size, extrapolated from one run or
            from the time of a step.
        disk_gigabytes: gigabytes that all runs of its largest federation write.
        variation: what is varied where the paper leaves a setting open, in words; "" = nothing.

    """

    name: str
    labels: int
    training_examples: int
    full: ShiftSize
    reduced: ShiftSize
    even_share: float
    paper_size: str
    hours: float
    disk_gigabytes: float
    variation: str = ""

    @property
    def label(self) -> str:
        """Name and variation."""
        return f"{self.name}, {self.variation}" if self.variation else self.name

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return self.full.source.name


IMAGE_EXAMPLES = dict(zip(CLIENTS, (6700, 4400, 2600, 1300), strict=True))
CENSUS_EXAMPLES = dict(zip(CLIENTS, (3900, 2600, 1500, 800), strict=True))
QUICK_IMAGE_EXAMPLES = dict(zip(CLIENTS, (1000, 700, 400, 200), strict=True))
QUICK_CENSUS_EXAMPLES = dict(zip(CLIENTS, (600, 400, 240, 120), strict=True))

VIRTUAL_CLIENTS = 40
"""The smallest useful number for Overheard's detector.

They take twenty times as long as the federation, so only the Census at its full size, with a
small network, has them.
"""


def _quick_images(source: DataSource) -> ShiftSize:
    """Return the quick size for images of 14 x 14 pixels."""
    return ShiftSize(source, Mlp((64, 32)), 14, 10, QUICK_IMAGE_EXAMPLES)


MNIST = ShiftScenario(
    "MNIST",
    10,
    60_000,
    ShiftSize(Mnist(), ShiftConv(), 20, 10, IMAGE_EXAMPLES),
    _quick_images(Mnist(shrink=2)),
    even_share=0.7,
    paper_size="20 rounds, clients of 6,700 to 1,300 examples",
    hours=3.4,
    disk_gigabytes=13.0,
)

FASHION_MNIST = ShiftScenario(
    "Fashion-MNIST",
    10,
    60_000,
    ShiftSize(FashionMnist(), ShiftConv(), 40, 20, IMAGE_EXAMPLES),
    _quick_images(FashionMnist(shrink=2)),
    even_share=0.7,
    paper_size="40 rounds, clients of 6,700 to 1,300 examples",
    hours=6.8,
    disk_gigabytes=26.0,
)

CENSUS = ShiftScenario(
    "Census",
    2,
    32_561,
    ShiftSize(Adult(), ShiftCensus(), 100, 50, CENSUS_EXAMPLES, 4000, virtual=VIRTUAL_CLIENTS),
    ShiftSize(Adult(), ShiftCensus(), 14, 10, QUICK_CENSUS_EXAMPLES),
    even_share=0.6,
    paper_size="100 rounds, clients of 3,900 to 800 examples",
    hours=1.0,
    disk_gigabytes=0.3,
)


NO_OTHER_EXAMPLES: Mapping[int, int] = {}


def vary(
    scenario: ShiftScenario,
    variation: str,
    *,
    batch: int = BATCH_SIZE,
    refresh_every: int | None = None,
    examples: Mapping[int, int] = NO_OTHER_EXAMPLES,
) -> ShiftScenario:
    """Return a scenario with other settings of its full and quick size.

    Args:
        scenario: the scenario.
        variation: the changes in words.
        batch: see `ShiftSize`.
        refresh_every: see `ShiftSize`.
        examples: of each client at the full size, for the numbers of clients that have others.

    """
    full, reduced = (
        replace(size, batch=batch, refresh_every=refresh_every)
        for size in (scenario.full, scenario.reduced)
    )
    full = replace(full, examples={**full.examples, **examples})
    return replace(scenario, variation=variation, full=full, reduced=reduced)


EXCHANGE_EVERY = 5
"""Rounds between exchanges on MNIST, if clients exchange examples periodically (section 2.2 of
the paper). By the paper's sizes, the data have four chunks for each client. So a chunk lasts a
quarter of the 20 rounds, and the shift is the second exchange."""

EXCHANGED_EXAMPLES = {2: 5000}
"""Examples of each of two clients that exchange them. Of the paper's 6,700, four chunks with
shifted shares have more examples of one label than MNIST."""

INFORMATION: tuple[Information, ...] = ("weights", "representations", "gradients")

METRICS: tuple[Metric, ...] = ("cosine", "procrustes", "cmd")

METRIC_NAMES: Mapping[Metric, str] = {
    "cosine": "cosine",
    "procrustes": "Procrustes distance",
    "cmd": "CMD",
    "scaled_cmd": "scaled CMD",
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

SCALED_CMD = source_of_leakage("representations", "scaled_cmd")
"""CMD with moments on one scale, as its authors define it. Without the scale, that of
representations is decided by fifth moments, as activations have no bound."""

LOSS = LeakageMeasure("validation_loss", "validation loss", ValidationShift("loss"))

ACCURACY = LeakageMeasure(
    "validation_accuracy", "validation accuracy", ValidationShift("accuracy")
)


OBSERVER = client(0)
"""The client that is the attacker."""

LOCAL_EPOCHS = 2


def build_federated_plan(
    scenario: ShiftScenario,
    size: ShiftSize,
    clients: int,
    even_share: float,
    measures: Sequence[LeakageMeasure],
) -> Plan:
    """Build the plan of an audit of a federation with one of its clients as the observer.

    Args:
        scenario: data set and federation.
        size: data, model and rounds of the run.
        clients: number of clients, including the attacker; the last of them shift.
        even_share: share of even labels after the shift, if even and odd labels were equally
            frequent before.
        measures: what the attacker measures in each round, each with its own attack.

    """
    shifting = range(clients - SHIFTING_CLIENTS.get(clients, 1), clients)
    return Plan(
        title=f"A shift to {format_ratio(even_share)} on {scenario.label} "
        f"among {clients} clients",
        seeds=size.seeds,
        data=_data(
            size,
            clients,
            size.examples[clients],
            build_shifts(scenario, size, shifting, even_share),
        ),
        training=_training(size, LOCAL_EPOCHS),
        threats=(
            ThreatPlan(
                observers=(OBSERVER,),
                about="cohort",
                attacks=attacks_of_measures(measures),
                by_round=False,
            ),
            *_tracking_threats(size),
        ),
    )


def build_centralized_plan(
    scenario: ShiftScenario,
    size: ShiftSize,
    even_share: float,
    measures: Sequence[LeakageMeasure],
) -> Plan:
    """Build the plan of a centralized model: one client with one epoch per round.

    The client has as many examples as one of two clients in a federation.
    """
    return Plan(
        title=f"A shift to {format_ratio(even_share)} on {scenario.label} without a federation",
        seeds=size.seeds,
        data=_data(
            size, 1, size.examples[2], build_shifts(scenario, size, range(1), even_share)
        ),
        training=_training(size, 1),
        threats=(ThreatPlan(attacks=attacks_of_measures(measures), by_round=False),),
    )


def plan_target(plan: Plan) -> Party:
    """Return the target of the plan's first threat."""
    return client(0) if plan.threats[0].observer_parties == (SERVER,) else COHORT


def build_shifts(
    scenario: ShiftScenario, size: ShiftSize, clients: Sequence[int], even_share: float
) -> tuple[DataShift, ...]:
    """Make the shifts of these clients.

    Even labels get weight `even_share`, odd labels 1 - `even_share`.
    """
    weights = tuple(
        even_share if label % 2 == 0 else 1 - even_share for label in range(scenario.labels)
    )
    return tuple(
        DataShift(client=index, round=size.shift_round, weights=weights) for index in clients
    )


def attacks_of_measures(
    measures: Sequence[LeakageMeasure],
) -> tuple[ShiftTrend | ValidationShift, ...]:
    """Return the attacks of these measures."""
    return tuple(one.attack for one in measures)


def format_ratio(even_share: float) -> str:
    """Format the ratio of even to odd labels, such as "70-30"."""
    return f"{100 * even_share:.0f}-{100 - 100 * even_share:.0f}"


def _data(
    size: ShiftSize, clients: int, examples: int, data_shifts: tuple[DataShift, ...]
) -> DataPlan:
    return DataPlan(
        source=size.source,
        split=Iid(),
        clients=clients,
        examples=examples,
        auxiliary=size.auxiliary,
        test=size.test,
        shifts=data_shifts,
        refresh_every=size.refresh_every,
        # The control then differs from the run by the shift alone.
        exchanges="exact",
    )


def _training(size: ShiftSize, epochs: int) -> TrainingPlan:
    return TrainingPlan(
        model=size.model,
        rounds=size.rounds,
        rate=size.rate,
        epochs=epochs,
        batch=size.batch,
        optimizer="adam",
    )


def _tracking_threats(size: ShiftSize) -> tuple[ThreatPlan, ...]:
    """Return the threat with Overheard's detector; none if the size has no virtual clients."""
    if size.virtual is None:
        return ()
    return (
        ThreatPlan(
            observers=(OBSERVER,),
            about="cohort",
            attacks=(ShiftTracking(),),
            by_round=False,
            virtual=VirtualPlan(clients=size.virtual),
        ),
    )
