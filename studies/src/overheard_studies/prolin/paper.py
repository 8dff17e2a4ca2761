"""PROLIN: which clients hold one record, from sums over cohorts that vary."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.data.dataset import DataSource
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.participation.observed_sums import find_sums
from overheard.questions.membership.attacks.prolin import Prolin, read_sums
from overheard.questions.membership.attacks.sum_membership import SumMembership
from overheard.statistics.run_means import estimate_mean
from overheard_studies.prolin.federation import (
    RECIPE,
    SecretRecord,
    f1_score,
    simulate_secret_record,
)
from overheard_studies.study import Measurement, MeasurementRun, Paper, Study
from overheard_studies.values import ReproducedValue, make_value

SOURCES: Mapping[str, DataSource] = {
    "mnist": Mnist(shrink=2),
    "fashion_mnist": FashionMnist(shrink=2),
}

STEPS = (1, 3)
"""Batches of a client in an epoch: its examples over the batch size."""

SAMPLES, ROUNDS, RUNS = 200, 100, 3
QUICK_SAMPLES, QUICK_ROUNDS = 50, 40

EVERY = 10
"""Rounds between two decisions."""

ATTACKS = {
    "ridge": Prolin(steps=0),
    "ridge_log": Prolin(steps=0, likelihood="log"),
    "least_squares": Prolin(steps=0, penalty=0.0),
    "prolin": Prolin(),
    "prolin_log": Prolin(likelihood="log"),
}
"""The variants, by the names of their figures."""


def _measure(
    key: str, source: DataSource, steps: int, run: MeasurementRun
) -> Iterator[ReproducedValue]:
    """Yield the F1 scores after each number of rounds, as means over runs."""
    rounds = QUICK_ROUNDS if run.quick else ROUNDS
    samples = QUICK_SAMPLES if run.quick else SAMPLES
    runs = 1 if run.quick else RUNS
    found = defaultdict[tuple[str, int], list[float]](list)
    for number in range(runs):
        seed = Seed(number).child("prolin", key)
        secret = simulate_secret_record(
            source, RECIPE.batch * steps, rounds, seed, run.resources
        )
        for place, value in _scores(secret, rounds, samples, seed):
            found[place].append(value)
    words = (
        f"{source.name}, 50 clients of {RECIPE.batch * steps} examples, 10 of them in each "
        f"round, a record of 5 of them, MLP 64, {samples} simulated clients with the record "
        f"and as many without, {runs} runs"
    )
    for (attack, count), values in found.items():
        measured = estimate_mean(np.array(values), np.arange(len(values)), may_be_trials=False)
        told = f"{words}: F1 of {attack} after {count} rounds"
        yield make_value(f"{key}_{attack}_{count}", told, measured, None, "higher")


def _scores(
    secret: SecretRecord, rounds: int, samples: int, seed: Seed
) -> Iterator[tuple[tuple[str, int], float]]:
    """Yield the F1 score of each attack after each number of rounds."""
    sums = find_sums(secret.view, rounds)
    assert sums is not None
    (reading,) = read_sums(secret.view, secret.knowledge, sums, samples, seed.child("samples"))
    weights = (sums.weights > 0).astype(float)
    for count in range(EVERY, rounds + 1, EVERY):
        for name, attack in ATTACKS.items():
            decided = attack.decide(weights[:count], reading.first(count))
            scores: dict[Party, float] = dict(zip(sums.clients, decided.tolist(), strict=True))
            yield (name, count), f1_score(scores, secret.holders)
        part = secret.view.during(range(count))
        seen = find_sums(part, rounds)
        assert seen is not None
        claims = SumMembership().infer(part, seen.clients, secret.among_outsiders, seed)
        ours = {party: float(claim.scores[0]) for party, claim in claims.items()}
        yield ("sum_membership", count), f1_score(ours, secret.holders)


def _membership() -> Study:
    return Study(
        "membership",
        "Which of 50 clients hold one record, from sums",
        "The paper's figures are of a convolutional network with dropout on 28 x 28 pixels, "
        "300 rounds and 6,000 simulated clients with the record and as many without. Here it "
        "is an MLP of 64 on 14 x 14 pixels, with fewer rounds and simulated clients. The "
        "authors' code loads MNIST under the name of Fashion-MNIST; here it is Fashion-MNIST. "
        "`sum_membership` has the same examples: 300 of them are candidates beside the record, "
        "and 300 show how gradients vary.",
        measurements=tuple(
            Measurement(
                f"{name}_{RECIPE.batch * steps}",
                partial(_measure, f"{name}_{RECIPE.batch * steps}", source, steps),
            )
            for (name, source), steps in product(SOURCES.items(), STEPS)
        ),
        paper_size="50 clients, 300 rounds, 6,000 simulated clients of each kind",
    )


PAPER = Paper(
    "prolin",
    "Client-specific Property Inference against Secure Aggregation in Federated Learning",
    "Kerkouche, Acs and Fritz 2023 (WPES, arXiv 2303.03908)",
    lambda: (_membership(),),
)
