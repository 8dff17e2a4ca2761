"""The report's record of a run: updates, bytes and the defenses in force."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from overheard.archive.manifest import SIMULATION, Manifest
from overheard.archive.reader import open_transcript
from overheard.archive.requested_rounds import RequestedRounds
from overheard.archive.run_time import read_run_time
from overheard.auditing.client_accounting import with_equal_accounts
from overheard.auditing.doctor_evidence import arm_evidence, find_criticisms
from overheard.auditing.judging.record_difference import measure_record_difference
from overheard.auditing.observed_run import ObservedRun
from overheard.core.accounting.accountant import AccountedMechanism, account_mechanism
from overheard.core.defense import Defense, RunParameters
from overheard.core.examples import Examples
from overheard.core.mechanism import ClientSampling, Mechanism
from overheard.core.messages import Update
from overheard.core.parties import Party, is_client
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import UTILITIES
from overheard.core.transcript import Transcript
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.truth import GroundTruth
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.epsilon.canary_cosines import read_canary_scores
from overheard.federation.cohort import client_epochs
from overheard.federation.federation import Federation
from overheard.federation.sampling import sampling_rate
from overheard.findings.finding import ArmDefense, ArmRun, RecordExchange
from overheard.findings.lost_replies import MAX_ROWS, find_lost_replies
from overheard.findings.metadata import describe_metadata
from overheard.findings.privacy.canary_scores import CanaryScores
from overheard.findings.traffic import measure_traffic
from overheard.participation.participation import find_participation
from overheard.participation.sums_reading import SumsReading, read_sums
from overheard.plans.plan import ArmPlan, Plan

CANARY_SEED = Seed(0)
"""The seed of the canaries that did not take part, with which others are compared."""

NO_WEIGHTS_SENT = "nobody: this protocol sends no weights"
"""Which party could switch off that only distilled data are sent."""


def simulated_run_record(
    plan: Plan,
    run: ObservedRun,
    dataset: Dataset,
    partition: DataPartition,
    folder: Path,
    truth: GroundTruth,
    federation: Federation,
) -> ArmRun:
    """Return the report's entry of a simulated run, with the figures of its messages and data.

    Args:
        plan: the plan of the audit.
        run: the run as attacks see it.
        dataset: the audited data set.
        partition: which client holds which examples.
        folder: the folder of the run.
        truth: what is true of the run.
        federation: the federation that ran.

    """
    spec = run.spec
    # Models derived from distilled data are among the observed messages but were never sent.
    sent = open_transcript(folder)
    defenses = planned_defenses(plan, spec.arm)
    evidence = arm_evidence(plan, spec.arm, defenses, planned_run(plan, spec.arm))
    # Reading messages takes time, and runs of an arm differ in their draws alone.
    if spec.seed == plan.seeds[0]:
        evidence = replace(evidence, messages=tuple(sent.messages))
    if not spec.kind.is_control:
        defenses = with_equal_accounts(
            defenses,
            sent.messages,
            federation.clients,
            partial(_share_of_epochs, federation, plan.training.possible_epochs[-1]),
        )
    record = ArmRun(
        spec.name,
        spec.seed,
        defenses,
        truth.accuracy,
        missing=0,
        answers=0,
        is_control=spec.kind.is_control,
        control=spec.kind.draws,
        control_number=spec.kind.number,
        seconds=read_run_time(folder),
        canary_scores=canary_scores(truth, run.transcript),
        criticisms=() if spec.kind.is_control else find_criticisms(evidence),
    )
    return complete_run_record(plan, record, dataset, partition, sent, run.transcript)


def canary_scores(
    truth: GroundTruth | None, transcript: Transcript
) -> tuple[CanaryScores, ...]:
    """Return how far canary clients show in a run; () if it has none."""
    canaries = None if truth is None else truth.facts.get(CanaryDirections)
    return () if canaries is None else read_canary_scores(transcript, canaries, CANARY_SEED)


def _share_of_epochs(federation: Federation, most: int, number: int, client: Party) -> float:
    """Return the epochs of a client in a round as a share of the most that any may have."""
    epochs = client_epochs(federation, number, client)
    return 1.0 if epochs is None else epochs / most


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
    lost = find_lost_replies(observed.messages)
    difference = None
    if dataset.listed is not None:
        difference = measure_record_difference(dataset.listed, dataset.task)
    return replace(
        run,
        missing=sum(len(one.rounds) for one in lost if not one.is_unrecorded),
        unrecorded=sum(len(one.rounds) for one in lost if one.is_unrecorded),
        lost_replies=() if run.is_control else lost[:MAX_ROWS],
        answers=sum(isinstance(message.body, Update) for message in observed.messages),
        traffic=measure_traffic(sent),
        in_clear=() if run.is_control else describe_metadata(sent.messages),
        sums=None if run.is_control else _read_sums(sent),
        are_records_exchangeable=are_exchangeable(plan.data.split, dataset, partition),
        canary_odds=partition.canary_odds,
        canary_clients=clients_of_canaries(partition.offered, partition.candidates),
        record_labels=()
        if partition.candidates is None
        else tuple(partition.candidates.labels.tolist()),
        record_exchange=record_exchange(plan.data.split, dataset, partition)
        if difference is None
        else "same label",
        record_difference=difference,
        utility=UTILITIES[dataset.task.kind],
        clients=len(
            {
                party
                for message in sent.messages
                for party in (message.sender, *message.readers)
                if is_client(party)
            }
        ),
    )


def clients_of_canaries(
    offered: Mapping[Party, tuple[int, ...]], candidates: Examples | None
) -> tuple[Party | Literal[""], ...]:
    """Return the client that each candidate record was offered to; () = no coin was fair."""
    if not offered or candidates is None:
        return ()
    clients: list[Party | Literal[""]] = [""] * len(candidates)
    for party, places in offered.items():
        for place in places:
            clients[place] = party
    return tuple(clients)


def planned_defenses(plan: Plan, arm: ArmPlan) -> tuple[ArmDefense, ...]:
    """Return an arm's defenses, each with its formal promise and its accounted epsilon."""
    promised = planned_run(plan, arm)
    records = [_defense_record(one, promised) for one in arm.defenses]
    if arm.distillation is not None:
        records.append(
            ArmDefense(repr(arm.distillation), "client", NO_WEIGHTS_SENT, "no formal promise")
        )
    return tuple(records)


