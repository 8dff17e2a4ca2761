"""Candidate records that a user lists, in a first plan."""

from dataclasses import replace

from overheard.core.errors import PlanError
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.custom import Own
from overheard.planning.first_plan.plan_facts import ThreatText
from overheard.planning.recorded_facts import RecordedFacts

MEMBERSHIP_ATTACKS = ("whitened_membership", "loss_membership")
"""Attacks on single records that train nothing, and take seconds."""


def with_candidates(
    source: DataSource, recording: RecordedFacts | None, candidates: str | None
) -> DataSource:
    """Return the source with the file of candidate records; None = unchanged.

    Raises:
        PlanError: if there is no recording, or no data in whose form the records are read.

    """
    if candidates is None:
        return source
    if recording is None:
        raise PlanError(
            "--candidates lists records of a recorded run: name it (--from-recording FOLDER)"
        )
    if not isinstance(source, Own):
        raise PlanError(
            "--candidates needs examples that no client holds, on whose scale its records are "
            "read: add --data FILE, in the same form"
        )
    return replace(source, candidates=candidates)


def membership_threats(dataset: Dataset) -> tuple[ThreatText, ...]:
    """Return the threat that asks for the listed records; () = none are listed."""
    if dataset.listed is None:
        return ()
    is_about_cohort = not dataset.listed.are_owners_known
    return (ThreatText(MEMBERSHIP_ATTACKS, is_about_cohort=is_about_cohort),)
