"""LDIA: label shares by a network that reads the last layer's changes over rounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.papers.experiment import Experiment, Paper
from overheard.papers.protocol import ProtocolExperiment, ProtocolPanel
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ldia import Ldia as Attack

DIFFERENCES = (
    "The settings are those of the authors' code for MNIST: Dirichlet(0.8) clients, their "
    "network, five local epochs of SGD with momentum 0.9 and weight decay 5e-4 at a rate of "
    "0.001 in batches of 128, 50 auxiliary examples a class, 1,000 virtual clients of which "
    "those with any number of classes are equally many, ten rounds. Theirs are 100 clients of "
    "whom a random half answers in each round, with a network for every set of rounds in "
    "which some client was heard; ours are 40 who all answer, so that one network serves. We "
    "read the first ten rounds of a fresh model. The paper measures "
    "divergence, Chebyshev (linf) and cosine distance, the last of which we leave out. The "
    "numbers of its tables are not known to us: there are no published ones. The image of ten "
    "rounds of 10 x 512 numbers takes the full size's network hours to learn on a CPU; in a "
    "hurry images are halved, so that the last layer has 32 inputs, and the rounds too few "
    "for convolutions."
)


@final
@dataclass(frozen=True, slots=True)
class LdiaPaper(Paper):
    """Its federation on MNIST, by distance."""

    name: ClassVar[str] = "ldia"
    title: ClassVar[str] = (
        "LDIA: Label Distribution Inference Attack Against Federated Learning in Edge Computing"
    )
    source: ClassVar[str] = "Gu and Bai 2023 (JISA 74)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Its experiments by name."""
        mnist = ProtocolExperiment(
            "mnist",
            "Error of the network that reads the last layer's changes",
            DIFFERENCES,
            (ProtocolPanel("MNIST", _plan(hurry=False), _plan(hurry=True)),),
            ("kl", "linf", "l1"),
            "lower",
        )
        return {mnist.name: mnist}


def _plan(*, hurry: bool) -> Plan:
    return Plan(
        title="LDIA on MNIST",
        seeds=(0,) if hurry else (0, 1, 2),
        data=DataPlan(
            source=Mnist(shrink=2) if hurry else Mnist(),
            split=Dirichlet(0.8),
            clients=10 if hurry else 40,
            examples=400 if hurry else 1000,
            auxiliary_per_class=50,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(),
            rounds=3 if hurry else 10,
            rate=0.001,
            epochs=5,
            batch=32 if hurry else 128,
            momentum=0.9,
            weight_decay=5e-4,
        ),
        threats=(
            ThreatPlan(
                attacks=(Attack(), Amortised(steps=300) if hurry else Amortised()),
                virtual=VirtualPlan(clients=160 if hurry else 1000, splits=(Faces(),)),
            ),
        ),
    )
