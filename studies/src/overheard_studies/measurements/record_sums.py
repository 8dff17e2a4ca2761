"""Which client holds a record, and membership by client, behind secure aggregation."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from overheard.auditing.run import audit
from overheard.auditing.simulate import knowledge, simulate
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.disk.folders import remove_folder
from overheard.learning.models.mlp import Mlp
from overheard.participation.participation import find_participation
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.sum_membership import SumMembership
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard.questions.membership.scorer import MembershipScorer
from overheard.questions.source_inference.attacks.sum_source import SumSource
from overheard.questions.source_inference.attacks.whitened_source import WhitenedSource
from overheard.questions.source_inference.scorer import SourceInferenceScorer
from overheard.statistics.run_means import estimate_mean
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, make_value

SEEDS = (1, 2, 3)
"""The attacks were chosen with the seeds 900 and 901."""

CLIENTS, EXAMPLES, MEMBERS, OUTSIDERS, ROUNDS = 20, 300, 20, 400, 40

PREFIXES = (5, 10, 20)
"""Rounds after which the holders are named too."""

OTHER_CLIENTS = 500
"""Added to the seed of a run, it is the seed of its control."""

SINGLE, SUMS = "single updates", "sums only"
"""The arms, by what the server reads."""

SCORES = (
    "source_accuracy",
    "source_log_loss",
    "source_calibration_error",
    "nobody_error",
    "membership_auc",
    "tpr_at_1_percent",
)
"""The scores that are kept."""

Found = Iterator[tuple[str, float]]
"""Figures by name."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A federation whose records are looked for.

    Args:
        source: the data set.
        rate: rate of SGD.
        split: how examples are divided among clients.

    """

    source: DataSource
    rate: float
    split: Split

    def plan(self, seed: int) -> Plan:
        """Return the plan of one run, which asks sums alone."""
        return Plan(
            seeds=(seed,),
            data=DataPlan(
                source=self.source,
                split=self.split,
                clients=CLIENTS,
                examples=EXAMPLES,
                auxiliary_per_class=100,
                candidates=CandidateSettings(members=MEMBERS, outsiders=OUTSIDERS),
            ),
            training=TrainingPlan(
                model=Mlp((64,)), rounds=ROUNDS, rate=self.rate, batch=32, participation=0.5
            ),
            arms=(ArmPlan(name=SINGLE), ArmPlan(name=SUMS, defenses=(SecureAggregation(),))),
            threats=tuple(
                ThreatPlan(attacks=(attack,), by_round=False)
                for attack in (SumSource(), SumMembership())
            ),
        )

    def words(self, runs: int) -> str:
        """Describe the setting."""
        return (
            f"{self.source.name}, {CLIENTS} clients of {EXAMPLES} examples, {self.split!r}, "
            f"MLP 64, rate {self.rate:g}, batches of 32, one epoch, half of the clients in "
            f"each of {ROUNDS} rounds, {MEMBERS} candidates of each client and {OUTSIDERS} of "
            f"none, {runs} runs"
        )


def _measure(key: str, cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures of a cell, as means over the runs."""
    begun, seeds = process_time(), SEEDS[:1] if run.quick else SEEDS
    values = defaultdict[str, list[float]](list)
    for seed in seeds:
        for name, value in _figures(cell, seed, run):
            values[name].append(value)
    words = cell.words(len(seeds))
    for name, each in values.items():
        measured = estimate_mean(np.array(each), np.arange(len(each)), may_be_trials=False)
        yield make_value(f"{key}_{name}".replace(" ", "_"), f"{words}: {name}", measured)
    yield make_value(f"{key}_seconds", f"{words}: core seconds", process_time() - begun)


