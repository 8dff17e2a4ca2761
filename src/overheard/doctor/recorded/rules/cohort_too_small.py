"""Noise for more clients than replied."""

from typing import final

from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
)
from overheard.doctor.recorded.noise import requested_cohorts

COHORT_SETTING = "num_sampled_clients"
"""How Flower's strategies call the number of clients that their noise is scaled to."""


@final
class CohortTooSmall(RunRule):
    """The noise on a mean is for a sum of more clients than were in the mean."""

    name = "cohort-too-small"
    severity = "critical"
    title = "the noise is scaled to more clients than replied"
    mend = (
        "Scale the noise to the clients that a round really has, or refuse rounds with fewer "
        "replies than the noise is scaled to."
    )
    reference = (
        "flwrlabs/flower examples/fl-dp-sa; Flower logs: the number of clients returning "
        "parameters differs from the number of sampled clients"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the configured cohort with the replies of each round."""
        scaled = [
            (one, cohort)
            for one in run.mechanisms
            if one.mechanism.noise_multiplier > 0
            and (cohort := one.number(COHORT_SETTING)) is not None
        ]
        if not scaled:
            return None
        if not run.is_recorded:
            return Hidden("how many clients reply is known only of a recording")
        cohorts = requested_cohorts(run.messages)
        return tuple(
            _fault(one, cohort, cohorts)
            for one, cohort in scaled
            if any(size < cohort for size in cohorts.values())
        )


def _fault(one: StatedMechanism, cohort: float, cohorts: dict[int, int]) -> Fault:
    low = {number: size for number, size in cohorts.items() if size < cohort}
    number = min(low, key=lambda key: low[key])
    real = one.mechanism.noise_multiplier * low[number] / cohort
    return Fault(
        f"The noise is scaled to {cohort:g} clients, and {len(low)} of {len(cohorts)} rounds "
        f"have fewer: its multiplier is {real:.3g} in place of "
        f"{one.mechanism.noise_multiplier:g} in the smallest one.",
        f"{one.name}: round {number}",
        f"{COHORT_SETTING} = {cohort:g}, replies in round {number}: {low[number]}",
    )
