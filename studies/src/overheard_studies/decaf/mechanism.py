"""Figures 11 and 12: which rows of the last layer grow; Table VIII: what the attack costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import process_time

import torch
from torch import Tensor

from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import train_gradient_bases
from overheard_studies.conclusion import Conclusion, Statistics, named
from overheard_studies.decaf.conclusions import (
    difference,
    over_runs,
    run_means,
)
from overheard_studies.decaf.published import PUBLISHED
from overheard_studies.decaf.setting import (
    ATTACK,
    CIFAR10,
    MNIST,
    PUBLISHED_DECAF,
    DecafBenchmark,
    DecafSize,
    build_plan,
)
from overheard_studies.decaf.trained import train
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue, make_value

HELD = (2, 3, 6, 7, 9)
"""The classes that Figure 12 trains on; the digits 0, 1, 4, 5 and 8 are null."""

THRESHOLDED = replace(PUBLISHED_DECAF, threshold=0.001)
"""The attack with the threshold that the paper gives for LeakyReLU."""

ATTACKS = {"0": ATTACK, "0.001": plugin_label(THRESHOLDED)}
"""Names of the attacks by their threshold."""

LEAKY = "leaky_relu"
"""The audit with LeakyReLU."""

ROWS = ("own", "other", "held", "null")
"""Rows of Figure 11 (of the trained class, and of others) and of Figure 12."""

SIZES = (
    DecafSize(rounds=3, seeds=(0, 1, 2, 3, 4)),
    DecafSize(rounds=1, seeds=(0,), examples=60, auxiliary=5, test=50),
)

COSTS = {
    "mnist": (MNIST, (23.439, 0.001, 0.608, 3.589)),
    "cifar10": (CIFAR10, (28.437, 0.001, 0.478, 3.196)),
}
"""The data sets of Table VIII, and its seconds of the parts."""

PARTS = ("training", "null_classes", "bases", "decomposition")


def growing_rows(benchmark: DecafBenchmark = MNIST) -> Study:
    """Return Figures 11 and 12, and the null classes behind LeakyReLU by threshold."""

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rounds = range(one.plan.training.rounds)
        for threshold, attack in ATTACKS.items():
            for score in ("null_recall", "null_precision", "null_exact"):
                found = over_runs(run_means(one.audit, attack, rounds, score))
                words = f"LeakyReLU, threshold {threshold}, mean over the rounds"
                yield one.value(f"leaky_{threshold}_{score}", words, found, None, "higher")

    return Study(
        "figure11",
        "Rows of the last layer that grow, by activation (Figures 11 and 12)",
        PUBLISHED.differences("common", "rows"),
        (
            Panel(
                LEAKY,
                benchmark.name,
                lambda quick: build_plan(
                    benchmark,
                    SIZES[quick],
                    (PUBLISHED_DECAF, THRESHOLDED),
                    model=DecafConv2(activation="leaky_relu"),
                ),
                read,
            ),
        ),
        measurements=(Measurement("rows", partial(_measure_rows, benchmark)),),
        conclusions=(
            Conclusion(
                "own",
                "the corresponding group of neurons has positive gradient changes when we "
                "train the model only with data from a single class",
                named("relu_own"),
                margin=0.9,
                words="share of trained classes whose row grows somewhere",
            ),
            Conclusion(
                "null",
                "there are no positive changes in the gradient of neurons at the "
                "corresponding neuron positions of these null classes",
                named("relu_other", "relu_null"),
                "below",
                0.05,
                words="share of null classes whose row grows somewhere",
            ),
            Conclusion(
                "leaky",
                "activation functions like leakyrelu also render the same privacy leakage "
                "problem",
                partial(_leaky, "null_recall", None),
                margin=0.9,
                words="share of null classes found behind LeakyReLU at threshold 0.001",
            ),
            Conclusion(
                "threshold",
                "we can improve the accuracy of our attack by increasing the gradient change "
                "threshold, e.g., from 0 to 0.001",
                partial(_leaky, "null_exact", "0"),
                words="exact sets at threshold 0.001 less those at 0",
            ),
        ),
    )


def _leaky(score: str, than: str | None, runs: StudyRuns, _: object) -> Statistics:
    audit, rounds = runs.audits[LEAKY], range(runs.plans[LEAKY].training.rounds)
    found = run_means(audit, ATTACKS["0.001"], rounds, score)
    if than is None:
        return {score: over_runs(found)}
    return {score: difference(found, run_means(audit, ATTACKS[than], rounds, score))}


def _measure_rows(benchmark: DecafBenchmark, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield how often a row grows when a trained model trains on one class, or on five."""
    size = SIZES[run.quick]
    for activation in ("relu", "leaky_relu"):
        shares: dict[str, dict[int, float]] = {rows: {} for rows in ROWS}
        for seed in run.seeds or size.seeds:
            grows = _grows(benchmark, replace(size, seeds=(seed,)), activation, run)
            for rows, several in grows.items():
                shares[rows][seed] = float(several.double().mean())
        for rows, by_run in shares.items():
            words = f"{activation}; share of the rows of {rows} classes with a positive change"
            yield make_value(f"{activation}_{rows}", words, over_runs(by_run))


