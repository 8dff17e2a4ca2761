"""Figure 2: norms of updates by client size, and the sizes estimated from the norms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import final

import numpy as np

from overheard.core.messages import Weights
from overheard.core.parties import SERVER, client
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import mean_score, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.whispers.benchmark import MNIST, WhispersBenchmark, WhispersSize
from overheard_studies.whispers.differences import common_differences
from overheard_studies.whispers.methods import single_size_method
from overheard_studies.whispers.plans import build_finding_filter, build_plan
from overheard_studies.whispers.scenario import iid_scenario

EXPECTED_SIZES = (100, 4000)
"""Sizes of the smallest and of the largest client that the attacker expects."""

SIZE_ESTIMATORS = {
    "doubling": single_size_method("Algorithm 1", Whispers(size="doubling", most_rounds=1)),
    "bisection": single_size_method(
        "Overheard's correction of it", Whispers(size="bisection", most_rounds=1)
    ),
}
"""The estimators of sizes; the label shares that whispers also claims are not used here."""

FULL = replace(MNIST.full, clients=5, virtual=60)
REDUCED = replace(FULL, source=MNIST.reduced.source, rounds=2, seeds=(0,))

SIZE_FACTOR_SCORE = "size_factor"
"""The score of an estimated size: |log2(estimated / true)|."""


@final
@dataclass(frozen=True, slots=True)
class SizesExperiment(Experiment):
    """Clients of five sizes with the same first broadcast.

    Args:
        benchmark: data set.
        sizes: examples of each client, as in the paper.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    benchmark: WhispersBenchmark = MNIST
    sizes: tuple[int, ...] = (2000, 1600, 1000, 600, 200)
    full: WhispersSize = FULL
    reduced: WhispersSize = REDUCED
    name: str = "figure2"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Norm of updates and estimated size by client size, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences([self.benchmark])} The values of this figure are lost, and "
            "the paper "
            "does not say whether it shows single gradients or whole updates; here they are "
            "norms of updates. Norms grow with size, as larger clients take more steps. The "
            "paper's reason is that gradients of small clients are noisy; by its own Equation "
            "3, small clients would then have the larger norms. All clients hold every label "
            "about equally often, which is the easiest case for estimating a size. The "
            f"attacker expects any size from {EXPECTED_SIZES[0]} to {EXPECTED_SIZES[1]}. "
            "Batches have 128 "
            "examples at every size. The paper gives neither the tolerance nor the first "
            "guess of Algorithm 1. Here they are 5 % and 500; 1,000 and 2,000 are among the "
            "sizes that it can reach from there, so it seems exact for them."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per client size."""
        return {
            f"size_{examples}": build_plan(
                iid_scenario(self.benchmark),
                replace(self.reduced if quick else self.full, examples=(examples, examples)),
                quick=quick,
                methods=tuple(SIZE_ESTIMATORS.values()),
                expected_sizes=EXPECTED_SIZES,
            )
            for examples in self.sizes
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return norms in the first and last round, and the errors of the estimated sizes."""
        full = self.plans(quick=False)
        values = []
        for key, run in runs.plans.items():
            context = describe_setting(self.benchmark.name, run, full[key])
            values += [
                reproduced_value(
                    f"{key}_norm_round_{number + 1}",
                    f"{context}; L2 norm of an update in round {number + 1}",
                    mean_update_norm(runs, key, number),
                    None,
                    None,
                )
                for number in (0, run.training.rounds - 1)
            ]
            for number, (kind, estimator) in enumerate(SIZE_ESTIMATORS.items()):
                description = f"{context}; {kind} ({estimator.published_name})"
                finding_filter = build_finding_filter(run, number, UNDEFENDED)
                values.append(
                    reproduced_value(
                        f"{key}_{kind}_{SIZE_FACTOR_SCORE}",
                        f"{description}, |log2(estimated / true)|: 1 = off by a factor of 2",
                        mean_score(runs.audits[key], finding_filter, SIZE_FACTOR_SCORE),
                        None,
                        "lower",
                    )
                )
        return tuple(values)


def mean_update_norm(runs: ExperimentRuns, key: str, number: int) -> Estimate:
    """Return the mean L2 norm of the updates of one round, over clients and seeds."""
    run = runs.plans[key]
    values, seeds = [], []
    for seed in run.seeds:
        view = runs.transcript(key, UNDEFENDED, seed).seen_by(SERVER)
        for index in range(run.data.clients):
            values.append(_norm(view.updates(client(index))[number].delta))
            seeds.append(seed)
    return estimate_mean(np.array(values), np.array(seeds))


def _norm(delta: Weights) -> float:
    return sqrt(sum(float(part.double().square().sum()) for part in delta.values()))
