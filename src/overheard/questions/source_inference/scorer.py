"""The scorer of claims about which client holds a record."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.parties import Party
from overheard.core.scorer import Better, Guesses, Score, Scorer
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.questions.source_inference.claim import RecordSources

NOT_COUNTED = -1
"""The source of a record that does not count."""

TOP_K = 3
"""The number of clients that `source_top3` allows."""

LEAST_PROBABILITY = 1e-6
"""Smaller probabilities count as this in the log loss, which is then at most 13.8."""

BINS = 10
"""Bins of the calibration error, with equal numbers of records."""

UNIFORM, BY_SIZE, BY_LABEL = "any client", "the largest client", "label frequency"
"""The guesses."""

Chances = Float[np.ndarray, "records clients"]
"""For records that some client holds, the probability of each client."""

Owners = Int[np.ndarray, " records"]
"""The column of the client that holds each of them."""


def _hits_within(length: int) -> Callable[[Chances, Owners], Float[np.ndarray, " records"]]:
    """Return the probability that the owner is among the first `length`, ties at random."""

    def hits(chances: Chances, owners: Owners) -> Float[np.ndarray, " records"]:
        own = chances[np.arange(len(owners)), owners][:, None]
        better, tied = (chances > own).sum(1), (chances == own).sum(1)
        shares: Float[np.ndarray, " records"] = ((length - better) / tied).clip(0, 1)
        return shares

    return hits


def _log_losses(chances: Chances, owners: Owners) -> Float[np.ndarray, " records"]:
    own = chances[np.arange(len(owners)), owners]
    losses: Float[np.ndarray, " records"] = -np.log(own.clip(LEAST_PROBABILITY, 1))
    return losses


@dataclass(frozen=True, slots=True)
class _RecordScore:
    """A score that is a mean over records: its value for each, and its direction."""

    of_records: Callable[[Chances, Owners], Float[np.ndarray, " records"]]
    better: Better


RECORD_SCORES: Mapping[str, _RecordScore] = MappingProxyType(
    {
        "source_accuracy": _RecordScore(_hits_within(1), "higher"),
        "source_top3": _RecordScore(_hits_within(TOP_K), "higher"),
        "source_log_loss": _RecordScore(_log_losses, "lower"),
    }
)
"""The scores that are means over the records that some client holds."""


@final
@dataclass(frozen=True, slots=True)
class SourceInferenceScorer(Scorer[RecordSources]):
    """How well the client that holds a record is named.

    Over the records that one of the clients holds, with the probability of each client given
    that one of them holds the record:

    - `source_accuracy`: the share of records whose client has the highest probability.
      Clients with equal probabilities share their ranks with equal probability.
    - `source_top3` (with 4 or more clients): the share whose client is among the three
      highest, likewise.
    - `source_log_loss`: the mean of -ln(probability of the true client), which is at least
      `LEAST_PROBABILITY`.
    - `source_calibration_error`: records are sorted by their highest probability and divided
      into `BINS` equal bins; it is the mean difference of the mean highest probability and the
      accuracy of a bin. A guess may be calibrated, so there is none to compare with. With few
      records it is above 0 by chance.

    Over all records that count, if there are both kinds:

    - `nobody_error`: (probability of no client - truth)^2, as the mean of the means over the
      records that a client holds and over those that none holds. The guess is 0.5: 0.25.

    Uninformed guesses are that any client is as likely as another, and, if updates state their
    numbers of examples, that clients are as likely as they are large. The guess by label
    frequency knows how many examples of the record's label each client holds: see
    `RecordSources.label_frequency`.

    Records of clients that are not among the targets, and of observers, do not count. Neither
    does a record that several clients hold.
    """

    name: ClassVar[str] = "source_inference"
    claim_type: ClassVar[type[Claim]] = RecordSources
    headline: ClassVar[str] = "source_accuracy"
    source: ClassVar[str] = (
        "Hu et al. 2021 (Source Inference Attacks in Federated Learning, ICDM), section IV: "
        "accuracy; calibration error: Naeini et al. 2015 (AAAI), with bins of equal size"
    )

    def true_claim(
        self,
        truth: GroundTruth,
        target: Party,
        rounds: Collection[int],
        claim: RecordSources,
    ) -> RecordSources:
        """Return 1 for the client that holds a record, or for no client.

        Raises:
            NeedsError: if the ground truth lists the records of none of the clients.

        """
        owners = truth.facts.need(RecordOwners)
        if not set(claim.clients) & owners.members.keys():
            raise NeedsError("the ground truth does not state which records clients trained on")
        holders = torch.zeros(len(claim.probabilities), dtype=torch.int64)
        holders[list(owners.excluded)] = 2  # neither of one client nor of none
        for held in owners.members.values():
            holders[list(held)] += 1
        table = torch.zeros_like(claim.probabilities)
        table[holders == 0, -1] = 1.0
        for column, party in enumerate(claim.clients):
            places = torch.tensor(owners.members_of(party), dtype=torch.int64)
            table[places[holders[places] == 1], column] = 1.0
        frequency = _label_frequency(truth, rounds, claim)
        return replace(claim, probabilities=table, label_frequency=frequency)

    def uninformed_guesses(
        self, claim: RecordSources, knowledge: Knowledge
    ) -> Mapping[str, RecordSources]:
        """Return that each client is as likely as another, or as likely as it is large.

        Raises:
            ClaimError: if the claim is about another number of records than there are.

        """
        known = knowledge.facts.get(CandidateRecords)
        if known is not None and len(claim.probabilities) != len(known.records):
            raise ClaimError(
                f"the claim is about {len(claim.probabilities)} records, there are "
                f"{len(known.records)}"
            )
        guesses = {UNIFORM: _same_for_all(claim, torch.ones(len(claim.clients)))}
        if len(set(claim.examples)) > 1:
            guesses[BY_SIZE] = _same_for_all(claim, torch.tensor(claim.examples))
        return guesses

    def informed_guesses(self, truth: RecordSources) -> Mapping[str, RecordSources]:
        """Return the guess by the true numbers of examples of each record's label."""
        frequency = truth.label_frequency
        if frequency is None:
            return {}
        table = torch.cat((frequency, torch.zeros(len(frequency), 1)), 1)
        return {BY_LABEL: replace(truth, probabilities=table)}

    def score(
        self,
        claim: RecordSources,
        truth: RecordSources,
        guesses: Guesses[RecordSources],
    ) -> tuple[Score, ...]:
        """Return every score that applies, in the order of the class docstring.

        Raises:
            ClaimError: if the claim and the truth are about different clients.

        """
        if claim.clients != truth.clients:
            raise ClaimError("the claim and the truth are about different clients")
        sources = source_columns(truth.probabilities.double().numpy(force=True))
        is_held = (sources != NOT_COUNTED) & (sources < len(truth.clients))
        if len(truth.clients) < 2 or not is_held.any():
            return ()

        def value(name: str, one: RecordSources) -> float:
            chances = held_chances(one.probabilities.double().numpy(force=True))
            return float(
                RECORD_SCORES[name].of_records(chances[is_held], sources[is_held]).mean()
            )

        scores = [
            Score(
                name,
                value(name, claim),
                one.better,
                {guess: value(name, other) for guess, other in guesses.uninformed.items()},
                {guess: value(name, other) for guess, other in guesses.informed.items()},
            )
            for name, one in RECORD_SCORES.items()
            if name != "source_top3" or len(truth.clients) > TOP_K
        ]
        chances = held_chances(claim.probabilities.double().numpy(force=True))[is_held]
        error = _calibration_error(chances, sources[is_held])
        scores.append(Score("source_calibration_error", error, "lower", {}, {}))
        if (sources == len(truth.clients)).any():
            errors = {
                name: _nobody_error(one, sources) for name, one in guesses.uninformed.items()
            }
            error = _nobody_error(claim, sources)
            scores.append(Score("nobody_error", error, "lower", errors, {}))
        return tuple(scores)


