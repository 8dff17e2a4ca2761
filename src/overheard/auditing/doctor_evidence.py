"""What the doctor may look at in a run, and what it says of it."""

from collections.abc import Sequence
from dataclasses import asdict

from overheard.archive.manifest import SIMULATION, Manifest
from overheard.core.defense import RunParameters
from overheard.core.messages import Message, UnstoredMessage, Update
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.doctor.recorded.evidence import RunEvidence, StatedMechanism
from overheard.findings.finding import ArmDefense
from overheard.findings.privacy.epsilon_rows import RunCriticism
from overheard.plans.plan import ArmPlan, Plan


def arm_evidence(
    plan: Plan, arm: ArmPlan, defenses: Sequence[ArmDefense], run: RunParameters
) -> RunEvidence:
    """Return what a plan states of an arm.

    Args:
        plan: the plan.
        arm: one of its arms.
        defenses: the defenses of the arm.
        run: over which they are composed.

    """
    sizes = plan.data.examples
    return RunEvidence(
        f"arm {arm.name!r}",
        _mechanisms(defenses),
        run,
        clients=plan.data.clients,
        recipe=plan.training.recipe,
        algorithm=repr(arm.algorithm or plan.training.algorithm),
        examples=sizes[0] if isinstance(sizes, tuple) else sizes,
    )


def recorded_evidence(
    manifest: Manifest,
    defenses: Sequence[ArmDefense],
    run: RunParameters,
    messages: Sequence[Message],
    clients: int,
    tuning_runs: int | None = None,
) -> RunEvidence:
    """Return what is known of a recorded run.

    Args:
        manifest: its manifest.
        defenses: the defenses that it states.
        run: over which they are composed.
        messages: all of its messages.
        clients: number of its clients.
        tuning_runs: number of runs from which it was chosen; None = not stated.

    """
    counts = [
        message.body.examples
        for message in messages
        if isinstance(message.body, Update | UnstoredMessage) and message.body.examples
    ]
    is_plain = manifest.framework == SIMULATION and manifest.protocol == "fedavg"
    return RunEvidence(
        "the recording",
        _mechanisms(defenses),
        run,
        clients=clients,
        messages=tuple(messages),
        recipe=manifest.recipe,
        algorithm="FedAvg(rate=1.0, mean='examples')" if is_plain else manifest.algorithm,
        examples=min(counts, default=None),
        tuning_runs=tuning_runs,
    )


def find_criticisms(run: RunEvidence) -> tuple[RunCriticism, ...]:
    """Return the faults of a run's differential privacy; () if it states none."""
    return criticisms_of(diagnose_run(run)) if run.mechanisms else ()


def criticisms_of(found: Diagnosis) -> tuple[RunCriticism, ...]:
    """Return the criticisms of a diagnosis as findings store them."""
    return tuple(
        RunCriticism(**asdict(one.rule), what=one.what, where=one.where, evidence=one.evidence)
        for one in found.criticisms
    )


def _mechanisms(defenses: Sequence[ArmDefense]) -> tuple[StatedMechanism, ...]:
    return tuple(
        StatedMechanism(one.settings, one.accounted)
        for one in defenses
        if one.accounted is not None
    )
