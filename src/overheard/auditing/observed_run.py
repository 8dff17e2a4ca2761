"""What attacks are given of a run: its messages and prior knowledge, and no ground truth."""

from dataclasses import dataclass
from typing import Any, final

from overheard.auditing.inputs import AttackerInputs
from overheard.auditing.program import RunSpec
from overheard.core.attack import Attack
from overheard.core.needs import CANDIDATES
from overheard.core.transcript import Transcript
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import RecordDifference
from overheard.findings.threat_verdict import TargetKind

QUICK_SCORES = (
    "Draw canaries before the next run (`overheard canaries`). For scores without a verdict, "
    "take attacks that train no shadow models"
)
"""What to do about listed records that differ by themselves."""


@final
@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run as attacks see it. It holds nothing of the ground truth.

    Args:
        spec: the run in the program of the audit, with the attacks on it.
        transcript: all messages of the run.
        inputs: what the knowledge of all attackers is made from.
        recording: what its check proves, if it was recorded; None = it was simulated.
        difference: how far listed candidate records differ by themselves; None = none are
            listed.

    """

    spec: RunSpec
    transcript: Transcript
    inputs: AttackerInputs
    recording: AuditedRecording | None = None
    difference: RecordDifference | None = None

    # Any: an attack answers a question of its own.
    def unjudged(self, attack: Attack[Any], about: TargetKind) -> str:
        """Return what an attack lacks to be worth its time; "" = it may lead to a verdict.

        Scores without a verdict are worth seconds, and not the training of shadow models.
        """
        is_quick = attack.training_source() == "none"
        if self.difference is None or is_quick or CANDIDATES not in attack.needs:
            return ""
        if self.difference.is_small(about):
            return ""
        return (
            "listed records that are alike, as it trains shadow models for minutes and no "
            f"verdict could follow: {self.difference.sentence(about)}. {QUICK_SCORES}"
        )