def _grows(
    benchmark: DecafBenchmark, size: DecafSize, activation: str, run: MeasurementRun
) -> Mapping[str, Tensor]:
    """Return whether rows have a positive change, by the kind of row."""
    model = DecafConv2(activation="relu" if activation == "relu" else "leaky_relu")
    plan = build_plan(benchmark, size, (PUBLISHED_DECAF,), model=model, batch=64)
    last = size.rounds - 1
    with train(plan, run.resources) as trained:
        classes = trained.knowledge.classes
        held = torch.isin(torch.arange(classes), torch.tensor(HELD))
        bases = train_gradient_bases(
            trained.view.broadcasts()[last],
            trained.last_layer,
            [torch.ones(classes, dtype=torch.bool), held],
            trained.knowledge,
            last,
            Seed(size.seeds[0]).child("rows"),
        )
    single = torch.stack([(bases.by_class[label] > 0).any(1) for label in range(classes)])
    of_five = (bases.by_class_set[HELD] > 0).any(1)
    own = torch.eye(classes, dtype=torch.bool)
    return dict(
        zip(ROWS, (single[own], single[~own], of_five[held], of_five[~held]), strict=True)
    )


def cost(data_sets: Mapping[str, tuple[DecafBenchmark, Sequence[float]]] = COSTS) -> Study:
    """Return Table VIII: the time that a round takes, and the attack on all of its users."""
    return Study(
        "table8",
        "Seconds of a round of training and of the attack",
        PUBLISHED.differences("common", "cost"),
        measurements=tuple(
            Measurement(key, partial(_measure_cost, key, benchmark, published))
            for key, (benchmark, published) in data_sets.items()
        ),
        conclusions=(
            Conclusion(
                "small",
                "the Decaf latency is small",
                named(*(f"{key}_share" for key in data_sets)),
                "below",
                0.25,
                words="the attack's time by that of local training (published: 0.18 and 0.13)",
            ),
        ),
    )


def _measure_cost(
    key: str, benchmark: DecafBenchmark, published: Sequence[float], run: MeasurementRun
) -> Iterator[ReproducedValue]:
    size = replace(SIZES[run.quick], rounds=1)
    seconds: dict[str, dict[int, float]] = {part: {} for part in PARTS}
    for seed in run.seeds or size.seeds:
        times = _time_parts(benchmark, replace(size, seeds=(seed,)), run)
        for part, of_part in zip(PARTS, times, strict=True):
            seconds[part][seed] = of_part
    share = {
        seed: sum(seconds[part][seed] for part in PARTS[1:]) / seconds["training"][seed]
        for seed in seconds["training"]
    }
    for part, value in zip(PARTS, published, strict=True):
        words = f"{benchmark.name}; seconds of {part.replace('_', ' ')}, all users"
        yield make_value(f"{key}_{part}", words, over_runs(seconds[part]), value)
    words = f"{benchmark.name}; the attack's seconds by those of training"
    yield make_value(f"{key}_share", words, over_runs(share), sum(published[1:]) / published[0])


def _time_parts(
    benchmark: DecafBenchmark, size: DecafSize, run: MeasurementRun
) -> tuple[float, ...]:
    """Return the CPU seconds of the parts, on one core."""
    attack, seed = replace(PUBLISHED_DECAF, solver="gradient"), Seed(size.seeds[0])
    plan = build_plan(benchmark, size, (attack,))
    with train(plan, run.resources) as trained:
        view, knowledge, layer = trained.view, trained.knowledge, trained.last_layer
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        updates = [view.updates(client(user))[0] for user in range(len(benchmark.users))]
        times = [process_time()]
        tuple(
            train_cohort(
                knowledge.build_model,
                view.broadcasts()[0],
                trained.partition.pool,
                [ClientTask(str(rows[0]), rows) for rows in trained.partition.rows[0]],
                knowledge.recipe,
                seed=seed,
                round=0,
                workers=1,
            )
        )
        times.append(process_time())
        changes = [one.delta[layer].float() for one in updates]
        present = [attack.present_classes(change) for change in changes]
        times.append(process_time())
        bases = train_gradient_bases(view.broadcasts()[0], layer, present, knowledge, 0, seed)
        times.append(process_time())
        for change, classes in zip(changes, present, strict=True):
            attack.decompose(change, classes, bases)
        times.append(process_time())
    return tuple(after - before for before, after in pairwise(times))
