"""What moves the whitened test of membership: training, time, and auxiliary data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.learning.models.mlp import Mlp
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard_studies.measurements.whitened import (
    FEW_SEEDS,
    MLPS,
    OURS,
    SEEDS,
    Infer,
    Scores,
    World,
    compare_rows,
    inferred_by,
    run_world,
    seeds_of,
)
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue

SOURCES = {"cifar10": Cifar10(), "mnist": Mnist()}

RATES, BATCHES, EPOCHS = (0.01, 0.03, 0.1), (8, 32, 128), (1, 5)

ROUNDS = (1, 10, 50)
"""Rounds of a model that is being trained, counted from 1."""

ROWS: Mapping[str, Infer] = {
    OURS: inferred_by(WhitenedMembership()),
    "fed_mia": inferred_by(FedMia()),
    "loss": inferred_by(LossMembership()),
}
"""Attacks that train no shadow models."""

JOINT = "joint"

JOINT_ROWS: Mapping[str, Infer] = {
    OURS: ROWS[OURS],
    JOINT: inferred_by(WhitenedMembership(joint=True)),
}


def _base(source: str) -> World:
    return World(SOURCES[source], Mlp((64,)), 512)


def _measure_grid(
    source: str, rate: float, epochs: int, run: MeasurementRun
) -> Iterator[ReproducedValue]:
    """Yield the figures of the whitened test by batch, in one round."""
    for batch in BATCHES[-1:] if run.quick else BATCHES:
        world = replace(_base(source), rate=rate, batch=batch, epochs=epochs)
        name = f"{source}_rate_{rate:g}_batch_{batch}_epochs_{epochs}"
        yield from _measure_world(name, world, run, rows={OURS: ROWS[OURS]})


def _measure_world(
    name: str,
    world: World,
    run: MeasurementRun,
    *,
    only_round: int | None = None,
    rows: Mapping[str, Infer] = ROWS,
    own: Sequence[int] = FEW_SEEDS,
) -> Iterator[ReproducedValue]:
    seeds = seeds_of(run, own)
    by_seed: dict[str, list[Scores]] = {row: [] for row in rows}
    for seed in seeds:
        for row, scores in run_world(world, rows, seed, run, only_round).items():
            by_seed[row].append(scores)
    context = f"{world.describe()}, seeds {', '.join(map(str, seeds))}"
    if only_round is not None:
        context += ", the last round alone"
    yield from compare_rows(name, context, by_seed)


def _measure_rounds(source: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures in single rounds, with a quarter of twenty clients in each."""
    for number in ROUNDS[:2] if run.quick else ROUNDS:
        # A run does not depend on how many rounds follow.
        world = replace(_base(source), clients=20, participation=0.25, rounds=number)
        name = f"{source}_round_{number}"
        yield from _measure_world(name, world, run, only_round=number - 1)


def _measure_auxiliary(run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures with auxiliary examples of the data set, and of another one."""
    for source in (None, FashionMnist()):
        world = replace(_base("mnist"), auxiliary_from=source)
        name = f"mnist_auxiliary_{'mnist' if source is None else source.name}"
        yield from _measure_world(name, world, run)


def _measure_joint(world: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures of the whitened test, and of its joint claims."""
    name = f"joint_{world}"
    yield from _measure_world(name, MLPS[world], run, rows=JOINT_ROWS, own=SEEDS)


def whitened_grid() -> Study:
    """Return the whitened test by training, by round, and by auxiliary data."""
    return Study(
        "whitened_grid",
        "Membership by whitened gradients: by rate, batch and epochs, round, auxiliary data",
        "It repeats no paper. Seeds are the first three of whitened_membership, and for joint "
        "claims all five. All attacks have the same knowledge and train nothing.",
        measurements=(
            *(
                Measurement(
                    f"grid_{source}_rate_{rate:g}_epochs_{epochs}",
                    partial(_measure_grid, source, rate, epochs),
                )
                for source, rate, epochs in product(SOURCES, RATES, EPOCHS)
            ),
            *(Measurement(f"rounds_{one}", partial(_measure_rounds, one)) for one in SOURCES),
            Measurement("auxiliary_mnist", _measure_auxiliary),
            *(Measurement(f"joint_{one}", partial(_measure_joint, one)) for one in MLPS),
        ),
        hours=0.5,
    )