def _figures(cell: Cell, seed: int, run: MeasurementRun) -> Found:
    """Yield the figures of one run."""
    known = knowledge(cell.plan(seed), arm=SUMS, resources=run.resources)
    source, membership = SourceInferenceScorer(), MembershipScorer()
    folder = run.folder / "running"
    transcript, truth = _simulate(cell.plan(seed), SUMS, folder, run)
    judge = partial(_scores, known=known, truth=truth)
    view = transcript.seen_by(SERVER)
    yield from judge("sums", SumSource(), source, view)
    yield from judge("sums", SumMembership(), membership, view)
    yield from judge("any client", WhitenedMembership(), membership, view, [COHORT])
    for count in PREFIXES:
        part = view.during(range(count))
        yield from judge(f"sums of {count} rounds", SumSource(), source, part)
    other, _ = _simulate(cell.plan(seed + OTHER_CLIENTS), SUMS, folder, run)
    strange = other.seen_by(SERVER)
    yield from judge("sums of other clients", SumSource(), source, strange)
    yield from judge("sums of other clients", SumMembership(), membership, strange)
    transcript, _ = _simulate(cell.plan(seed), SINGLE, folder, run)
    single = transcript.seen_by(SERVER)
    yield from judge("single updates", WhitenedSource(), source, single)
    yield from judge("single updates", WhitenedMembership(), membership, single)
    remove_folder(folder, inside=run.folder)


def _simulate(
    plan: Plan, arm: str, folder: Path, run: MeasurementRun
) -> tuple[Transcript, GroundTruth]:
    remove_folder(folder, inside=run.folder)
    return simulate(plan, arm=arm, folder=folder, resources=run.resources)


# Any: attacks and scorers of two questions.
def _scores(
    reads: str,
    attack: Attack[Any],
    scorer: Scorer[Any],
    view: View,
    targets: Sequence[Party] = (),
    *,
    known: Knowledge,
    truth: GroundTruth,
) -> Found:
    """Yield the mean scores of an attack on all clients, and the guesses at holders."""
    sums = find_participation(view.messages)
    clients = targets or (sorted(view.senders()) if sums is None else sums.clients)
    found = defaultdict[str, list[float]](list)
    for target, claim in attack.infer(view, clients, known, Seed(0)).items():
        true = scorer.true_claim(truth, target, view.rounds(), claim)
        for score in scorer.score(claim, true, scorer.guesses(true, known)):
            if score.name in SCORES:
                found[score.name].append(score.value)
            if score.name == "source_accuracy" and reads == "sums":
                for guess, value in {**score.uninformed, **score.references}.items():
                    found[f"{score.name} of {guess}"].append(value)
    for name, values in found.items():
        yield f"{reads} {name}", float(np.mean(values))


def _measure_verdicts(cell: Cell, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield how many audits of sums end in "leaks", by attack."""
    seeds, leaks = SEEDS[:1] if run.quick else SEEDS, defaultdict[str, int](int)
    for seed in seeds:
        folder = run.folder / "running"
        remove_folder(folder, inside=run.folder)
        made = audit(cell.plan(seed), folder, resources=run.resources)
        remove_folder(folder, inside=run.folder)
        for arm in (one for one in made.arm_results if one.name == SUMS):
            for threat in arm.threat_results:
                label = threat.attack_results[0].label
                leaks[label] += threat.judgement.verdict == "leaks"
    for label, count in leaks.items():
        words = f'{cell.words(len(seeds))}: audits with {label} that say "leaks"'
        yield make_value(f"verdicts_{label}", words, float(count))


MNIST = Mnist(shrink=2)

CELLS = {
    "mnist_fast": Cell(MNIST, 0.1, Iid()),
    "mnist_slow": Cell(MNIST, 0.03, Iid()),
    "mnist_fast_labels": Cell(MNIST, 0.1, Dirichlet(0.5)),
    "mnist_slow_labels": Cell(MNIST, 0.03, Dirichlet(0.5)),
    "adult": Cell(Adult(), 0.1, Iid()),
    "cifar10": Cell(Cifar10(), 0.03, Iid()),
}


def records_from_sums() -> Study:
    """Return how often the holder of a record is named from sums; a quarter of a core hour."""
    return Study(
        "records_from_sums",
        "Which client holds a record, behind secure aggregation",
        "It repeats no paper. The control has the sums of a federation of other clients, which "
        "trained on other records but for chance.",
        measurements=(
            *(Measurement(key, partial(_measure, key, cell)) for key, cell in CELLS.items()),
            Measurement("verdicts", partial(_measure_verdicts, CELLS["mnist_fast"])),
        ),
    )
