"""The report's record of a run: updates, bytes and the defenses in force."""

from dataclasses import replace

from overheard.archive.manifest import Manifest
from overheard.auditing.exchangeability import are_exchangeable, record_exchange
from overheard.core.accountant import account_mechanism
from overheard.core.defense import Defense, RunParameters
from overheard.core.messages import MissingReply, UnstoredMessage, Update
from overheard.core.task import UTILITIES
from overheard.core.transcript import Transcript
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.sampling import sampling_rate
from overheard.findings.finding import ArmDefense, ArmRun
from overheard.findings.metadata import describe_metadata
from overheard.findings.traffic import measure_traffic
from overheard.plans.plan import ArmPlan, Plan

NO_WEIGHTS_SENT = "nobody: this protocol sends no weights"
"""Which party could switch off that only distilled data are sent."""


def complete_run_record(
    plan: Plan,
    run: ArmRun,
    dataset: Dataset,
    partition: DataPartition,
    sent: Transcript,
    observed: Transcript,
) -> ArmRun:
    """Complete the record of a run with figures of its transcript and partition.

    Args:
        plan: the plan of the audit.
        run: the record so far.
        dataset: the audited data set.
        partition: which client holds which examples.
        sent: all messages that were sent.
        observed: the messages given to attacks, with models derived from distilled data.

    """
    bodies = [type(message.body) for message in observed.messages]
    return replace(
        run,
        missing=bodies.count(MissingReply) + bodies.count(UnstoredMessage),
        answers=bodies.count(Update),
        traffic=measure_traffic(sent),
        in_clear=() if run.is_control else describe_metadata(sent.messages),
        are_records_exchangeable=are_exchangeable(plan.data.split, dataset, partition),
        canary_odds=partition.canary_odds,
        record_labels=()
        if partition.candidates is None
        else tuple(partition.candidates.labels.tolist()),
        record_exchange=record_exchange(plan.data.split, dataset, partition),
        utility=UTILITIES[dataset.task.kind],
    )


def planned_defenses(plan: Plan, arm: ArmPlan) -> tuple[ArmDefense, ...]:
    """Return an arm's defenses, each with its formal promise and its accounted epsilon."""
    share = plan.training.participation
    promised = RunParameters(
        plan.rounds_of(arm),
        share,
        sampling_rate(plan.data.clients, share, plan.training.sampling),
    )
    records = [_defense_record(one, promised) for one in arm.defenses]
    if arm.distillation is not None:
        records.append(
            ArmDefense(repr(arm.distillation), "client", NO_WEIGHTS_SENT, "no formal promise")
        )
    return tuple(records)


def recorded_defenses(manifest: Manifest, rounds: int) -> tuple[ArmDefense, ...]:
    """Return the defenses that a recording states; that they were applied is not verified.

    Client sampling is not credited, since a recording does not say how clients were sampled.
    """
    run = RunParameters(max(rounds, 1), manifest.participation or 1.0)
    return tuple(
        ArmDefense(
            one.settings,
            one.enforced_at,
            one.switched_off_by,
            "as recorded: not verified",
            None if one.mechanism is None else account_mechanism(one.mechanism, run),
        )
        for one in manifest.defenses
    )


def _defense_record(defense: Defense, run: RunParameters) -> ArmDefense:
    mechanism = defense.mechanism()
    return ArmDefense(
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        defense.promise(run),
        None if mechanism is None else account_mechanism(mechanism, run),
    )
