"""What attacks are given of a run: its messages and prior knowledge, and no ground truth."""

from dataclasses import dataclass
from typing import final

from overheard.auditing.inputs import AttackerInputs
from overheard.auditing.program import RunSpec
from overheard.core.transcript import Transcript
from overheard.findings.audited_recording import AuditedRecording


@final
@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run as attacks see it. It holds nothing of the ground truth.

    Args:
        spec: the run in the program of the audit, with the attacks on it.
        transcript: all messages of the run.
        inputs: what the knowledge of all attackers is made from.
        recording: what its check proves, if it was recorded; None = it was simulated.

    """

    spec: RunSpec
    transcript: Transcript
    inputs: AttackerInputs
    recording: AuditedRecording | None = None
