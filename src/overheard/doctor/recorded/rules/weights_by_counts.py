"""A mean weighted by private counts, with noise for equal weights."""

from typing import final

from overheard.core.messages import Update
from overheard.core.parties import Party
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
)
from overheard.doctor.recorded.noise import replies_by_round
from overheard.doctor.recorded.rules.cohort_too_small import COHORT_SETTING

ROUNDING = 1e-6
"""How much a weight may exceed an equal one by rounding, as a share."""


@final
class WeightsByCounts(RunRule):
    """Clients are weighted by counts that differ, and the noise is for equal weights.

    A client with more examples than others moves the mean by more than clip / clients.
    """

    name = "weights-by-counts"
    severity = "critical"
    title = "clients are weighted by private counts, and the noise is not"
    mend = (
        "Weight all clients alike, or scale the noise to clip times the largest "
        "possible weight and keep the counts out of the message."
    )
    reference = (
        "Flower's DP strategies average by num-examples by default; with an accountant Flower "
        'refuses unequal weights; JAX Privacy, "Sharp edges" (2026), sensitivity alignment'
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the largest weight of each round with an equal one."""
        weighted = [one for one in run.mechanisms if _is_for_equal_weights(run, one)]
        if not weighted:
            return None
        if not run.is_recorded:
            return Hidden("how many examples clients have is known only of a recording")
        found, is_counted = tuple(_faults(run, weighted)), _has_counts(run)
        if found or is_counted:
            return found
        return Hidden("no reply states its number of examples")


def _is_for_equal_weights(run: RunEvidence, one: StatedMechanism) -> bool:
    """Return whether noise at the server is for equal weights, while counts may weight."""
    by_counts = one.name.startswith("DifferentialPrivacy") or "mean='examples'" in run.algorithm
    return (
        one.mechanism.noised_at == "server" and one.mechanism.noise_multiplier > 0 and by_counts
    )


def _has_counts(run: RunEvidence) -> bool:
    return any(
        isinstance(message.body, Update) and message.body.examples for message in run.messages
    )


def _faults(run: RunEvidence, weighted: list[StatedMechanism]) -> list[Fault]:
    uneven = list[tuple[float, int, Party, int, int, int]]()
    rounds = 0
    for number, replies in replies_by_round(run.messages).items():
        counts = [
            (message.body.examples or 0, message.sender)
            for message in replies
            if isinstance(message.body, Update)
        ]
        total = sum(count for count, _ in counts)
        if not total:
            continue
        rounds += 1
        count, sender = max(counts)
        excess = count * len(counts) / total
        if excess > 1 + ROUNDING:
            uneven.append((excess, number, sender, count, total, len(counts)))
    if not uneven:
        return []
    excess, number, sender, count, total, clients = max(uneven)
    found = list[Fault]()
    for one in weighted:
        cohort = one.number(COHORT_SETTING) or clients
        real = one.mechanism.noise_multiplier * total / (count * cohort)
        found.append(
            Fault(
                f"In {len(uneven)} of {rounds} rounds a client has a larger weight than the "
                f"noise is for: up to {excess:.2f} times, so the multiplier is {real:.3g} in "
                f"place of {one.mechanism.noise_multiplier:g}.",
                f"{one.name}: round {number}, {sender}",
                f"{count:,} of {total:,} examples, a weight of {count / total:.3g}; an equal "
                f"one is {1 / clients:.3g}",
            )
        )
    return found
