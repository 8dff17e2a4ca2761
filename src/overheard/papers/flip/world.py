"""The federations of the paper, and how much of them is run."""

from dataclasses import dataclass, replace
from typing import final

from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.candidates import Candidates
from overheard.data.splits.dirichlet import Dirichlet
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan

ALIKE = Dirichlet(alpha=10_000.0)
"""Clients get their examples by chance, as the paper has it."""


@final
@dataclass(frozen=True, slots=True)
class FlipScenario:
    """A data set and a network.

    Args:
        name: of the data, as the paper's table has it.
        source: the data.
        model: the network.
        examples: of each client.
        rounds: of FedAvg.
        flip: how clients distil.
        flip_rounds: how often.
        samples: synthetic examples of each class, an arm each.
        seeds: of the runs.
        beside: arms that distil in other ways, beside those.
        rate: of FedAvg's local training.
        batch: of it.
        epochs: of it.

    """

    name: str
    source: DataSource
    model: Model
    examples: int
    rounds: int
    flip: Flip
    flip_rounds: int
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    beside: tuple[ArmPlan, ...] = ()
    rate: float = 0.1
    batch: int = 64
    epochs: int = 1

    def plan(
        self,
        threats: tuple[ThreatPlan, ...],
        *,
        auxiliary: int,
        candidates: Candidates | None = None,
    ) -> Plan:
        """Five clients under FedAvg, and with so many synthetic examples a class."""
        return Plan(
            title=f"FLiP, {self.name}",
            seeds=self.seeds,
            data=DataPlan(
                source=self.source,
                split=ALIKE,
                clients=5,
                examples=self.examples,
                auxiliary=auxiliary,
                candidates=candidates,
            ),
            training=TrainingPlan(
                model=self.model,
                rounds=self.rounds,
                rate=self.rate,
                batch=self.batch,
                epochs=self.epochs,
            ),
            arms=(
                ArmPlan(name="FedAvg"),
                *(
                    ArmPlan(
                        name=arm_of(samples),
                        distillation=replace(self.flip, samples=samples),
                        rounds=self.flip_rounds,
                    )
                    for samples in self.samples
                ),
                *self.beside,
            ),
            threats=threats,
        )


def arm_of(samples: int) -> str:
    """What an arm with so many synthetic examples a class is called."""
    return f"FLiP {samples}"


PLAIN_DESCENT = "plain descent"
"""The arm that reads the paper's rate as one of plain descent."""


def plain_descent(rounds: int, at_once: int) -> ArmPlan:
    """The paper's rate of 0.01 for inputs, labels and rates alike, without Adam: a control."""
    return ArmPlan(
        name=PLAIN_DESCENT,
        distillation=Flip(
            batch=512,
            optimizer="sgd",
            input_rate=0.01,
            label_rate=0.01,
            rate_rate=0.01,
            at_once=at_once,
        ),
        rounds=rounds,
    )


TEN_A_STEP = Flip(batch=256, first_rate=0.03, rate_rate=0.002, halve_every=100, at_once=10)
"""Synthetic examples by tens, each at its own rate: a round takes a third of the time."""

SMALL = FlipScenario(
    "mnist",
    Mnist(shrink=2),
    ConvNet(blocks=2, width=16),
    examples=11_000,
    rounds=8,
    flip=TEN_A_STEP,
    flip_rounds=250,
    samples=(10,),
    seeds=(0, 1, 2),
    beside=(plain_descent(20, 10),),
)
"""MNIST in a hurry: half the pixels a side."""

MNIST = FlipScenario(
    "mnist",
    Mnist(),
    ConvNet(blocks=2, width=16),
    examples=11_000,
    rounds=10,
    flip=Flip(batch=256, halve_every=100),
    flip_rounds=250,
    samples=(10, 15, 20),
    seeds=(0, 1, 2),
    beside=(plain_descent(100, 1),),
)

CIFAR10 = FlipScenario(
    "cifar10",
    Cifar10(),
    ConvNet(blocks=2, width=16),
    examples=1_800,
    rounds=30,
    flip=Flip(batch=256, halve_every=150),
    flip_rounds=400,
    samples=(10,),
    seeds=(0, 1, 2),
    epochs=2,
)
"""What the data folder holds of it; more of it, and wider networks, take a GPU."""
