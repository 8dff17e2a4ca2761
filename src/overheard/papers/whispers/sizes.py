"""Figure 2: how long updates are by a client's size, and the sizes read off their lengths."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import final

import numpy as np

from overheard.core.messages import Weights
from overheard.core.parties import SERVER, client
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import BOOTSTRAP, figure, mean
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.papers.whispers.benchmark import MNIST, WhispersBenchmark, WhispersSize
from overheard.papers.whispers.differences import common
from overheard.papers.whispers.methods import unhurried
from overheard.papers.whispers.plans import place_of, plan
from overheard.papers.whispers.scenario import alike
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.statistics.estimate import Estimate, estimate

EXPECTED = (100, 4000)
"""Examples of the smallest and the largest client that the attacker thinks of."""

WAYS = {
    "doubling": unhurried("Algorithm 1", Whispers(size="doubling", most_rounds=1)),
    "bisection": unhurried("our repair of it", Whispers(size="bisection", most_rounds=1)),
}
"""How sizes are estimated; the shares that whispers claims besides are of no interest here."""

FULL = replace(MNIST.full, clients=5, virtual=60)
REDUCED = replace(FULL, source=MNIST.reduced.source, rounds=2, seeds=(0,))

FACTOR = "size_factor"
"""The score that tells how far off a size is: |log2(estimated / true)|."""


@final
@dataclass(frozen=True, slots=True)
class SizesExperiment(Experiment):
    """Clients of five sizes that hear the same first broadcast.

    Args:
        benchmark: whose data are used.
        sizes: examples of each client, as the paper has them.
        full: how much is run.
        reduced: how much is run in a hurry.
        name: of the figure.

    """

    benchmark: WhispersBenchmark = MNIST
    sizes: tuple[int, ...] = (2000, 1600, 1000, 600, 200)
    full: WhispersSize = FULL
    reduced: WhispersSize = REDUCED
    name: str = "figure2"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return f"Length of updates and estimated size by size, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common([self.benchmark])} The numbers of this figure are lost, and it is not "
            "told whether it shows single gradients or whole updates: ours are lengths of "
            "updates. They grow with size as larger clients take more steps; the paper's "
            "reason, noisy gradients of small clients, would by its own Equation 3 make "
            "theirs the longer ones. All clients hold every label about equally often, the "
            "case in which a size can be read best; the attacker expects any size from "
            f"{EXPECTED[0]} to {EXPECTED[1]}. Batches are of 128 whatever the size. The paper "
            "gives neither tolerance nor first guess of Algorithm 1 (ours: 5 % and 500; 1,000 "
            "and 2,000 are among the sizes that it can reach from there, which makes it seem "
            "exact)."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a size."""
        return {
            f"size_{examples}": plan(
                alike(self.benchmark),
                replace(self.reduced if quick else self.full, examples=(examples, examples)),
                quick=quick,
                methods=tuple(WAYS.values()),
                expected=EXPECTED,
            )
            for examples in self.sizes
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Lengths in the first and the last round, and how far off the estimates are."""
        full = self.plans(quick=False)
        figures = []
        for key, run in runs.plans.items():
            where = setting(self.benchmark.name, run, full[key])
            figures += [
                figure(
                    f"{key}_norm_round_{number + 1}",
                    f"{where}; L2 length of an update in round {number + 1}",
                    lengths(runs, key, number),
                    None,
                    None,
                )
                for number in (0, run.training.rounds - 1)
            ]
            for number, (kind, way) in enumerate(WAYS.items()):
                told = f"{where}; {kind} ({way.told})"
                place = place_of(run, number, UNDEFENDED)
                figures.append(
                    figure(
                        f"{key}_{kind}_{FACTOR}",
                        f"{told}, |log2(estimated / true)|: 1 = off by a factor of 2",
                        mean(runs.audits[key], place, FACTOR),
                        None,
                        "lower",
                    )
                )
        return tuple(figures)


def lengths(runs: Runs, key: str, number: int) -> Estimate:
    """The mean L2 norm of the updates of one round, over clients and seeds."""
    run = runs.plans[key]
    values, seeds = [], []
    for seed in run.seeds:
        view = runs.transcript(key, UNDEFENDED, seed).seen_by(SERVER)
        for who in range(run.data.clients):
            values.append(_length(view.updates(client(who))[number].delta))
            seeds.append(seed)
    return estimate(np.array(values), np.array(seeds), BOOTSTRAP)


def _length(delta: Weights) -> float:
    return sqrt(sum(float(part.double().square().sum()) for part in delta.values()))
