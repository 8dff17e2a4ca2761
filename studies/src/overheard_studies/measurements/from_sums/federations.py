"""Label shares of single clients behind secure aggregation, from sums over varying cohorts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import process_time

import numpy as np

from overheard.auditing.run import audit
from overheard.core.defense import Defense
from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.disk.folders import remove_folder
from overheard.findings.finding import Finding
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

SEEDS = (1, 2, 3, 4, 5)
"""The attack was chosen with the seeds 900 and 901."""

CLIENTS, EXAMPLES = 20, 300

ARM = "sums only"

SOURCES: Mapping[str, DataSource] = {"mnist": Mnist(shrink=2), "adult": Adult()}

RATES, ALPHAS = (0.1, 0.03), (0.1, 0.5)

BARS = {(0.1, 0.1): 0.6, (0.1, 0.5): 0.72, (0.03, 0.1): 0.48, (0.03, 0.5): 0.46}
"""Most that the error may be of that of the guess on MNIST, by rate and Dirichlet alpha, set
before the attack was written."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A federation whose server reads sums alone.

    Args:
        source: the key of `SOURCES`.
        rate: rate of SGD.
        split: how examples are divided among clients.
        rounds: number of rounds.
        participation: share of the clients that take part in a round.
        defenses: beside secure aggregation.
        failure_rate: probability that a selected client drops out.

    """

    source: str
    rate: float
    split: Split
    rounds: int = 40
    participation: float = 0.5
    defenses: tuple[Defense, ...] = ()
    failure_rate: float = 0.0

    def plan(self, seed: int) -> Plan:
        """Return the plan of one run."""
        return Plan(
            seeds=(seed,),
            data=DataPlan(
                source=SOURCES[self.source],
                split=self.split,
                clients=CLIENTS,
                examples=EXAMPLES,
                auxiliary_per_class=100,
            ),
            training=TrainingPlan(
                model=Mlp((64,)),
                rounds=self.rounds,
                rate=self.rate,
                batch=32,
                participation=self.participation,
                failure_rate=self.failure_rate,
            ),
            arms=(ArmPlan(name=ARM, defenses=(*self.defenses, SecureAggregation())),),
            threats=(
                ThreatPlan(
                    attacks=(SumShares(),),
                    virtual=VirtualPlan(clients=192, held_out=5),
                    by_round=False,
                ),
            ),
        )

    @property
    def _cohort(self) -> str:
        if self.participation == 0.5:
            return "half of the clients"
        return f"{self.participation * CLIENTS:g} clients"

    def words(self, runs: int) -> str:
        """Describe the setting."""
        return (
            f"{SOURCES[self.source].name}, {CLIENTS} clients of {EXAMPLES} examples, "
            f"{self.split!r}, MLP 64, rate {self.rate:g}, batches of 32, one epoch, "
            f"{self._cohort} in each of {self.rounds} rounds, sums only, {runs} runs"
        )


def _measure(key: str, cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield error, that of the guess, and coverage over all clients of all runs."""
    begun, seeds = process_time(), SEEDS[:1] if run.quick else SEEDS
    errors, guesses, held = [], [], []
    for seed in seeds:
        found = [one for one in _audited(cell, seed, run) if one.cell.arm == ARM]
        true = np.array([one.true_numbers for one in found])
        claimed = np.array([one.claimed.numbers for one in found])
        low, high = (
            np.array([getattr(one.claimed, end) for one in found]) for end in ("low", "high")
        )
        errors.append(np.abs(claimed - true).sum(1).mean())
        guesses.append(np.abs(true.mean(0) - true).sum(1).mean())
        held.append(((low <= true) & (true <= high)).mean())
    numbers = np.arange(len(seeds))
    words = cell.words(len(seeds))
    rows = {
        "l1": ("mean L1", np.array(errors)),
        "guess": ("mean L1 of the true shares of all clients together", np.array(guesses)),
        "ratio": ("mean L1, of that of the guess", np.array(errors) / np.array(guesses)),
        "coverage": ("share of the 90 % intervals that hold", np.array(held)),
    }
    for name, (told, values) in rows.items():
        yield make_value(f"{key}_{name}", f"{words}: {told}", estimate_mean(values, numbers))
    yield make_value(f"{key}_least_coverage", f"{words}: least of the runs", min(held))
    yield make_value(f"{key}_seconds", f"{words}: core seconds", process_time() - begun)


def _audited(cell: Cell, seed: int, run: MeasurementRun) -> tuple[Finding, ...]:
    folder = run.folder / "running"
    remove_folder(folder, inside=run.folder)
    found = audit(cell.plan(seed), folder, resources=run.resources).findings
    remove_folder(folder, inside=run.folder)
    return tuple(one for one in found if one.is_checked and not one.cell.is_control)


CELLS = {
    f"{source}_rate_{rate:g}_alpha_{alpha:g}": Cell(source, rate, Dirichlet(alpha))
    for source, rate, alpha in product(SOURCES, RATES, ALPHAS)
    if source == "mnist" or rate == RATES[0]
}


def _value(key: str, runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    found = next((one for one in values if one.name == key), None)
    if found is None or found.value is None or found.low is None or found.high is None:
        return {key: None}
    return {key: Estimate(found.value, found.low, found.high)}


def label_shares_from_sums() -> Study:
    """Return the errors of label shares from sums; about half an hour of one core."""
    return Study(
        "label_shares_from_sums",
        "Label shares of single clients behind secure aggregation",
        "It repeats no paper. The guess is the mean of the true shares of all clients, which "
        "no attacker knows.",
        measurements=(
            *(Measurement(key, partial(_measure, key, cell)) for key, cell in CELLS.items()),
        ),
        conclusions=tuple(
            Conclusion(
                f"bar_{rate:g}_{alpha:g}",
                f"Rate {rate:g}, Dirichlet {alpha:g}: the error is at most {bar:g} of that of "
                "the guess.",
                partial(_value, f"mnist_rate_{rate:g}_alpha_{alpha:g}_ratio"),
                "below",
                bar,
            )
            for (rate, alpha), bar in BARS.items()
        ),
    )