def planned_run(plan: Plan, arm: ArmPlan) -> RunParameters:
    """Return what accounting needs to know of the runs of an arm."""
    share, sampling = plan.training.participation, plan.training.sampling
    return RunParameters(
        plan.rounds_of(arm),
        share,
        sampling_rate(plan.data.clients, share, sampling),
        sampling,
        epochs=plan.training.possible_epochs[-1],
        repeats_examples=any(one.repeats_examples for one in arm.defenses),
    )


def recorded_defenses(manifest: Manifest, run: RunParameters) -> tuple[ArmDefense, ...]:
    """Return the defenses that a recording states; that they were applied is not verified."""
    return tuple(
        ArmDefense(
            one.settings,
            one.enforced_at,
            one.switched_off_by,
            "as recorded: not verified",
            None if one.mechanism is None else _account_recorded(one.mechanism, run),
        )
        for one in manifest.defenses
    )


def recorded_run(
    manifest: Manifest, asked: RequestedRounds, *, has_ended: bool, so_far: int | None = None
) -> RunParameters:
    """Return what accounting needs to know of a recorded run.

    A round that was asked of clients counts as spent, whether its replies were stored or not.
    If fewer rounds are recorded than planned, epsilon is that of the planned ones. If nobody
    states the end of the run, more rounds may follow.

    Args:
        manifest: of the recording.
        asked: the rounds that clients were asked for.
        has_ended: whether no further round will be recorded.
        so_far: number of rounds of a run that goes on, all of which count; None = it is over.

    """
    spent = max(asked.rounds, so_far or 0)
    planned = spent if manifest.rounds is None or so_far is not None else manifest.rounds
    rounds = max(spent, planned, 1)
    share, sampling = manifest.participation, stated_sampling(manifest)
    if share == 1 or (share is None and asked.are_all_requested):
        sampling = "none"
    share = asked.share if share is None else share
    rate = (
        1.0
        if sampling is None or sampling == "none"
        else sampling_rate(asked.clients, share, sampling)
    )
    return RunParameters(
        rounds,
        share,
        rate,
        sampling,
        # Each sampled round counts with its probability, whoever was drawn.
        asked=max(spent if sampling == "poisson" else asked.most, so_far or 0),
        recorded=spent if spent < rounds else None,
        is_open=so_far is not None or (manifest.rounds is None and not has_ended),
    )


