"""A stated epsilon that no accounting of its settings allows."""

from typing import final

from overheard.core.mechanism import UNITS
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
    round_down,
)
from overheard.doctor.recorded.rules.epsilon_of_one_round import is_of_one_round


@final
class ClaimBelowAccounting(RunRule):
    """The stated epsilon is below a lower bound of the epsilon of its settings."""

    name = "claim-below-accounting"
    severity = "critical"
    title = "the stated epsilon is smaller than its settings allow"
    mend = (
        "State the epsilon of all rounds, steps and the true sampling rate, or add more noise."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), accounting; '
        "google-research/federated #18"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each stated epsilon with the lower bound of its settings."""
        stated = [one for one in run.mechanisms if one.mechanism.stated is not None]
        if not stated:
            return None
        faults = tuple(
            _fault(one)
            for one in stated
            if one.accounted.claim == "false" and has_noise(one) and not is_of_one_round(one)
        )
        doubts = [one.accounted.doubt for one in stated if one.accounted.recomputed is None]
        return (
            Hidden(f"epsilon was not recomputed: {doubts[0]}")
            if not faults and doubts
            else faults
        )


def has_noise(one: StatedMechanism) -> bool:
    """Return whether a mechanism adds noise at all."""
    return one.mechanism.noise_multiplier > 0


def _fault(one: StatedMechanism) -> Fault:
    mechanism, run, found = one.mechanism, one.accounted.run, one.accounted.recomputed
    assert found is not None, "no claim is false without a recomputed epsilon"
    lower = found.one_round_lower if mechanism.stated_for == "round" else found.lower
    return Fault(
        f"Epsilon {mechanism.stated:g} is stated for a {mechanism.stated_for}, and no epsilon "
        f"below {round_down(lower)} is true for its settings.",
        one.name,
        f"noise multiplier {mechanism.noise_multiplier:g}, {run.rounds_text}, "
        f"{mechanism.steps:,} noise draws a round, delta {mechanism.delta:g}, unit: "
        f"{UNITS[mechanism.unit]}, {mechanism.relation_words}",
    )
