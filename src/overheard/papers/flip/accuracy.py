"""Table I: what models are worth that learn from distilled data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.attacks.mean_softmax import MeanSoftmax
from overheard.audit.plan import Plan, ThreatPlan
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.flip.printed import accuracy
from overheard.papers.flip.world import CIFAR10, MNIST, SMALL, World, arm_of
from overheard.papers.reading import figure, last_accuracy
from overheard.papers.runs import Runs
from overheard.papers.setting import setting

COMMON = (
    "The paper distils for 30 epochs of batches of 1,024 in each of 100 rounds, which is 360 "
    "steps a round for 12,000 examples; ours takes one step of 512 a round, over more rounds, "
    "so that all clients share a training in each of them. The optimiser of the synthetic data "
    "is not named there: ours is Adam (0.1 for inputs, 0.03 for labels, 0.001 for rates; "
    "inferred, as plain descent at the paper's 0.01 learns next to nothing). Our ConvNet has "
    "32 channels in place of 128, and our synthetic examples start from noise; the paper does "
    "not say from what."
)


@final
@dataclass(frozen=True, slots=True)
class AccuracyExperiment(Experiment):
    """FedAvg beside distilled data, on the paper's data.

    Args:
        worlds: that are run.
        reduced: those that are run in a hurry.
        name: of the table.

    """

    worlds: tuple[World, ...] = (MNIST, CIFAR10)
    reduced: tuple[World, ...] = (SMALL,)
    name: str = "table1"

    @property
    def title(self) -> str:
        """What the table shows."""
        return "Accuracy of FedAvg and of FLiP by synthetic examples a class"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{COMMON} CIFAR-10 is what the data folder holds of it. In a hurry MNIST has 14 x "
            "14 pixels, and the network two blocks of 16."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set, with an arm for each number of synthetic examples."""
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        worlds = self.reduced if quick else self.worlds
        return {one.name: one.plan((threat,), auxiliary=100) for one in worlds}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """The accuracy of each arm's last model, and its share of FedAvg's."""
        full = self.plans(quick=False)
        figures = []
        for name, audit in runs.audits.items():
            run = runs.plans[name]
            where = setting(name, run, full.get(name, run))
            model = run.training.model.name
            for arm in run.arms:
                samples = None if arm.flip is None else arm.flip.samples
                key = "fedavg" if samples is None else str(samples)
                told = "FedAvg" if samples is None else f"{arm_of(samples)}"
                figures.append(
                    figure(
                        f"{name}_{key}_accuracy",
                        f"{where}; {told}, the model after {run.rounds_of(arm)} rounds",
                        last_accuracy(audit, arm.name),
                        accuracy(name, model, key),
                        "higher",
                    )
                )
        return tuple(figures)