def stated_sampling(manifest: Manifest) -> ClientSampling | None:
    """Return how the clients of a round were sampled; None = not stated."""
    if manifest.sampling is not None or manifest.framework != SIMULATION:
        return manifest.sampling
    # A simulation states its sampling in its protocol, unless it is the usual one.
    named: tuple[ClientSampling, ...] = ("poisson", "with_replacement")
    return next((one for one in named if f"sampling {one}" in manifest.protocol), "fixed")


def _account_recorded(mechanism: Mechanism, run: RunParameters) -> AccountedMechanism:
    """Account for a recorded mechanism; noise at the server counts on the sampling it states.

    Only the server knows the sampled clients then, and it reads the updates without noise.
    """
    is_by_server = mechanism.noised_at == "server" and mechanism.unit == "client"
    if is_by_server and mechanism.steps == 1 and run.sampling in ("fixed", "poisson"):
        mechanism = replace(mechanism, is_drawn=True)
    return account_mechanism(mechanism, run)


def _defense_record(defense: Defense, run: RunParameters) -> ArmDefense:
    mechanism = defense.mechanism()
    if mechanism is not None:
        mechanism = mechanism.in_round(run.epochs, repeats_examples=run.repeats_examples)
    return ArmDefense(
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        defense.promise(run),
        None if mechanism is None else account_mechanism(mechanism, run),
    )


SIGNIFICANCE = 0.01
"""Significance level of the test that labels differ: its false positive rate."""


def record_exchange(
    split: Split | None, dataset: Dataset, partition: DataPartition
) -> RecordExchange:
    """Return which candidate records might as well have had each other's owner.

    Canaries are assigned at random, so any two might. Of the others, two with one label might
    if the split draws the examples of a label at random, and every example is a record of its
    own: records of one user, or cut from one original, belong together.
    """
    if partition.canary_odds is not None:
        return "all"
    if split is None or not split.draws_labels_at_random or dataset.records is not None:
        return "none"
    return "same label"


def are_exchangeable(split: Split | None, dataset: Dataset, partition: DataPartition) -> bool:
    """Return whether members and non-members are exchangeable.

    If they are not, a run that reveals the distribution of the clients' data separates members
    from non-members, although it reveals no single record. Canaries are exchangeable, since
    they are assigned at random. Other candidates are if three conditions hold: the split makes
    clients alike, every example is a record of its own, and label frequencies do not differ
    (chi-squared test at `SIGNIFICANCE`).
    """
    candidates = partition.candidates
    if partition.canary_odds is not None:
        return True
    if (
        candidates is None
        or split is None
        or not split.is_exchangeable
        or dataset.records is not None
    ):
        return False
    is_member = torch.zeros(len(candidates.labels), dtype=torch.bool)
    for rows in partition.members.values():
        is_member[list(rows)] = True
    groups = [candidates.labels[is_member], candidates.labels[~is_member]]
    counts = torch.stack([group.bincount(minlength=dataset.task.classes) for group in groups])
    from scipy.stats import chi2_contingency  # only here: importing it takes half a second

    present = counts[:, counts.sum(0) > 0].numpy()  # (2, classes that occur)
    return present.shape[1] < 2 or bool(chi2_contingency(present).pvalue >= SIGNIFICANCE)


def _read_sums(sent: Transcript) -> SumsReading | None:
    participation = find_participation(sent.messages)
    return None if participation is None else read_sums(participation)
