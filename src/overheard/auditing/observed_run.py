"""What attacks are given of a run: its messages and prior knowledge, and no ground truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from overheard.auditing.plan_code import AttackCodes
from overheard.auditing.work_items import PLANNED, RunKind
from overheard.core.knowledge import Knowledge
from overheard.core.transcript import Transcript
from overheard.findings.audited_recording import AuditedRecording
from overheard.plans.plan import ArmPlan, ThreatPlan


@final
@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run as attacks see it. It holds nothing of the ground truth.

    Args:
        name: the name of its arm in the report; "recorded" for a recording.
        seed: its seed.
        transcript: all messages of the run.
        rounds: the rounds with updates, in order.
        knowledge: returns the attacker's knowledge under a threat.
        arm: the arm of the plan, with the defenses in force.
        codes: returns the digests of the code that an attack depends on.
        kind: whether it is the planned run or one of its controls.
        recording: what its check proves, if it was recorded; None = it was simulated.

    """

    name: str
    seed: int
    transcript: Transcript
    rounds: tuple[int, ...]
    knowledge: Callable[[ThreatPlan], Knowledge]
    arm: ArmPlan
    codes: AttackCodes
    kind: RunKind = PLANNED
    recording: AuditedRecording | None = None