def source_columns(
    truth: Float[np.ndarray, "records sources"],
) -> Int[np.ndarray, " records"]:
    """Return the column of each record's source in a true claim; `NOT_COUNTED` if none is 1."""
    columns: Int[np.ndarray, " records"] = np.where(
        truth.max(1) > 0, truth.argmax(1), NOT_COUNTED
    )
    return columns


def held_chances(
    probabilities: Float[np.ndarray, "records sources"],
) -> Float[np.ndarray, "records clients"]:
    """Return the probability of each client, given that one of them holds the record."""
    clients = probabilities[:, :-1]
    total = clients.sum(1, keepdims=True)
    even = np.full_like(clients, 1 / clients.shape[1])
    chances: Float[np.ndarray, "records clients"] = np.divide(
        clients, total, out=even, where=total > 0
    )
    return chances


def _label_frequency(
    truth: GroundTruth, rounds: Collection[int], claim: RecordSources
) -> Float[Tensor, "records clients"] | None:
    """Return the share of each client among the examples of a record's label; None = unknown.

    If no client holds any, all are as likely.
    """
    counts, labels = truth.facts.get(LabelCounts), claim.labels
    if counts is None or labels is None:
        return None
    if not all(counts.rounds_of(one).intersection(rounds) for one in claim.clients):
        return None
    held = torch.stack([counts.counts_of(one, rounds) for one in claim.clients])
    if int(labels.max()) >= held.shape[1]:
        return None
    of_records = held[:, labels].T.float()  # (records, clients)
    total = of_records.sum(1, keepdim=True)
    return torch.where(total > 0, of_records / total, 1 / len(claim.clients))


def _same_for_all(claim: RecordSources, weights: Float[Tensor, " clients"]) -> RecordSources:
    """Return a claim with the same chances for all records, and even odds of no client."""
    row = torch.cat((weights / weights.sum() / 2, torch.tensor([0.5])))
    return replace(claim, probabilities=row.expand(len(claim.probabilities), -1))


def _calibration_error(chances: Chances, owners: Owners) -> float:
    order = np.argsort(chances.max(1), kind="stable")
    hits = RECORD_SCORES["source_accuracy"].of_records(chances, owners)
    gaps = [
        len(one) * abs(float(chances[one].max(1).mean() - hits[one].mean()))
        for one in np.array_split(order, BINS)
        if len(one)
    ]
    return sum(gaps) / len(order)


def _nobody_error(claim: RecordSources, sources: Int[np.ndarray, " records"]) -> float:
    nobody = claim.probabilities[:, -1].double().numpy(force=True)
    is_outside = sources == len(claim.clients)
    is_held = (sources != NOT_COUNTED) & ~is_outside
    return float(((nobody[is_held]) ** 2).mean() + ((1 - nobody[is_outside]) ** 2).mean()) / 2
