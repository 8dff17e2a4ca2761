"""The epsilon of a client as canary clients estimate it, beside the true one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import sqrt
from pathlib import Path
from time import process_time

import numpy as np
import torch
from scipy.optimize import brentq

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.simulate import build_federation
from overheard.core.accounting.accountant import gaussian_epsilon
from overheard.core.defense import Defense
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.truth import GroundTruth
from overheard.data.dataset import Dataset
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.iid import Iid
from overheard.defenses.canary_clients import CanaryClients
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.local_dp import LocalDp
from overheard.disk.folders import remove_folder
from overheard.epsilon.canary_cosines import (
    cosines_with,
    read_canary_scores,
    single_scores,
    without_canaries,
)
from overheard.epsilon.client_estimate import (
    ClientEpsilonEstimate,
    estimate_client_epsilon,
    expected_interval,
)
from overheard.federation.run import run as run_federation
from overheard.findings.privacy.canary_scores import CanaryEvidence, CanaryScores
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.statistics.estimate import Estimate, convert_estimate
from overheard.statistics.exact_intervals import estimate_median, estimate_proportion
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

EPSILONS = (1.0, 2.0, 4.0, 8.0)

DELTA = 1e-5

IDEAL_CANARIES = (10, 30, 100, 1000)

IDEAL_DIMENSION, IDEAL_TRIALS = 10_000, 400

TRIALS, CANARIES, OTHERS, ROUNDS = 100, 100, 50, 3
"""Of a federation; the settings of the estimate were chosen with other seeds."""

FIRST_SEED = 500

SEEDS_APART = 1000
"""Between the first seeds of two epsilons, so that their errors have nothing in common."""

UTILITY_CANARIES, UTILITY_SEEDS, UTILITY_ROUNDS = (0, 1, 10, 50), 5, 10

MECHANISMS: Mapping[type[DpFedavg] | type[LocalDp], tuple[CanaryEvidence, ...]] = {
    DpFedavg: ("all rounds together", "best round"),
    LocalDp: ("own updates",),
}
"""With what is read: readers of the global models see rounds, the server sees updates."""


def signal_of(epsilon: float) -> float:
    """Return mu, the move over the noise, of a Gaussian mechanism with this epsilon."""
    return float(brentq(lambda mu: gaussian_epsilon(1 / mu, 1, DELTA) - epsilon, 1e-2, 20))


def _ideal_scores(canaries: int, mu: float, seed: Seed) -> CanaryScores:
    """Return the scores of canaries in one sum with noise, and nothing else."""
    generator = seed.generator()
    directions = torch.randn(canaries, IDEAL_DIMENSION, generator=generator)
    directions /= directions.norm(dim=1, keepdim=True)
    noise = torch.randn(IDEAL_DIMENSION, generator=generator) / mu
    everybody = torch.ones(canaries, dtype=torch.bool)
    rest, own = without_canaries(directions.sum(0) + noise, directions, everybody)
    cosines = cosines_with(directions, rest[None], own[:, None])[:, 0]
    return single_scores("all rounds together", cosines, IDEAL_DIMENSION, 1)


def _figures(
    name: str, words: str, epsilon: float, trials: Sequence[CanaryScores], begun: float
) -> Iterator[ReproducedValue]:
    """Yield what the trials of one cell tell of the estimate."""
    found = [one for scores in trials if (one := estimate_client_epsilon([scores], DELTA))]
    estimates = [one.epsilon.mean for one in found]
    low, high = np.quantile(estimates, [0.1, 0.9])
    covered = sum(_covers(one, epsilon) for one in found)
    above = sum(one.lower > epsilon for one in found)
    doubted = sum(one.is_doubted for one in found)
    count = len(found)
    yield make_value(f"{name}_median", f"{words}: median estimate", estimate_median(estimates))
    yield make_value(f"{name}_low", f"{words}: 10 % quantile", float(low))
    yield make_value(f"{name}_high", f"{words}: 90 % quantile", float(high))
    for key, what, hits in (
        ("coverage", "share of intervals that hold the true one", covered),
        ("lower_above", "share of lower bounds by seen thresholds above the true one", above),
        ("doubted", "share of estimates in doubt", doubted),
    ):
        yield make_value(f"{name}_{key}", f"{words}: {what}", estimate_proportion(hits, count))
    lower = float(np.median([one.lower for one in found]))
    yield make_value(f"{name}_lower", f"{words}: median lower bound by thresholds", lower)
    yield make_value(f"{name}_seconds", f"{words}: core seconds", process_time() - begun)


def _covers(one: ClientEpsilonEstimate, epsilon: float) -> bool:
    assert one.epsilon.low is not None
    assert one.epsilon.high is not None
    return one.epsilon.low <= epsilon <= one.epsilon.high


def _ideal(canaries: int, epsilon: float, run: MeasurementRun) -> Iterable[ReproducedValue]:
    """Yield the figures of canaries in noise alone, and the interval known beforehand."""
    begun, mu = process_time(), signal_of(epsilon)
    count = 20 if run.quick else IDEAL_TRIALS
    seed = Seed(FIRST_SEED).child("ideal", canaries)
    trials = [_ideal_scores(canaries, mu, seed.child(number)) for number in range(count)]
    name = f"ideal_{canaries}_{epsilon:g}"
    words = (
        f"{canaries} canaries in Gaussian noise, {IDEAL_DIMENSION:,} weights, {count} trials; "
        f"true epsilon {epsilon:g}"
    )
    yield from _figures(name, words, epsilon, trials, begun)
    planned = expected_interval(epsilon, canaries, DELTA)
    yield make_value(f"{name}_planned", f"{words}: the interval as the plan states it", planned)


def _plan(seed: int, others: int, rounds: int, defenses: tuple[Defense, ...]) -> Plan:
    return Plan(
        seeds=(seed,),
        data=DataPlan(
            source=Mnist(shrink=2),
            split=Iid(),
            clients=others,
            examples=20,
            auxiliary_per_class=5,
            test=1000,
        ),
        training=TrainingPlan(model=Mlp((64,)), rounds=rounds, epochs=1, rate=0.1, batch=10),
        arms=(ArmPlan(name="canaries", defenses=defenses),),
        threats=(ThreatPlan(attacks=(BiasInversion(),)),),
    )


def _simulated(
    kind: type[DpFedavg] | type[LocalDp], epsilon: float, run: MeasurementRun
) -> Iterable[ReproducedValue]:
    """Yield the figures of canaries in a federation that trains."""
    begun, noise = process_time(), sqrt(ROUNDS) / signal_of(epsilon)
    count = 3 if run.quick else TRIALS
    trials = list[CanaryScores]()
    for number in range(count):
        defenses = (CanaryClients(CANARIES), kind(1.0, noise, DELTA))
        seed = FIRST_SEED + SEEDS_APART * EPSILONS.index(epsilon) + number
        plan = _plan(seed, CANARIES + OTHERS, ROUNDS, defenses)
        transcript, truth, folder = _train(plan, run)
        canaries = truth.facts.get(CanaryDirections)
        assert canaries is not None
        trials += read_canary_scores(transcript, canaries, Seed(number))
        remove_folder(folder, inside=run.folder)
    for evidence in MECHANISMS[kind]:
        of_evidence = [one for one in trials if one.evidence == evidence]
        words = (
            f"{kind.name}, MNIST 14 x 14, MLP 64, {trials[0].dimension:,} weights, {CANARIES} "
            f"canaries beside {OTHERS} clients of 20 examples, {ROUNDS} rounds, {count} "
            f"trials, {evidence}; true epsilon {epsilon:g} of a client added or removed"
        )
        name = f"{kind.name}_{evidence.replace(' ', '_')}_{epsilon:g}"
        yield from _figures(name, words, epsilon, of_evidence, begun)


@cache
def _dataset(resources: Resources) -> Dataset:
    """Return the data set of all plans, read once."""
    return load_data(_plan(0, 1, 1, ()), resources)


def _train(plan: Plan, run: MeasurementRun) -> tuple[Transcript, GroundTruth, Path]:
    """Train the one run of a plan; return its folder, too, which is to be removed."""
    folder = run.folder / "running"
    remove_folder(folder, inside=run.folder)
    resources = replace(run.resources, workers=1, device="cpu")
    dataset = _dataset(resources)
    (seed,), arm = plan.seeds, plan.arms[-1]
    partition = partition_for_plan(plan, dataset, seed)
    federation = build_federation(plan, arm, seed, partition, dataset, resources)
    return (*run_federation(federation, folder), folder)


def _utility(noise: float, canaries: int, run: MeasurementRun) -> Iterable[ReproducedValue]:
    """Yield the accuracy of 100 clients beside so many canaries."""
    accuracies = []
    seeds = 2 if run.quick else UTILITY_SEEDS
    for number in range(seeds):
        added = (CanaryClients(canaries),) if canaries else ()
        defenses = (*added, DpFedavg(1.0, noise, DELTA))
        plan = _plan(FIRST_SEED + number, canaries + OTHERS, UTILITY_ROUNDS, defenses)
        _, truth, folder = _train(plan, run)
        accuracies.append(truth.accuracy[UTILITY_ROUNDS])
        remove_folder(folder, inside=run.folder)
    mean = estimate_mean(np.array(accuracies), np.arange(seeds))
    words = (
        f"dp_fedavg with noise multiplier {noise:g}, {OTHERS} clients of 20 examples, "
        f"{UTILITY_ROUNDS} rounds, {seeds} runs; accuracy with {canaries} canaries added"
    )
    yield make_value(f"accuracy_{noise:g}_{canaries}", words, mean)


def _median_ratios(
    epsilon: float, runs: StudyRuns, values: Values
) -> Mapping[str, Estimate | None]:
    """Return the medians over the true epsilon, in noise alone."""
    return {
        f"{canaries} canaries": convert_estimate(
            Estimate(one.value, one.low, one.high), 1 / epsilon, 0.0
        )
        for canaries in (100, 1000)
        for one in values
        if one.name == f"ideal_{canaries}_{epsilon:g}_median" and one.value is not None
    }


def client_epsilon() -> Study:
    """Return what canary clients tell of the epsilon of a client; an hour of one core."""
    return Study(
        "client_epsilon",
        "The epsilon of a client, estimated by canary clients of the run itself",
        "It repeats no table: Andrew et al. 2024 fit the deviation of canaries that took part, "
        "which is held here at that of others. Delta is 1e-5.",
        measurements=(
            *(
                Measurement(f"ideal_{canaries}_{epsilon:g}", partial(_ideal, canaries, epsilon))
                for canaries, epsilon in product(IDEAL_CANARIES, EPSILONS)
            ),
            *(
                Measurement(f"{kind.name}_{epsilon:g}", partial(_simulated, kind, epsilon))
                for kind, epsilon in product(MECHANISMS, EPSILONS)
            ),
            *(
                Measurement(
                    f"accuracy_{noise:g}_{canaries}", partial(_utility, noise, canaries)
                )
                for noise, canaries in product((0.0, 0.5), UTILITY_CANARIES)
            ),
        ),
        conclusions=tuple(
            Conclusion(
                f"median_{epsilon:g}",
                f"With 100 canaries or 1,000 and a true epsilon of {epsilon:g}, the median "
                "estimate is within 10 % of it.",
                partial(_median_ratios, epsilon),
                "around",
                1.0,
                0.1,
                words="median estimate over the true epsilon, in noise alone",
            )
            for epsilon in EPSILONS
        ),
    )
