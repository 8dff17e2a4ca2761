"""Ramakrishna and Dan: label shares from linear equations on the last layer's bias."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna as Attack
from overheard_studies.experiment import Experiment, Paper
from overheard_studies.protocol import ProtocolExperiment, ProtocolPanel

ESTIMATORS = (
    Attack(),
    Attack(form="auxiliary_gradient"),
    Attack(form="auxiliary_gradient_weights"),
    Attack(form="ratio"),
)

DIFFERENCES = (
    "The settings are those of the authors' code: ten clients of 100 to 1,500 examples with "
    "all label shares equally likely. They train five local epochs of SGD with momentum 0.9 "
    "at a rate of 0.01 in batches of 256, for 20 rounds. There are ten repetitions and ten "
    "auxiliary examples per class. The data set and the network are this project's. The paper "
    "measures the mean squared error, reported here as its root over classes (l2), and the "
    "divergence. The numbers of its figures are not available, so no published values are "
    "shown. The documentation of the attack lists the differences from the paper's equations."
)


@final
@dataclass(frozen=True, slots=True)
class RamakrishnaPaper(Paper):
    """The paper's three estimators and the one it compares with, by round."""

    name: ClassVar[str] = "ramakrishna"
    title: ClassVar[str] = "Inferring Class-Label Distribution in Federated Learning"
    source: ClassVar[str] = "Ramakrishna and Dan 2022 (AISec)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name."""
        forms = ProtocolExperiment(
            "forms",
            "Error of four estimators from the last layer, by round",
            DIFFERENCES,
            (ProtocolPanel("MNIST", _plan(quick=False), _plan(quick=True)),),
            ("kl", "l2", "l1"),
            "lower",
        )
        return {forms.name: forms}


def _plan(*, quick: bool) -> Plan:
    return Plan(
        title="Ramakrishna and Dan on MNIST",
        seeds=(0,) if quick else tuple(range(10)),
        data=DataPlan(
            source=Mnist(shrink=2) if quick else Mnist(),
            split=Dirichlet(1.0),
            clients=10,
            examples=(100, 1500),
            auxiliary_per_class=10,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(),
            rounds=4 if quick else 20,
            rate=0.01,
            epochs=5,
            batch=256,
            momentum=0.9,
        ),
        threats=(ThreatPlan(attacks=ESTIMATORS),),
    )
