"""PPA: the class that a client holds most of, by how little its model still learns of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.shares import Shares
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.papers.experiment import Experiment, Paper
from overheard.papers.protocol import ProtocolExperiment, ProtocolPanel
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ppa import Ppa as Attack

CLASSES = 10

MOST = 62.5
"""Per cent of its preferred class: 3,000 examples of it and 200 of each of nine others."""

REST = (100 - MOST) / (CLASSES - 1)

PREFERRING = Shares(
    tuple(
        tuple(MOST if label == own else REST for label in range(CLASSES))
        for own in range(CLASSES)
    )
)
"""One client for each class that it may prefer."""

DIFFERENCES = (
    "The settings are those of the authors' code as far as we know them: clients hold 3,000 "
    "examples of the class that they prefer and 200 of each other (on CIFAR-10 480 and 32, as "
    "the data folder may hold 1,000 images of each class), one local epoch of Adam in batches "
    "of 128, 200 auxiliary examples a class, five epochs of further training on 128 of a "
    "class, of which at most the 40 held out are taken. Ours start from fresh weights, where "
    "the code trains 50 epochs on the server's images first; hold no selective aggregation, "
    "an active step; read sensitivity in the last layer, where the code reads its last "
    "convolution; and train virtual clients with Dirichlet(0.1) shares, whose largest is "
    "about two thirds, in place of 100 shadows a class. The network is ours. The accuracies "
    "published, 90 and 98 % of clients, are those of the active attack; Products-10K and RAF- "
    "DB are left out."
)


@final
@dataclass(frozen=True, slots=True)
class PpaPaper(Paper):
    """Its headline: how often the preferred class is named."""

    name: ClassVar[str] = "ppa"
    title: ClassVar[str] = "PPA: Preference Profiling Attack Against Federated Learning"
    source: ClassVar[str] = "Zhou et al. 2023 (NDSS; arXiv 2202.04856)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Its experiments by name."""
        top1 = ProtocolExperiment(
            "top1",
            "How often the class is named that a client holds most of",
            DIFFERENCES,
            (
                ProtocolPanel(
                    "MNIST",
                    _plan(Mnist(), 4800, hurry=False),
                    _plan(Mnist(shrink=2), 480, hurry=True),
                    published=0.9,
                ),
                ProtocolPanel(
                    "CIFAR-10",
                    _plan(Cifar10(), 768, hurry=False),
                    _plan(Cifar10(), 240, hurry=True),
                    published=0.98,
                ),
            ),
            ("top1",),
            "higher",
        )
        return {top1.name: top1}


def _plan(source: DataSource, examples: int, *, hurry: bool) -> Plan:
    preference = Attack(form="preference")
    hurried = Attack(form="preference", samples=20, retraining=2)
    return Plan(
        title=f"PPA on {source.name}",
        seeds=(0,) if hurry else (0, 1, 2),
        data=DataPlan(
            source=source,
            split=PREFERRING,
            clients=CLASSES,
            examples=examples,
            auxiliary_per_class=200,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(16 if hurry else 32),
            rounds=2 if hurry else 5,
            rate=0.001,
            batch=32 if hurry else 128,
            optimizer="adam",
        ),
        threats=(
            ThreatPlan(
                attacks=(hurried, Amortised(steps=300)) if hurry else (preference, Amortised()),
                virtual=VirtualPlan(clients=120 if hurry else 1000, splits=(Dirichlet(0.1),)),
            ),
        ),
    )
