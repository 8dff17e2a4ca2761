"""A federation behind secure aggregation, in which some clients hold one record."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import torch

from overheard.auditing.inputs import Resources
from overheard.core.compute_settings import ComputeSettings
from overheard.core.examples import concatenate_examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.messages import Aggregate, Broadcast, Message, Weights, weighted_sum
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.data.dataset import DataSource
from overheard.data.reading.folder import data_folder
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

CLIENTS, IN_ROUND, HOLDERS = 50, 10, 5
"""Clients, those of a round, and those that hold the record, as in the authors' code."""

RECIPE = Recipe(rate=0.01, epochs=2, batch=10)
"""How clients train, as in the authors' code."""

MODEL = Mlp((64,))

AUXILIARY, OUTSIDERS = 3_000, 300
"""Examples of the attacker, and those among them that are compared with the record."""


@final
@dataclass(frozen=True, slots=True)
class SecretRecord:
    """A run of a federation, as its server sees it, and who holds the record.

    Args:
        view: what the server reads.
        holders: the clients that hold the record.
        knowledge: of an attacker who has the record alone as a candidate.
        among_outsiders: the same knowledge, with some auxiliary examples as further candidates,
            of which the attacker knows that no client holds them.

    """

    view: View
    holders: frozenset[Party]
    knowledge: Knowledge
    among_outsiders: Knowledge


def simulate_secret_record(
    source: DataSource, examples: int, rounds: int, seed: Seed, resources: Resources
) -> SecretRecord:
    """Train a federation in which `HOLDERS` clients share one record.

    Each client has other examples, and a holder has the record in place of one of them.

    Args:
        source: the data set.
        examples: number of examples of a client.
        rounds: number of rounds, each with a random cohort of `IN_ROUND` clients.
        seed: the seed of all draws.
        resources: where the data are.

    """
    data = source.load(data_folder(resources.data))
    generator = seed.child("split").generator()
    order = torch.randperm(len(data.train), generator=generator)
    known = data.train.take(order[:AUXILIARY])
    rows = order[AUXILIARY : AUXILIARY + CLIENTS * examples].view(CLIENTS, examples).clone()
    holders = torch.randperm(CLIENTS, generator=generator)[:HOLDERS]
    record = int(rows[holders[0], 0])
    rows[holders, 0] = record
    build = partial(MODEL.build, data.task)
    weights: Weights = dict(initial_weights(build, seed.child("model")))
    messages, server = list[Message](), frozenset({SERVER})
    for number in range(rounds):
        cohort = torch.randperm(CLIENTS, generator=generator)[:IN_ROUND].tolist()
        tasks = [ClientTask(client(one), rows[one]) for one in cohort]
        trained = train_cohort(
            build,
            weights,
            data.train,
            tasks,
            RECIPE,
            seed=seed.child("training"),
            round=number,
            workers=1,
        )
        mean = weighted_sum([one.delta for one in trained], [1 / IN_ROUND] * IN_ROUND)
        body = Aggregate(mean, frozenset(map(client, cohort)), IN_ROUND * examples)
        messages += [
            Message(number, SERVER, server, Broadcast(weights)),
            Message(number, COHORT, server, body),
        ]
        weights = {name: one + mean[name] for name, one in weights.items()}
    secret, outsiders = (
        data.train.take(torch.tensor([record])),
        known.take(torch.arange(OUTSIDERS)),
    )
    knowledge = {
        name: Knowledge(
            classes=data.task.outputs,
            build_model=build,
            auxiliary=auxiliary,
            recipe=RECIPE,
            compute=ComputeSettings(seed=seed.child("attack"), workers=1),
            facts=Facts(CandidateRecords(candidates)),
        )
        for name, candidates, auxiliary in (
            ("alone", secret, known),
            (
                "among",
                concatenate_examples((secret, outsiders)),
                known.take(torch.arange(OUTSIDERS, 2 * OUTSIDERS)),
            ),
        )
    }
    return SecretRecord(
        Transcript(messages).seen_by(SERVER),
        frozenset(client(one) for one in holders.tolist()),
        knowledge["alone"],
        knowledge["among"],
    )


def f1_score(scores: Mapping[Party, float], holders: frozenset[Party]) -> float:
    """Return the F1 score of the clients with scores above 0; 0 if there is none of them."""
    named = {one for one, score in scores.items() if score > 0}
    hits = len(named & holders)
    return 2 * hits / (len(named) + len(holders))
