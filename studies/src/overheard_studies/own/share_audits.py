"""The measurements that are audits of label shares and of shifts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import final

from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.shift_census import ShiftCensus
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.attacks.zlg import Zlg
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard_studies.own.audits import (
    HALF_FASHION,
    HALF_MNIST,
    describe_plan,
    read_summary,
    seeded_panel,
)
from overheard_studies.study import Panel, Study

SHARE_ATTACKS = (
    Amortised(),
    MeanSoftmax(),
    BiasInversion(),
    Ramakrishna(form="soft_label"),
    Ramakrishna(form="auxiliary_gradient"),
    Decaf(),
    Zlg(),
    Llg(),
    Ilrg(),
    Ldia(convolutions=False),
    Whispers(),
)


RECIPES: Mapping[str, Mapping[str, object]] = {
    "sgd_1": {"rate": 0.05, "epochs": 1},
    "sgd_5": {"rate": 0.05, "epochs": 5},
    "adam_1": {"rate": 0.001, "epochs": 1, "optimizer": "adam"},
}
"""By optimizer and local epochs."""


SHARE_SOURCES = {"mnist": HALF_MNIST, "fashion_mnist": HALF_FASHION}


def label_shares(
    alphas: Sequence[float] = (0.5, 1.0, 2.0), auxiliaries: Sequence[int] = (1000, 100, 20)
) -> Study:
    """Return the error of each attack on label shares, in rounds 1 and 5 and all five."""

    def plan(
        source: DataSource, alpha: float, recipe: str, auxiliary: int, quick: bool
    ) -> Plan | None:
        if quick and (recipe, auxiliary) != ("sgd_1", 20):
            return None
        return Plan(
            title=f"Label shares on {source.name}",
            seeds=(0,) if quick else (0, 1, 2),
            data=DataPlan(
                source=source,
                split=Dirichlet(alpha),
                clients=5 if quick else 20,
                examples=100 if quick else 300,
                auxiliary_per_class=auxiliary,
            ),
            training=TrainingPlan.model_validate(
                {"model": Mlp((128, 64)), "rounds": 5, "batch": 32, **RECIPES[recipe]}
            ),
            threats=(
                ThreatPlan(
                    attacks=SHARE_ATTACKS,
                    by_round=2,
                    virtual=VirtualPlan(clients=64 if quick else 600),
                ),
            ),
        )

    return Study(
        "label_shares",
        "Error of every attack on label shares, by data, training and auxiliary examples",
        "It repeats no paper. Images have 14 x 14 pixels. Rivals have the settings of their "
        "papers and were not tuned.",
        tuple(
            Panel(
                f"{key}_alpha_{alpha:g}_{recipe}_auxiliary_{auxiliary}",
                f"{key}, Dirichlet({alpha:g}), {recipe}, {auxiliary} auxiliary a class",
                partial(plan, source, alpha, recipe, auxiliary),
                lambda one: read_summary(one, "l1", "coverage", "width", "doubted"),
            )
            for (key, source), alpha, recipe, auxiliary in product(
                SHARE_SOURCES.items(), alphas, RECIPES, auxiliaries
            )
        ),
        describe_plan,
    )


SHIFT_SCORES = (
    "auc",
    "auc_exact",
    "auc_told",
    "power_at_5",
    "detection_rate",
    "false_alarm_rate",
    "median_delay",
    "round_error",
    "direction_detected",
    "risen_error",
    "risen_coverage",
)


SIMULATED_RUNS = 39
"""Simulated runs without a shift, whose mean and spread in each round standardise rivals."""


SHIFT_ATTACKS = (
    ShiftTracking(),
    *(
        ShiftTrend(information=information, metric=metric, simulated_runs=runs)
        for runs in (0, SIMULATED_RUNS)
        for information in ("gradients", "weights", "representations")
        for metric in ("cosine", "cmd")
    ),
    *(
        ValidationShift(measure=measure, simulated_runs=runs)
        for runs in (0, SIMULATED_RUNS)
        for measure in ("loss", "accuracy")
    ),
)


SHIFT_NET = Mlp(hidden=(64,))


@final
@dataclass(frozen=True, slots=True)
class ShiftCase:
    """A federation, and the shifts that are tested on it.

    Args:
        about: description.
        source: data source.
        sizes: clients with the observer, examples of each, auxiliary examples of the observer,
            and rounds; the shift is in the middle, exchanges a quarter before and after.
        even: percentages of even labels after the shift, 50 before.
        model: trained model.
        shifting: number of clients that shift.
        is_balanced: whether clients begin with equal label shares.

    """

    about: str
    source: DataSource
    sizes: tuple[int, int, int, int]
    even: tuple[int, ...]
    model: Model = SHIFT_NET
    shifting: int = 1
    is_balanced: bool = True

    def plan(self, even: int, seeds: Sequence[int]) -> Plan:
        """Return the plan of some seeds at one severity."""
        clients, examples, auxiliary, rounds = self.sizes
        middle, quarter, labels = rounds // 2, rounds // 4, 10 if self.is_balanced else 2
        weights = tuple(float(100 - even if label % 2 else even) for label in range(labels))
        shifts = tuple(
            DataShift(
                client=client, round=number, weights=weights if number == middle else None
            )
            for client in range(1, 1 + self.shifting)
            for number in (middle - quarter, middle, middle + quarter)
        )
        return Plan(
            title=f"{self.about}, {even}-{100 - even}",
            seeds=tuple(seeds),
            data=DataPlan(
                source=self.source,
                split=Iid(balanced=self.is_balanced),
                clients=clients,
                examples=examples,
                auxiliary=auxiliary,
                test=1000,
                shifts=shifts,
            ),
            training=TrainingPlan(
                model=self.model,
                rounds=rounds,
                optimizer="adam",
                rate=1e-4,
                epochs=2,
                batch=32,
            ),
            threats=(
                ThreatPlan(
                    observers=("client/0",),
                    about="cohort",
                    attacks=SHIFT_ATTACKS,
                    by_round=False,
                    virtual=VirtualPlan(clients=58),
                ),
            ),
        )


SHIFT_CASES = {
    "rivals": ShiftCase(
        "MNIST, n = 2, 1,000 examples", HALF_MNIST, (2, 1000, 2000, 16), (70, 60)
    ),
    "mnist_n2": ShiftCase("MNIST, n = 2", HALF_MNIST, (2, 6700, 12000, 20), (70, 60)),
    "mnist_n5": ShiftCase("MNIST, n = 5", HALF_MNIST, (5, 2600, 12000, 20), (80, 70)),
    "mnist_n10": ShiftCase(
        "MNIST, n = 10, 3 shift", HALF_MNIST, (10, 1300, 12000, 20), (80, 70), shifting=3
    ),
    "fashion_n2": ShiftCase(
        "Fashion-MNIST, n = 2", HALF_FASHION, (2, 6700, 12000, 20), (70, 60)
    ),
    "adult_n2": ShiftCase(
        "Adult, n = 2", Adult(), (2, 3900, 6000, 40), (70, 60), ShiftCensus(), is_balanced=False
    ),
}


SHIFT_SEEDS = range(8000, 8020)


def shift(cases: Mapping[str, ShiftCase] = SHIFT_CASES) -> Study:
    """Return how well every attack distinguishes a shift from an exchange of examples."""
    return Study(
        "shift",
        "Shifts distinguished from exchanges of examples, by every attack",
        "It repeats no paper. The rivals run as published, and standardised round by round by "
        "simulated runs without a shift, as shift_tracking is. Each run has two controls: one "
        "with natural draws, and one that copies the label counts.",
        tuple(
            seeded_panel(
                f"{key}_{even}",
                f"{case.about}, {even}-{100 - even}",
                partial(case.plan, even),
                SHIFT_SEEDS,
                lambda one: read_summary(one, *SHIFT_SCORES),
            )
            for key, case in cases.items()
            for even in case.even
        ),
        describe_plan,
    )
