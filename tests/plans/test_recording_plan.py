"""A plan completes what a recording states, and does not contradict it."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.core.errors import PlanError
from overheard.core.mechanism import Mechanism
from overheard.plans.recording_plan import RecordingPlan, complete_manifest

RECORDING = Path("recording")
OF_RECORDS = Mechanism(1.1, 1.0, 1e-5, "client", "client", moves=1.0, unit="record")
OF_CLIENTS = Mechanism(1.1, 1.0, 1e-5, "client", "client")
DP_SGD, LOCAL = (
    DefenseRecord("dp", "Dp()", "client", "each client", one)
    for one in (OF_RECORDS, OF_CLIENTS)
)
NOISELESS = DefenseRecord("trim", "Trim()", "client", "each client")
SILENT = Manifest(None, "", None, (DP_SGD, LOCAL, NOISELESS), ("server",), None)
STATED = RecordingPlan(
    rounds=300,
    participation=0.1,
    sampling="poisson",
    steps=6,
    record_sampling="fixed",
    record_rate=0.25,
)


def test_a_plan_adds_what_the_recording_does_not_state() -> None:
    sampled = replace(OF_RECORDS, steps=6, record_sampling="fixed", record_rate=0.25)
    complete = complete_manifest(SILENT, STATED, RECORDING)
    assert complete == replace(
        SILENT,
        rounds=300,
        participation=0.1,
        sampling="poisson",
        # All data of a client have no sampling of records.
        defenses=(replace(DP_SGD, mechanism=sampled), LOCAL, NOISELESS),
    )
    assert complete_manifest(complete, STATED, RECORDING) == complete
    assert complete_manifest(complete, RecordingPlan(), RECORDING) == complete


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("rounds", 20),
        ("participation", 0.2),
        ("sampling", "fixed"),
        ("steps", 7),
        ("record_sampling", "poisson"),
        ("record_rate", 0.5),
    ],
)
def test_a_plan_must_agree_with_the_recording(name: str, other: object) -> None:
    complete = complete_manifest(SILENT, STATED, RECORDING)
    different = STATED.model_copy(update={name: other})
    with pytest.raises(PlanError, match=rf"recording: states {name} = .*recording\.{name} of"):
        complete_manifest(complete, different, RECORDING)


def test_a_sample_of_records_needs_a_rate() -> None:
    with pytest.raises(PlanError, match=r"\[recording\] of the plan: record_rate is the share"):
        complete_manifest(SILENT, RecordingPlan(record_sampling="poisson"), RECORDING)
