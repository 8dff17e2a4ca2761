"""PPA: a client's majority class, from how little its model still learns of that class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.shares import Shares
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ppa import Ppa as Attack
from overheard_studies.experiment import Experiment, Paper
from overheard_studies.protocol import ProtocolExperiment, ProtocolPanel

CLASSES = 10

PREFERRED_PERCENT = 62.5
"""Percentage of the preferred class: 3,000 examples of it and 200 of each of nine others."""

OTHER_PERCENT = (100 - PREFERRED_PERCENT) / (CLASSES - 1)

PREFERENCE_SPLIT = Shares(
    tuple(
        tuple(
            PREFERRED_PERCENT if label == preferred else OTHER_PERCENT
            for label in range(CLASSES)
        )
        for preferred in range(CLASSES)
    )
)
"""One client for each preferred class."""

DIFFERENCES = (
    "The settings are those of the authors' code as far as they are known. Clients hold 3,000 "
    "examples of the class that they prefer and 200 of each other class. On CIFAR-10 these "
    "are 480 and 32, as the data folder may hold 1,000 images of each class. Clients train "
    "one local epoch of Adam in batches of 128. The attacker has 200 auxiliary examples per "
    "class and retrains for five epochs on 128 of a class; here on at most the 40 that are "
    "held out. The setting differs from the authors' code. The model starts from fresh "
    "weights; the code first trains 50 epochs on the server's images. There is no selective "
    "aggregation, which is an active step. Sensitivity is read in the last layer; the code "
    "reads the last convolution. The attacker trains virtual clients with Dirichlet(0.1) "
    "shares, whose largest is about two thirds, instead of 100 shadow models per class. The "
    "network is this project's. The published accuracies, 90 and 98 % of clients, are those "
    "of the active attack. Products-10K and RAF-DB are left out."
)


@final
@dataclass(frozen=True, slots=True)
class PpaPaper(Paper):
    """The main result: how often the attack names the preferred class."""

    name: ClassVar[str] = "ppa"
    title: ClassVar[str] = "PPA: Preference Profiling Attack Against Federated Learning"
    source: ClassVar[str] = "Zhou et al. 2023 (NDSS; arXiv 2202.04856)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name."""
        top1 = ProtocolExperiment(
            "top1",
            "How often the attack names the majority class of a client",
            DIFFERENCES,
            (
                ProtocolPanel(
                    "MNIST",
                    _plan(Mnist(), 4800, quick=False),
                    _plan(Mnist(shrink=2), 480, quick=True),
                    published=0.9,
                ),
                ProtocolPanel(
                    "CIFAR-10",
                    _plan(Cifar10(), 768, quick=False),
                    _plan(Cifar10(), 240, quick=True),
                    published=0.98,
                ),
            ),
            ("top1",),
            "higher",
        )
        return {top1.name: top1}


def _plan(source: DataSource, examples: int, *, quick: bool) -> Plan:
    preference = Attack(form="preference")
    quick_attack = Attack(form="preference", samples=20, retraining=2)
    return Plan(
        title=f"PPA on {source.name}",
        seeds=(0,) if quick else (0, 1, 2),
        data=DataPlan(
            source=source,
            split=PREFERENCE_SPLIT,
            clients=CLASSES,
            examples=examples,
            auxiliary_per_class=200,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(16 if quick else 32),
            rounds=2 if quick else 5,
            rate=0.001,
            batch=32 if quick else 128,
            optimizer="adam",
        ),
        threats=(
            ThreatPlan(
                attacks=(quick_attack, Amortised(steps=300))
                if quick
                else (preference, Amortised()),
                virtual=VirtualPlan(clients=120 if quick else 1000, splits=(Dirichlet(0.1),)),
            ),
        ),
    )
