"""Contract tests on numbers to predict: clients with other numbers, or with the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import torch
from torch import nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples, concatenate_examples, without_classes
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.target_distribution.claim import TargetDistribution
from overheard.questions.target_distribution.scorer import TargetDistributionScorer
from overheard.questions.target_distribution.true_facts import ClientTargets, state_targets
from overheard.testing.trial import (
    AttackTrial,
    PlantedRun,
    QuestionChecks,
    require_gain,
    require_no_gain,
)

FEATURES, EXAMPLES = 6, 60
RECIPE = Recipe(rate=0.05, epochs=1, batch=10, loss="squared_error")
SHIFTS = (-1.5, -0.5, 0.5, 1.5)
"""By how much the numbers of each client are moved, in standard deviations."""


def build() -> nn.Module:
    """Build a network with one hidden layer and one output."""
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.ReLU(), nn.Linear(8, 1))


def draw_numbers(count: int, moved: float, seed: Seed) -> Examples:
    """Draw examples whose numbers follow from the first input, and are moved."""
    generator = seed.generator()
    inputs = torch.randn(count, FEATURES, generator=generator)
    inputs[:, 0] += moved
    noise = torch.randn(count, generator=generator)
    return without_classes(inputs, (0.8 * inputs[:, 0] + 0.3 * noise)[:, None])


def planted_run(shifts: Sequence[float]) -> PlantedRun:
    """Return one round of clients whose numbers are moved by these shifts.

    The updates are those of the clients' training; the truth is that of the shifts of `SHIFTS`.
    """
    held = [draw_numbers(EXAMPLES, one, Seed(10 + place)) for place, one in enumerate(shifts)]
    real = [draw_numbers(EXAMPLES, one, Seed(10 + place)) for place, one in enumerate(SHIFTS)]
    parties = [client(number) for number in range(len(shifts))]
    start = initial_weights(build, Seed(3))
    tasks = [
        ClientTask(party, torch.arange(EXAMPLES) + place * EXAMPLES)
        for place, party in enumerate(parties)
    ]
    results = train_cohort(
        build,
        start,
        concatenate_examples(held),
        tasks,
        RECIPE,
        seed=Seed(4),
        round=0,
        workers=1,
    )
    messages = [Message(0, SERVER, frozenset(parties), Broadcast(start))]
    messages += [
        Message(0, party, frozenset({SERVER}), Update(one.delta, EXAMPLES))
        for party, one in zip(parties, results, strict=True)
    ]
    stated = {
        party: state_targets(party, one.loss_labels)
        for party, one in zip(parties, real, strict=True)
    }
    auxiliary = concatenate_examples(
        [draw_numbers(40, one, Seed(30 + place)) for place, one in enumerate(SHIFTS)]
    )
    knowledge = Knowledge(
        1,
        build,
        auxiliary,
        RECIPE,
        compute=ComputeSettings(cache=MemoryTensorCache(), workers=1),
        kind="regression",
    )
    truth = GroundTruth(Facts(ClientTargets(stated)))
    return PlantedRun(Transcript(tuple(messages)), truth, knowledge, tuple(parties))


@cache
def moved_run() -> PlantedRun:
    """Return a run whose clients have other numbers."""
    return planted_run(SHIFTS)


@cache
def alike_run() -> PlantedRun:
    """Return a run whose updates are those of clients with the same numbers."""
    return planted_run((0.0,) * len(SHIFTS))


def finds_moved_numbers(trial: AttackTrial) -> None:
    """Check that it is nearer to the means than a guess by a fifth of a deviation."""
    require_gain(trial, 0.2, "the numbers of clients differ")


def finds_no_numbers_where_clients_are_alike(trial: AttackTrial) -> None:
    """Check that it gains nothing where updates do not depend on the numbers."""
    require_no_gain(trial, 0.1, "updates are those of clients that are alike")


@final
@dataclass(frozen=True, slots=True)
class TargetDistributionChecks(QuestionChecks):
    """Clients with other numbers, whose updates depend on them or do not."""

    name = "target_distribution"
    attack_checks = (finds_moved_numbers, finds_no_numbers_where_clients_are_alike)
    scorer = TargetDistributionScorer()
    example = TargetDistribution(
        torch.tensor([0.5]), torch.tensor([[-1.0, 0.4, 2.0]]), torch.tensor([1.0])
    )

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run whose clients have other numbers."""
        return (moved_run(),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return the same run with updates of clients that are alike."""
        return (alike_run(),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with the numbers of three clients."""
        stated = {
            client(number): state_targets(
                client(number), torch.linspace(number, number + 1, 11)[:, None]
            )
            for number in range(3)
        }
        return truth.having(ClientTargets(stated))

    def add_knowledge(self, knowledge: Knowledge) -> Knowledge:
        """Return the knowledge of an attacker with eight examples of a number each."""
        return replace(
            knowledge,
            classes=1,
            kind="regression",
            auxiliary=without_classes(
                torch.zeros(8, FEATURES), torch.linspace(0, 3, 8)[:, None]
            ),
        )
