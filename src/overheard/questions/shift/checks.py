"""Contract tests on shifts: runs with and without a planted shift."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, final

import torch
from torch import Tensor

from overheard.core.claims import Timeline
from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update, Weights, apply_update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.testing.planted_labels import (
    CLASSES,
    blobs,
    build,
    make_clients,
    permute_classes,
)
from overheard.testing.require import require
from overheard.testing.trial import AttackTrial, PlantedRun, QuestionChecks, claims_about

ROUNDS: Final = 13
SHIFT_ROUND: Final = 10
"""The first round with new examples."""

ROUNDS_AFTER_SHIFT = range(SHIFT_ROUND, SHIFT_ROUND + 3)
"""The rounds with new examples, from `SHIFT_ROUND` on."""

EVEN = ((20, 20, 20, 20),) * 4
SKEWED = ((64, 8, 4, 4), (4, 64, 8, 4), (4, 4, 64, 8), (8, 4, 4, 64))
"""Label counts of each client: `EVEN` before the shift, `SKEWED` after it."""

RECIPE = Recipe(rate=0.2, epochs=1, batch=1000)
"""One step on all examples, so updates do not depend on the order of the examples."""

WARM_UP_RECIPE = Recipe(rate=0.2, epochs=10, batch=8)
"""Training of the first broadcast, so that learning changes updates less than a shift does."""

COMPUTE = ComputeSettings(virtual_clients=60, cache=MemoryTensorCache(), workers=1)


def simulate_shift(counts_after: Sequence[Sequence[int]] | None, seed: Seed) -> PlantedRun:
    """Simulate four clients with `EVEN` labels, which get new examples at `SHIFT_ROUND`.

    Args:
        counts_after: label counts of each client's new examples. `EVEN` = new examples of the
            same distribution, which is no shift. None = clients keep their examples.
        seed: the seed of the examples.

    """
    clients = [client(number) for number in range(len(EVEN))]
    start = _warm_up(seed)
    messages, true_counts = list[Message](), dict[tuple[int, Party], Tensor]()
    for number in range(ROUNDS):
        is_shifted = counts_after is not None and number >= SHIFT_ROUND
        counts = EVEN if counts_after is None or number < SHIFT_ROUND else counts_after
        messages.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        updates = [
            Update(delta, sum(client_counts))
            for delta, client_counts in zip(
                _train_deltas(start, counts, seed.child("fresh", int(is_shifted)), RECIPE),
                counts,
                strict=True,
            )
        ]
        messages += [
            Message(number, sender, frozenset({SERVER}), update)
            for sender, update in zip(clients, updates, strict=True)
        ]
        true_counts |= {
            (number, sender): torch.tensor(client_counts)
            for sender, client_counts in zip(clients, counts, strict=True)
        }
        start = apply_update(start, mean_update(updates).delta)
    messages.append(Message(ROUNDS, SERVER, frozenset(clients), Broadcast(start)))
    has_shift = counts_after not in (None, EVEN)
    shifts = Shifts(dict.fromkeys(clients, (SHIFT_ROUND,)) if has_shift else {})
    knowledge = Knowledge(
        CLASSES, build, blobs((40,) * CLASSES, Seed(99)), RECIPE, compute=COMPUTE
    )
    truth = GroundTruth(Facts(LabelCounts(true_counts), shifts))
    return PlantedRun(Transcript(tuple(messages)), truth, knowledge, tuple(clients))


def _warm_up(seed: Seed) -> dict[str, Tensor]:
    start = dict(initial_weights(build, Seed(3)))
    (delta,) = _train_deltas(start, ((40,) * CLASSES,), seed.child("settling"), WARM_UP_RECIPE)
    return apply_update(start, delta)


def _train_deltas(
    start: Weights, counts: Sequence[Sequence[int]], seed: Seed, recipe: Recipe
) -> list[dict[str, Tensor]]:
    pool, members = make_clients(counts, seed.child)
    trained = train_cohort(build, start, pool, members, recipe, seed=seed, round=0, workers=1)
    return [dict(one.delta) for one in trained]


ORDER = torch.tensor([2, 0, 3, 1])
"""New class i is old class ORDER[i]."""


@cache
def shifting_runs() -> tuple[PlantedRun, ...]:
    """Return runs in which every client shifts to mostly one class."""
    return tuple(simulate_shift(SKEWED, Seed(number)) for number in range(2))


@cache
def constant_runs() -> tuple[PlantedRun, ...]:
    """Return runs in which every client keeps its examples."""
    return tuple(simulate_shift(None, Seed(number)) for number in range(2))


@cache
def permuted_shift_runs() -> tuple[PlantedRun, ...]:
    """Return the runs with a shift, with permuted classes: new class i is `ORDER[i]`."""
    return tuple(permute_classes(run, ORDER) for run in shifting_runs())


def finds_most_of_the_planted_shifts(trial: AttackTrial) -> None:
    """Check that its statistic peaks soon after most of the shifts."""
    share = _share_of_peaks(trial, shifting_runs())
    require(share > 0.5, f"{trial.attack.name} finds {share:.0%} of shifts, expected over 50 %")


def finds_no_shift_where_nothing_changes(trial: AttackTrial) -> None:
    """Check that its statistic rarely peaks there without a shift."""
    share = _share_of_peaks(trial, constant_runs())
    require(
        share < 0.5,
        f"{trial.attack.name} finds shifts for {share:.0%} of targets without one, expected "
        "less than 50 %",
    )


def evidence_covers_observed_rounds_only(trial: AttackTrial) -> None:
    """Check that its evidence is about observed rounds only."""
    run = trial.first_run
    observed = run.transcript.seen_by(SERVER).rounds()
    for claim in claims_about(trial, run):
        require(
            set(claim.evidence.rounds) <= set(observed) and claim.evidence.since in observed,
            f"{trial.attack.name} claims something about rounds that were not observed",
        )


def permuting_classes_keeps_evidence(trial: AttackTrial) -> None:
    """Check that permuting the classes does not change its statistic."""
    if not trial.attack.is_label_equivariant:
        # A permutation changes its virtual clients, which must reveal the shift as well.
        share = _share_of_peaks(trial, permuted_shift_runs())
        require(
            share > 0.5,
            f"{trial.attack.name} finds {share:.0%} of shifts where classes are permuted, "
            "expected over 50 %",
        )
        return
    before = claims_about(trial, shifting_runs()[0])
    after = claims_about(trial, permuted_shift_runs()[0])
    for one, other in zip(before, after, strict=True):
        largest = max(one.evidence.statistic)
        gaps = [
            abs(left - right)
            for left, right in zip(
                one.evidence.statistic, other.evidence.statistic, strict=True
            )
        ]
        require(
            max(gaps) <= 1e-4 * largest,
            f"{trial.attack.name}: permuting the classes changes its evidence: set "
            "`is_label_equivariant = False` if its draws depend on the order of classes",
        )


def _share_of_peaks(trial: AttackTrial, runs: Sequence[PlantedRun]) -> float:
    """Return the share of targets whose statistic peaks soon after `SHIFT_ROUND`."""
    peaks = list[bool]()
    for run in runs:
        for claim in claims_about(trial, run):
            by_round = dict(zip(claim.evidence.rounds, claim.evidence.statistic, strict=True))
            earlier = [value for number, value in by_round.items() if number < SHIFT_ROUND]
            peaks.append(max(by_round[number] for number in ROUNDS_AFTER_SHIFT) > max(earlier))
    return sum(peaks) / len(peaks)


@final
@dataclass(frozen=True, slots=True)
class ShiftChecks(QuestionChecks):
    """Runs in which every client shifts, or none does."""

    name = "shift"
    attack_checks = (
        finds_most_of_the_planted_shifts,
        finds_no_shift_where_nothing_changes,
        evidence_covers_observed_rounds_only,
        permuting_classes_keeps_evidence,
    )
    is_across_runs = True
    is_about_labels = True
    scorer = ShiftScorer()
    example = Shift(Timeline())

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return runs in which every client shifts to mostly one class."""
        return shifting_runs()

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return runs in which every client keeps its examples."""
        return constant_runs()

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with a shift in round 1."""
        return truth.having(Shifts({client(0): (1,)}))
