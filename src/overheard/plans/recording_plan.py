"""What a plan says of the recording that it audits."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

from overheard.archive.manifest import Manifest
from overheard.core.errors import PlanError
from overheard.core.mechanism import ClientSampling, Mechanism, RecordSampling
from overheard.core.settings import Positive, PositiveShare
from overheard.plans.strict_model import StrictModel

T = TypeVar("T")


class RecordingPlan(StrictModel):
    """What the user states of a recording that does not state it; all optional.

    All but `accept` is for epsilon.

    Args:
        accept: why attacks are run although the recording contradicts itself: its replies do
            not lead to its next broadcasts. The report repeats it in its first lines. Without
            it such attacks are refused.
        rounds: number of planned rounds.
        participation: share of the clients that were sampled in a round.
        sampling: how the clients of a round were sampled.
        steps: number of steps in a round of a mechanism that protects single records.
        record_sampling: how the records of such a step were sampled inside a client.
        record_rate: share of a client's records in a step.
        tuning_runs: number of runs on the same private data from which this one was chosen,
            itself included.

    """

    accept: Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")] | None = None
    rounds: Positive | None = None
    participation: PositiveShare | None = None
    sampling: ClientSampling | None = None
    steps: Positive | None = None
    record_sampling: RecordSampling | None = None
    record_rate: PositiveShare | None = None
    tuning_runs: Positive | None = None


def complete_manifest(manifest: Manifest, stated: RecordingPlan, recording: Path) -> Manifest:
    """Return the manifest with what the plan states in addition.

    Raises:
        PlanError: if the recording states otherwise, or samples of records have no rate.

    """
    sampling: ClientSampling | None = _agreed(
        recording, "sampling", manifest.sampling, stated.sampling
    )
    share = _agreed(recording, "participation", manifest.participation, stated.participation)
    return replace(
        manifest,
        rounds=_agreed(recording, "rounds", manifest.rounds, stated.rounds),
        participation=share,
        sampling=sampling,
        defenses=tuple(
            one
            if one.mechanism is None or one.mechanism.unit != "record"
            else replace(one, mechanism=_complete_mechanism(one.mechanism, stated, recording))
            for one in manifest.defenses
        ),
    )


def _complete_mechanism(
    mechanism: Mechanism, stated: RecordingPlan, recording: Path
) -> Mechanism:
    """Return the mechanism with what the plan states of its steps and their records."""
    # One step is also what a mechanism has that states none.
    told = mechanism.steps if mechanism.steps > 1 else None
    steps = _agreed(recording, "steps", told, stated.steps)
    sampling, rate = mechanism.record_sampling, mechanism.record_rate
    sampling = _agreed(recording, "record_sampling", sampling, stated.record_sampling)
    rate = _agreed(recording, "record_rate", rate, stated.record_rate)
    try:
        return replace(
            mechanism,
            steps=mechanism.steps if steps is None else steps,
            record_sampling=sampling,
            record_rate=rate,
        )
    except ValueError as error:
        raise PlanError(f"{recording}, with [recording] of the plan: {error}") from error


def _agreed(recording: Path, name: str, recorded: T | None, stated: T | None) -> T | None:
    """Return what is known of a fact."""
    if recorded is not None and stated is not None and recorded != stated:
        raise PlanError(
            f"{recording}: states {name} = {recorded!r}, recording.{name} of the plan is "
            f"{stated!r}: remove it from the plan, or correct the recording's"
        )
    return stated if recorded is None else recorded
