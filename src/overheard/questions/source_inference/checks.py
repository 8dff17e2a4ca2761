"""Contract tests on sources: clients memorise their few examples, or never saw them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import torch

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.parties import Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.scorer import SourceInferenceScorer
from overheard.testing.planted_labels import CLASSES, FEATURES, assemble_run, build
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

CLIENTS, RECORDS_OF_CLIENT, OUTSIDERS = 4, 12, 40

RECIPE = Recipe(rate=0.2, epochs=6, batch=4)


def _examples(count: int, seed: Seed) -> Examples:
    """Draw examples with random labels, which can only be memorised."""
    generator = seed.generator()
    inputs = torch.randn(count, FEATURES, generator=generator)
    return Examples(inputs, torch.randint(CLASSES, (count,), generator=generator))


@cache
def simulate_sources(*, memorised: bool) -> PlantedRun:
    """Simulate a round of four clients.

    Args:
        memorised: whether clients trained on the candidate records that they hold, or on other
            records.

    """
    records = _examples(CLIENTS * RECORDS_OF_CLIENT + OUTSIDERS, Seed(1))
    trained_on = records if memorised else _examples(len(records), Seed(2))
    members = [
        ClientTask(client(one), torch.arange(RECORDS_OF_CLIENT) + one * RECORDS_OF_CLIENT)
        for one in range(CLIENTS)
    ]
    start = dict(initial_weights(build, Seed(3)))
    trained = train_cohort(
        build, start, trained_on, members, RECIPE, seed=Seed(4), round=0, workers=1
    )
    counts = [records.labels[one.rows].bincount(minlength=CLASSES).tolist() for one in members]
    run = assemble_run(
        start, [dict(one.delta) for one in trained], counts, _examples(120, Seed(5))
    )
    owners = RecordOwners({Party(one.name): tuple(one.rows.tolist()) for one in members})
    knowledge = replace(run.knowledge, recipe=RECIPE, facts=Facts(CandidateRecords(records)))
    return replace(run, truth=run.truth.having(owners), knowledge=knowledge)


def names_the_clients_of_memorised_records(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where records were memorised."""
    require_gain(trial, 0.2, "records are memorised")


def names_no_clients_of_unseen_records(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess where no client saw the records."""
    gain = mean_gain(trial, simulate_sources(memorised=False))
    require(
        gain <= 0.15, gain_message(trial, gain, "at most 0.15 where no client saw the records")
    )


def has_probabilities_of_every_record(trial: AttackTrial) -> None:
    """Check that it claims probabilities of each target for every candidate record."""
    records = len(candidate_records(trial.first_run.knowledge))
    for claim in claims_about(trial, trial.first_run):
        require(
            claim.clients == trial.first_run.targets and len(claim.probabilities) == records,
            f"{trial.attack.name} claims sources of {len(claim.probabilities)} records among "
            f"{claim.clients} for {records} candidate records",
        )


@final
@dataclass(frozen=True, slots=True)
class SourceInferenceChecks(QuestionChecks):
    """Runs in which clients memorised the candidate records, or saw none of them."""

    name = "source_inference"
    attack_checks = (
        names_the_clients_of_memorised_records,
        names_no_clients_of_unseen_records,
        has_probabilities_of_every_record,
    )
    scorer = SourceInferenceScorer()
    example = RecordSources((client(0), client(1)), torch.full((6, 3), 1 / 3))

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which clients memorised the candidate records."""
        return (simulate_sources(memorised=True),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return a run in which no client saw any of the candidate records."""
        return (simulate_sources(memorised=False),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with the owners of three of six records."""
        owners = RecordOwners({client(0): (1, 4), client(1): (0,)})
        return truth.having(owners)
