"""LDIA: label shares from the last layer's changes over rounds, by a neural network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ldia import Ldia as Attack
from overheard_studies.experiment import Experiment, Paper
from overheard_studies.protocol import ProtocolExperiment, ProtocolPanel

DIFFERENCES = (
    "The settings are those of the authors' code for MNIST, with Dirichlet(0.8) clients and "
    "their network. There are five local epochs of SGD with momentum 0.9 and weight decay "
    "5e-4 at a learning rate of 0.001 in batches of 128, and 50 auxiliary examples per "
    "class. The attacker trains 1,000 virtual clients over ten rounds, equally many for each "
    "number of classes that a client may hold. The authors have 100 clients, a random half of "
    "which take part in each round, and train a network for each set of rounds in which "
    "some client takes part. Here 40 clients take part in every round, so that one "
    "network suffices. The attack reads the first ten rounds of a fresh model. The paper "
    "measures divergence, Chebyshev (linf) and cosine distance; the cosine distance is left "
    "out here. The numbers of the paper's tables are not available, so no published values are "
    "shown. At full size the network reads ten rounds of 10 x 512 numbers, and its training "
    "takes hours on a CPU. In a quick run images are halved in width and height, the last "
    "layer has 32 inputs, and the attack's network has no convolutions, since the rounds are "
    "too few for them."
)


@final
@dataclass(frozen=True, slots=True)
class LdiaPaper(Paper):
    """The error of the attack on MNIST."""

    name: ClassVar[str] = "ldia"
    title: ClassVar[str] = (
        "LDIA: Label Distribution Inference Attack Against Federated Learning in Edge Computing"
    )
    source: ClassVar[str] = "Gu and Bai 2023 (JISA 74)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name."""
        mnist = ProtocolExperiment(
            "mnist",
            "Error of the network that reads the last layer's changes",
            DIFFERENCES,
            (ProtocolPanel("MNIST", _plan(quick=False), _plan(quick=True)),),
            ("kl", "linf", "l1"),
            "lower",
        )
        return {mnist.name: mnist}


def _plan(*, quick: bool) -> Plan:
    return Plan(
        title="LDIA on MNIST",
        seeds=(0,) if quick else (0, 1, 2),
        data=DataPlan(
            source=Mnist(shrink=2) if quick else Mnist(),
            split=Dirichlet(0.8),
            clients=10 if quick else 40,
            examples=400 if quick else 1000,
            auxiliary_per_class=50,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(),
            rounds=3 if quick else 10,
            rate=0.001,
            epochs=5,
            batch=32 if quick else 128,
            momentum=0.9,
            weight_decay=5e-4,
        ),
        threats=(
            ThreatPlan(
                attacks=(Attack(), Amortised(steps=300) if quick else Amortised()),
                virtual=VirtualPlan(clients=160 if quick else 1000, splits=(Faces(),)),
            ),
        ),
    )
