"""Table I: accuracy of models trained on distilled data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from overheard.findings.audit import Audit
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import final_accuracy, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.flip.published_numbers import published_accuracy
from overheard_studies.flip.scenarios import (
    CIFAR10,
    MNIST,
    QUICK_MNIST,
    FlipScenario,
    flip_arm_name,
)
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting

COMMON_DIFFERENCES = (
    "The paper distils for 30 epochs with batches of 1,024 in each of 100 rounds, which is "
    "360 steps per round for 12,000 examples. Here a round is one step with a batch of 256, "
    "over more rounds, so that all clients share the training in each of them. The paper does "
    "not name the optimizer of the synthetic data. Here it is Adam (0.1 for inputs, 0.03 for "
    "labels, 0.001 to 0.003 for rates), which is inferred, as plain gradient descent at the "
    "paper's 0.01 learns almost nothing. The ConvNet has two blocks of 16 channels instead of "
    "three of 128. The synthetic examples start from noise; the paper does not say how they "
    "start."
)


@final
@dataclass(frozen=True, slots=True)
class AccuracyExperiment(Experiment):
    """FedAvg compared with distilled data, on the paper's data.

    Args:
        scenarios: scenarios of a full run.
        reduced: scenarios of a quick run.
        name: name of the table.

    """

    has_separate_arms: ClassVar[bool] = True

    scenarios: tuple[FlipScenario, ...] = (MNIST, CIFAR10)
    reduced: tuple[FlipScenario, ...] = (QUICK_MNIST,)
    name: str = "table1"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Accuracy of FedAvg and of FLiP by synthetic examples per class"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON_DIFFERENCES} Plain gradient descent at the paper's rate is reported as a "
            "control. "
            "CIFAR-10 consists of what the data folder holds of it, and has ten examples per "
            "class only. In a quick run MNIST has 14 x 14 pixels, and a training step on "
            "synthetic examples learns from ten of them, each at its own rate; the paper's "
            "learns from one (see flip/methods)."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set, with one arm per number of synthetic examples."""
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        scenarios = self.reduced if quick else self.scenarios
        return {one.name: one.build_plan((threat,), auxiliary=100) for one in scenarios}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the accuracy of each arm's last model, and its ratio to FedAvg's."""
        full = self.plans(quick=False)
        values = []
        for name, audit in runs.audits.items():
            run = runs.plans[name]
            context = describe_setting(name, run, full.get(name, run))
            model = run.training.model.name
            for arm in run.arms:
                key, description = _key(arm), f"{context}; {arm.name}"
                values.append(
                    reproduced_value(
                        f"{name}_{key}_accuracy",
                        f"{description}, the model after {run.rounds_of(arm)} rounds",
                        final_accuracy(audit, arm.name),
                        published_accuracy(name, model, key),
                        "higher",
                    )
                )
                if arm.distillation is not None:
                    values.append(
                        reproduced_value(
                            f"{name}_{key}_of_fedavg",
                            f"{description}, accuracy divided by FedAvg's",
                            _accuracy_ratio(audit, arm),
                            _published_accuracy_ratio(name, model, key),
                            "higher",
                        )
                    )
        return tuple(values)


def _key(arm: ArmPlan) -> str:
    """Return the name of an arm in the paper's table, or its own name if it is not there."""
    if arm.distillation is None:
        return "fedavg"
    samples = arm.distillation.samples
    return str(samples) if arm.name == flip_arm_name(samples) else arm.name.replace(" ", "_")


def _accuracy_ratio(audit: Audit, arm: ArmPlan) -> Estimate:
    """Return the ratio to FedAvg's accuracy with the same seed."""
    last = {
        (run.arm, run.seed): run.accuracy[max(run.accuracy)]
        for run in audit.arms
        if run.arm in ("FedAvg", arm.name)
    }
    seeds = [seed for name, seed in last if name == arm.name]
    shares = [last[arm.name, seed] / last["FedAvg", seed] for seed in seeds]
    return estimate_mean(np.array(shares), np.array(seeds))


def _published_accuracy_ratio(data: str, model: str, key: str) -> float | None:
    value, fedavg = (
        published_accuracy(data, model, key),
        published_accuracy(data, model, "fedavg"),
    )
    return None if value is None or fedavg is None else value / fedavg
