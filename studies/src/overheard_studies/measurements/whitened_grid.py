"""What moves the whitened test of membership: training, time, and auxiliary data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.learning.models.mlp import Mlp
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.lira import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard_studies.measurements.whitened import (
    CONVOLUTIONS,
    DEFENDED,
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

POPULATIONS = {"cifar10": 15, "mnist": 20}
"""Clients of the model, of which `PER_ROUND` train in a round. A subset of CIFAR-10 with 12,000
images has records for no more."""

PER_ROUND = 5

ROWS: Mapping[str, Infer] = {
    OURS: inferred_by(WhitenedMembership(joint=False)),
    "fed_mia": inferred_by(FedMia()),
    "loss": inferred_by(LossMembership()),
}
"""Attacks that train no shadow models, and judge each record by itself."""

SINGLE = "single"

JOINT_ROWS: Mapping[str, Infer] = {
    OURS: inferred_by(WhitenedMembership()),
    SINGLE: ROWS[OURS],
}

_SUM = replace(MLPS["cifar10_mlp"], clients=10, rounds=1)

SUMS = {
    "cifar10_sum_of_10_times_128": replace(_SUM, examples=128),
    "mnist_sum_of_10_times_128": replace(_SUM, source=Mnist(), examples=128),
    "mnist_sum_of_10_times_512": replace(_SUM, source=Mnist()),
}
"""Of each client 100 records are candidates; only the sum of all updates is read."""

COMBINED_WORLDS: Mapping[str, World] = {
    **{name: one for name, one in MLPS.items() if name != "cifar10_mlp"},
    **DEFENDED,
}

JOINT_WORLDS: Mapping[str, World] = {
    **MLPS,
    "mnist_mlp_dirichlet_0.1": replace(MLPS["mnist_mlp"], alpha=0.1),
    "mnist_conv_net_128_examples": CONVOLUTIONS["mnist_conv_net_128_1_epochs_rate_0.1"],
    "mnist_conv_net_512_examples": CONVOLUTIONS["mnist_conv_net_512_1_epochs_rate_0.1"],
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
    """Yield the figures in single rounds, with some of the clients in each."""
    clients = POPULATIONS[source]
    for number in ROUNDS[:2] if run.quick else ROUNDS:
        # A run does not depend on how many rounds follow.
        world = replace(
            _base(source), clients=clients, participation=PER_ROUND / clients, rounds=number
        )
        name = f"{source}_round_{number}"
        yield from _measure_world(name, world, run, only_round=number - 1)


def _measure_auxiliary(run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures with auxiliary examples of the data set, and of another one."""
    for source in (None, FashionMnist()):
        world = replace(_base("mnist"), auxiliary_from=source)
        name = f"mnist_auxiliary_{'mnist' if source is None else source.name}"
        yield from _measure_world(name, world, run)


def _measure_joint(world: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures of the whitened test, and of claims record by record."""
    own = SEEDS if world in MLPS else FEW_SEEDS
    yield from _measure_world(
        f"joint_{world}", JOINT_WORLDS[world], run, rows=JOINT_ROWS, own=own
    )


def _measure_sum(world: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the figures of the whitened test behind secure aggregation."""
    rows = {row: _about_the_cohort(infer) for row, infer in JOINT_ROWS.items()}
    yield from _measure_world(f"joint_{world}", SUMS[world], run, rows=rows, own=SEEDS)


def _about_the_cohort(infer: Infer) -> Infer:
    """Return claims about the sum of all clients, as those about each of them."""

    def infer_cohort(
        view: View, targets: Sequence[Party], knowledge: Knowledge
    ) -> Mapping[Party, Tensor]:
        return dict.fromkeys(targets, infer(view, (COHORT,), knowledge)[COHORT])

    return infer_cohort


COMBINED = "combined"


def _measure_combined(world: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the most that the confidence of the model could add to the whitened test.

    The weights of both scores are fitted to the true members of the other clients, which no
    attacker knows: an attacker that fits them to simulated clients can do no better.
    """
    rows = {OURS: JOINT_ROWS[OURS], "lira_pooled": inferred_by(LiraPooled())}
    settings = COMBINED_WORLDS[world]
    seeds = seeds_of(run)
    by_seed: dict[str, list[Scores]] = {OURS: [], COMBINED: []}
    for seed in seeds:
        found = run_world(settings, rows, seed, run)
        by_seed[OURS].append(found[OURS])
        by_seed[COMBINED].append(_combine(tuple(found.values())))
    context = f"{settings.describe()}, seeds {', '.join(map(str, seeds))}"
    yield from compare_rows(f"combined_{world}", context, by_seed)


def _combine(parts: Sequence[Scores]) -> Scores:
    """Return the scores of each client by a logistic model of all other clients."""
    members = np.stack([_standardised(one, one.members) for one in parts], axis=2)
    others = np.stack([_standardised(one, one.others) for one in parts], axis=2)
    combined: list[tuple[np.ndarray, np.ndarray]] = []
    for client in range(len(members)):
        rest = [other for other in range(len(members)) if other != client]
        rows = [members[rest].reshape(-1, len(parts)), others[rest].reshape(-1, len(parts))]
        labels = np.repeat([1, 0], [len(one) for one in rows])
        model = LogisticRegression(class_weight="balanced").fit(np.concatenate(rows), labels)
        combined.append(
            (model.decision_function(members[client]), model.decision_function(others[client]))
        )
    seconds = sum(one.core_seconds for one in parts)
    return Scores(
        np.stack([one for one, _ in combined]), np.stack([one for _, one in combined]), seconds
    )


def _standardised(scores: Scores, values: np.ndarray) -> np.ndarray:
    """Return scores of each client in deviations of its non-members, within 20 of them."""
    low, middle, high = np.percentile(scores.others, [25, 50, 75], axis=1)[:, :, None]
    found: np.ndarray = np.clip((values - middle) / (high - low) * 1.349, -20, 20)
    return found


def whitened_grid() -> Study:
    """Return the whitened test by training, by round, and by auxiliary data."""
    return Study(
        "whitened_grid",
        "Membership by whitened gradients: by rate, batch and epochs, round, auxiliary data",
        "It repeats no paper. Seeds are the first three of whitened_membership, and for joint "
        "and combined claims of MLPs all five. All attacks have the same knowledge. Only the "
        "confidence of combined claims trains shadow models.",
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
            *(
                Measurement(f"joint_{one}", partial(_measure_joint, one))
                for one in JOINT_WORLDS
            ),
            *(Measurement(f"joint_{one}", partial(_measure_sum, one)) for one in SUMS),
            *(
                Measurement(f"combined_{one}", partial(_measure_combined, one))
                for one in COMBINED_WORLDS
            ),
        ),
        hours=0.5,
    )
