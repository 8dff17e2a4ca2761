"""Contract tests on membership: clients memorise their few examples, or never saw them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import torch
from torch import nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.scorer import MembershipScorer
from overheard.testing.require import require
from overheard.testing.trial import (
    AttackTrial,
    PlantedRun,
    QuestionChecks,
    claims_about,
    gain_message,
    mean_gain,
    require_gain,
)

CLASSES, FEATURES, CLIENTS, EXAMPLES_PER_CLIENT, OUTSIDERS, ROUNDS = 4, 20, 4, 20, 100, 2

RECIPE = Recipe(rate=0.2, epochs=10, batch=5)


def build() -> nn.Module:
    """Build a network wide enough to memorise its examples."""
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def examples(count: int, seed: Seed) -> Examples:
    """Draw examples with random labels, which can only be memorised."""
    generator = seed.generator()
    return Examples(
        torch.randn(count, FEATURES, generator=generator),
        torch.randint(CLASSES, (count,), generator=generator),
    )


@cache
def simulate_membership(*, memorised: bool) -> PlantedRun:
    """Simulate two rounds of four clients.

    Args:
        memorised: whether clients trained on their members among the candidate records, or on
            other records.

    """
    records = examples(CLIENTS * EXAMPLES_PER_CLIENT + OUTSIDERS, Seed(1))
    training_records = records if memorised else examples(len(records), Seed(2))
    members = [
        ClientTask(
            client(number),
            torch.arange(number * EXAMPLES_PER_CLIENT, (number + 1) * EXAMPLES_PER_CLIENT),
        )
        for number in range(CLIENTS)
    ]
    everyone = [client(number) for number in range(CLIENTS)]
    messages, start = [], dict(initial_weights(build, Seed(3)))
    for number in range(ROUNDS):
        messages.append(Message(number, SERVER, frozenset(everyone), Broadcast(start)))
        trained = train_cohort(
            build,
            start,
            training_records,
            members,
            RECIPE,
            seed=Seed(4),
            round=number,
            workers=1,
        )
        updates = [Update(dict(one.delta), EXAMPLES_PER_CLIENT) for one in trained]
        messages += [
            Message(number, sender, frozenset({SERVER}), update)
            for sender, update in zip(everyone, updates, strict=True)
        ]
        mean = mean_update(updates)
        start = {name: weight + mean.delta[name] for name, weight in start.items()}
    counts = torch.ones(CLASSES, dtype=torch.int64)
    owners = RecordOwners({Party(one.name): tuple(one.rows.tolist()) for one in members})
    label_counts = LabelCounts(
        {(number, sender): counts for number in range(ROUNDS) for sender in everyone}
    )
    truth = GroundTruth(Facts(label_counts, owners))
    knowledge = Knowledge(
        CLASSES,
        build,
        examples(120, Seed(5)),
        RECIPE,
        compute=ComputeSettings(cache=MemoryTensorCache(), workers=1),
        facts=Facts(CandidateRecords(records)),
    )
    return PlantedRun(Transcript(tuple(messages)), truth, knowledge, tuple(everyone))


def finds_memorised_records(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where records were memorised."""
    require_gain(trial, 0.2, "records are memorised")


def finds_no_unseen_records(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess where no client saw the records."""
    gain = mean_gain(trial, simulate_membership(memorised=False))
    require(
        abs(gain) <= 0.06,
        gain_message(trial, gain, "0 within 0.06 where no client saw the records"),
    )


def scores_every_record(trial: AttackTrial) -> None:
    """Check that it has a score for every candidate record."""
    records = len(candidate_records(trial.first_run.knowledge))
    for claim in claims_about(trial, trial.first_run):
        require(
            len(claim.scores) == records,
            f"{trial.attack.name} returns {len(claim.scores)} scores for {records} candidate "
            "records",
        )


@final
@dataclass(frozen=True, slots=True)
class MembershipChecks(QuestionChecks):
    """Runs in which clients memorised the candidate records, or saw none of them."""

    name = "membership"
    attack_checks = (finds_memorised_records, finds_no_unseen_records, scores_every_record)
    scorer = MembershipScorer()
    example = Membership(torch.zeros(6))

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which clients memorised the candidate records."""
        return (simulate_membership(memorised=True),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which no client saw any of the candidate records."""
        return (simulate_membership(memorised=False),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with the owners of three of six records."""
        owners = RecordOwners({client(0): (1, 4), client(1): (0,)})
        return truth.having(owners)
