"""A recorded run, checked against the plan that audits it."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import final

from overheard.archive.layout import (
    count_committed_rounds,
    manifest_path,
    messages_path,
    transcript_folder,
)
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.reader import open_transcript, weights_paths
from overheard.archive.requested_rounds import count_requested_rounds
from overheard.archive.run_end import has_ended
from overheard.archive.truth import has_truth, read_truth
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.client_accounting import with_stated_accounts
from overheard.auditing.doctor_evidence import find_criticisms, recorded_evidence
from overheard.auditing.inputs import AuditInputs, Resources
from overheard.auditing.judging.run_truth import RunTruth
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import RunSpec, resolve_recording
from overheard.auditing.recorded_tensors.model_tensors import (
    match_model_tensors,
    select_matched_tensors,
)
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch
from overheard.auditing.recorded_truth import (
    compare_counts,
    compare_labels,
    read_recorded_truth,
)
from overheard.auditing.run_records import (
    canary_scores,
    clients_of_canaries,
    complete_run_record,
    recorded_defenses,
    recorded_run,
)
from overheard.auditing.simulate import build_federation
from overheard.consistency.check import check_recording as check_messages
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep, state_step
from overheard.core.defense import RunParameters
from overheard.core.errors import PlanError, TranscriptError
from overheard.core.failures import describe_internal_error
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MissingReply,
    Update,
)
from overheard.core.parties import Party, is_client
from overheard.core.transcript import Transcript
from overheard.core.true_facts.record_owners import OfferedCanaries, RecordOwners
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.disk.digests import is_store_trusted, read_ahead
from overheard.disk.reading import read_json_text
from overheard.federation.cohort import NO_EXAMPLES
from overheard.federation.digest import data_digest
from overheard.federation.local_tensors import local_names
from overheard.findings.audited_recording import AuditedRecording, Reads
from overheard.findings.finding import ArmRun
from overheard.learning.initialization import model_structure
from overheard.plans.description import describe_recording
from overheard.plans.plan import ArmPlan, Plan
from overheard.plans.recording_plan import complete_manifest
from overheard.plans.registries import true_fact_kinds

MOST_AHEAD = 2**33
"""Bytes of a recording up to which digests are computed ahead of its attacks."""


def with_proof(run: AuditedRun, check: Callable[[], RecordingProof]) -> AuditedRun:
    """Return a recorded run with what the check of its messages proves for its threats.

    Raises:
        TranscriptError: if the recording is damaged.

    """
    observed = run.observed
    reads = {
        first.cell.observers: what_is_read(observed.transcript.seen_by(*first.cell.observers))
        for first, *_ in observed.spec.by_threat()
    }
    try:
        proven = AuditedRecording(check(), reads)
    except Exception as error:
        why = describe_internal_error("the check of the recording", error)
        proven = AuditedRecording(None, reads, why)
    return replace(run, observed=replace(observed, recording=proven))


def what_is_read(view: View) -> Reads:
    """Return what observers read of a recording."""
    bodies = [message.body for message in view.messages]
    if any(isinstance(body, Update | Aggregate) for body in bodies):
        return "updates"
    return "means" if sum(isinstance(body, Broadcast) for body in bodies) > 1 else "neither"


def _read_ahead(whole: Transcript) -> None:
    """Compute the digests of all weights in the background, if they are to be compared.

    Files that do not stay in memory until they are needed would have to be read twice.
    """
    paths = [path for message in whole.messages for path in weights_paths(message)]
    if not is_store_trusted() and sum(os.stat(one).st_size for one in paths) <= MOST_AHEAD:
        read_ahead(paths)


def check_recording(
    plan: Plan, audit_inputs: AuditInputs, recording: Path
) -> "CheckedRecording":
    """Check the data and the partition of a plan against those of a recording.

    Raises:
        PlanError: if they differ from those of the run, or if the plan asks about records of
            unknown membership.
        TranscriptError: if the recording is damaged.

    """
    stored = read_manifest(recording)
    manifest = complete_manifest(stored, plan.recording, recording)
    step = state_step(stored, plan.recording.accept or "")
    candidates = plan.data.candidates
    if candidates is not None and candidates.are_canaries and _were_drawn_at_odds(recording):
        audit_inputs = replace(audit_inputs, canaries_at_odds=True)
    _refuse_other_data(recording, manifest, audit_inputs.dataset)
    partition = _check_partition(recording, manifest, audit_inputs)
    return CheckedRecording(plan, audit_inputs, recording, stored, manifest, step, partition)


@final
@dataclass(frozen=True, slots=True)
class CheckedRecording:
    """A recording with the data and the partition of a plan; any part of it can be attacked.

    Args:
        plan: the plan that audits it.
        audit_inputs: the plan's data.
        folder: the folder of the recording.
        stored: its manifest.
        manifest: the same, with what the plan states of the run beside it.
        step: how the stored manifest says that the server makes the next model.
        partition: the plan's partition.

    """

    plan: Plan
    audit_inputs: AuditInputs
    folder: Path
    stored: Manifest
    manifest: Manifest
    step: StatedStep
    partition: DataPartition

    def open_run(self) -> AuditedRun:
        """Open the recorded run: `transcript/` and, if it exists, `truth.json`.

        Attacks get the tensors that the plan's model sends: its trainable parameters, and its
        buffers, such as running means, if the run sent them. Others, such as the number of
        steps that a batch norm counts, count as traffic only.

        Raises:
            PlanError: if the plan's model, recipe or defenses differ from those of the run.
            TranscriptError: if the recording is damaged, or its ground truth is incomplete.

        """
        whole = open_transcript(self.folder)
        _read_ahead(whole)
        match = self.match_model_tensors(whole)
        transcript = without_idle_updates(select_matched_tensors(whole, match))
        truth = self.read_truth(transcript)
        spec = self.resolve(self.plan, transcript, transcript.parties())
        run = self.build_run(spec, whole, transcript, truth)
        differing = tuple[str, ...]()
        if self.manifest.data and truth is not None:  # a run that Overheard simulated
            differing = compare_labels(truth, self.partition)
        difference = run.record.record_difference
        listed = () if difference is None else difference.sentences()
        return replace(run, notes=(*match.notes, *differing, *listed))

    def open_proven_run(self) -> AuditedRun:
        """Open the recorded run and check its messages; raise as `open_run` does."""
        return with_proof(self.open_run(), partial(check_messages, self.folder, self.step))

    def with_criticisms(self, run: AuditedRun) -> AuditedRun:
        """Return the recorded run with what the doctor says of its differential privacy.

        Raises:
            TranscriptError: if the recording is damaged.

        """
        whole = open_transcript(self.folder)
        evidence = recorded_evidence(
            self.manifest,
            run.record.defenses,
            self._accounted_run(whole, None),
            whole.messages,
            count_requested_rounds(whole, self.manifest.parties).clients,
            self.plan.recording.tuning_runs,
        )
        try:
            criticisms = find_criticisms(evidence)
        except TranscriptError:
            raise
        except Exception as error:
            why = describe_internal_error("the check of differential privacy", error)
            return replace(run, warnings=(*run.warnings, why))
        return replace(run, record=replace(run.record, criticisms=criticisms))

    def describe(self, run: AuditedRun) -> str:
        """Return one sentence that describes the recorded run."""
        parties, rounds = run.observed.transcript.parties(), len(run.observed.spec.rounds)
        subject = describe_recording(self.plan, self.stored, len(parties), rounds)
        return "; ".join((subject, *run.notes))

    def match_model_tensors(self, whole: Transcript) -> TensorMatch:
        """Find the tensors of the plan's model in messages of the recording.

        Raises:
            PlanError: if the plan's model or recipe differs from that of the run.

        """
        dataset = self.audit_inputs.dataset
        return _match_model_tensors(self.folder, self.manifest, whole, self.plan, dataset)

    def read_truth(
        self, transcript: Transcript, parties: Collection[Party] | None = None
    ) -> GroundTruth | None:
        """Read and check the ground truth; return None if there is none.

        Args:
            transcript: messages of the recording.
            parties: parties that take part beside those of these messages, if the run goes
                on; None = these are all of its messages.

        Raises:
            TranscriptError: if it is incomplete, or an entry is impossible.

        """
        return read_recorded_truth(
            self.folder,
            transcript,
            self.audit_inputs.dataset.task.classes,
            self.partition,
            is_external=not self.manifest.data,
            planned_parties=tuple(map(Party, self.manifest.parties)),
            other_parties=parties,
            planned_rounds=self.manifest.rounds,
            listed=self.audit_inputs.dataset.listed,
        )

    def resolve(
        self,
        plan: Plan,
        transcript: Transcript,
        parties: Collection[Party],
        *,
        goes_on: bool = False,
    ) -> RunSpec:
        """Return the recorded run of an audit, and the attacks on it.

        Args:
            plan: the plan, perhaps with some of its threats only.
            transcript: messages with the parameters of the plan's model only.
            parties: all parties of the run.
            goes_on: whether the run goes on. Claims about it are not stored.

        Raises:
            PlanError: if an attacker knows defenses that no arm of the plan has, or a threat
                names an observer that is no party of the run.

        """
        arm = _recorded_arm(self.folder, self.manifest, self.plan)
        data = self.audit_inputs.data_digests()
        recording = "" if goes_on else recording_digest(self.folder)
        rounds = _rounds_with_updates(transcript)
        return resolve_recording(plan, arm, rounds, parties, data, recording)

    def build_run(
        self,
        spec: RunSpec,
        whole: Transcript,
        transcript: Transcript,
        truth: GroundTruth | None,
        rounds: int | None = None,
    ) -> AuditedRun:
        """Return messages of the recording as a run to attack.

        Args:
            spec: the run.
            whole: messages of the recording.
            transcript: the same, with the parameters of the plan's model only.
            truth: the ground truth; None if unknown.
            rounds: the number of rounds with updates of a run that goes on, which have spent
                epsilon; None = the messages are all that there are.

        """
        manifest, inputs = self.manifest, self.audit_inputs
        accounted_run = self._accounted_run(whole, rounds)
        clients = [one for one in map(Party, manifest.parties) if is_client(one)]
        record = ArmRun(
            spec.name,
            spec.seed,
            with_stated_accounts(
                recorded_defenses(manifest, accounted_run),
                accounted_run,
                whole.messages,
                clients,
            ),
            {} if truth is None else truth.accuracy,
            missing=0,
            answers=0,
            has_truth=truth is not None,
            are_defenses_known=manifest.are_defenses_known,
            canary_scores=canary_scores(truth, whole),
        )
        is_external = not manifest.data
        record = complete_run_record(
            self.plan, record, inputs.dataset, self.partition, whole, transcript
        )
        offered = _offered_canaries(truth)
        offered_to = clients_of_canaries(offered, self.partition.candidates)
        return AuditedRun(
            ObservedRun(
                spec,
                transcript,
                inputs.for_attackers(spec.seed),
                difference=record.record_difference,
            ),
            RunTruth(truth),
            replace(record, canary_clients=offered_to),
            warnings=compare_counts(truth, whole) if truth and is_external else (),
        )

    def _accounted_run(self, whole: Transcript, so_far: int | None) -> RunParameters:
        return recorded_run(
            self.manifest,
            count_requested_rounds(whole, self.manifest.parties),
            has_ended=has_ended(self.folder),
            so_far=so_far,
        )


def _were_drawn_at_odds(recording: Path) -> bool:
    """Return whether the ground truth is of an older version, which tossed no fair coin."""
    if not has_truth(recording):
        return False
    facts = read_truth(recording, true_fact_kinds()).facts
    return facts.get(RecordOwners) is not None and facts.get(OfferedCanaries) is None


def _offered_canaries(truth: GroundTruth | None) -> Mapping[Party, tuple[int, ...]]:
    """Return the canaries offered to each client that is known to have used its own."""
    owners = None if truth is None else truth.facts.get(RecordOwners)
    offered = None if truth is None else truth.facts.get(OfferedCanaries)
    if owners is None or offered is None:
        return {}
    return {one: held for one, held in offered.offered.items() if one in owners.members}


def recording_digest(recording: Path) -> str:
    """Return a digest of the messages of a recording, without its ground truth.

    Claims do not depend on the truth, so it may be added later.

    Raises:
        TranscriptError: if the recording cannot be read.

    """
    return _digest_of_rounds(recording, count_committed_rounds(recording)).hexdigest()


def digest_of_first_rounds(recording: Path, rounds: int) -> str:
    """Return a digest of the first rounds of a recording, which stays while it grows.

    Raises:
        TranscriptError: if the recording cannot be read, or has fewer rounds.

    """
    return _digest_of_rounds(recording, rounds).hexdigest()


def _digest_of_rounds(recording: Path, rounds: int) -> blake2b:
    transcript = transcript_folder(recording)
    read_manifest(recording)
    digest = blake2b(
        read_json_text(manifest_path(transcript), TranscriptError, inside=transcript),
        digest_size=12,
    )
    # The stored messages include digests of their weights.
    for number in range(rounds):
        digest.update(
            read_json_text(
                messages_path(transcript, number), TranscriptError, inside=transcript
            )
        )
    return digest


def _refuse_other_data(recording: Path, manifest: Manifest, dataset: Dataset) -> None:
    recorded_task, task = manifest.task, dataset.task
    if recorded_task is None:
        return
    if recorded_task.kind != task.kind:
        raise PlanError(
            f"{recording}: has a {recorded_task.kind} task, the plan's data have a {task.kind} "
            "task: name the data of the run in the plan"
        )
    if recorded_task.class_names != task.class_names:
        raise PlanError(
            f"{recording}: has the classes {', '.join(recorded_task.class_names)}, the plan's "
            f"data have {', '.join(task.class_names)}: name the data of the run in the plan"
        )
    if recorded_task.shape != task.shape:
        raise PlanError(
            f"{recording}: has examples of shape {recorded_task.shape}, the plan's data have "
            f"{task.shape}: name the data of the run in the plan"
        )


def without_idle_updates(transcript: Transcript) -> Transcript:
    """Return the messages with no update of a client that trained on no example.

    If an update of no example is not zero, its number of examples counts as hidden.
    """
    kept = list[Message]()
    for message in transcript.messages:
        body = message.body
        if not isinstance(body, Update) or body.examples != 0:
            kept.append(message)
        elif any(bool(one.any()) for one in body.delta.values()):
            kept.append(replace(message, body=replace(body, examples=None)))
        else:
            kept.append(replace(message, body=MissingReply(NO_EXAMPLES)))
    return Transcript(tuple(kept))


def _rounds_with_updates(transcript: Transcript) -> tuple[int, ...]:
    """Return the rounds in which a client contributed an update, in order.

    Where only global models were recorded, these are the rounds after which the next model is
    known.
    """
    found = {m.round for m in transcript.messages if has_update(m)}
    return tuple(sorted(found)) or rounds_between_models(transcript)


def rounds_between_models(transcript: Transcript) -> tuple[int, ...]:
    """Return the rounds with a broadcast of which the next round has one too, in order."""
    sent = {m.round for m in transcript.messages if isinstance(m.body, Broadcast)}
    return tuple(number for number in sorted(sent) if number + 1 in sent)


def has_update(message: Message) -> bool:
    """Return whether a message has what clients contribute to a round."""
    return isinstance(message.body, Update | DistilledSet | Aggregate)


def _match_model_tensors(
    recording: Path, manifest: Manifest, whole: Transcript, plan: Plan, dataset: Dataset
) -> TensorMatch:
    """Find the tensors of the plan's model in all messages.

    Refuse a plan whose model or recipe differs from that of the run: attackers would get wrong
    knowledge.
    """
    model, recipe = plan.training.model, plan.training.recipe
    recipe = replace(recipe, precision="float32")
    # A recorder may state what the algorithm adds to the loss as a part of the recipe.
    known = (recipe, plan.training.algorithm.local_recipe(recipe))
    stated = manifest.recipe
    if stated is not None:  # It does not matter how the computers of the two round.
        stated = replace(stated, precision="float32")
    if stated is not None and dataset.task.has_classes and dataset.task.classes == 2:
        # The loss of a network with one logit is that of one with two classes.
        binary = stated.loss == "binary_cross_entropy"
        stated = replace(stated, loss="cross_entropy") if binary else stated
    if stated is not None and stated not in known:
        raise PlanError(
            f"{recording}: was trained with {manifest.recipe}, the plan says {recipe}: change "
            "[training] of the plan to the recipe of the run"
        )
    build_model = partial(model.build, dataset.task)
    network = model_structure(build_model)
    return match_model_tensors(
        recording,
        whole,
        network,
        manifest.model,
        plan.training.record,
        local_names(plan.training.algorithm, build_model),
        manifest.left_out,
    )


def _check_partition(
    recording: Path, manifest: Manifest, audit_inputs: AuditInputs
) -> DataPartition:
    """Return the plan's partition, after checking that it is that of the run.

    A different partition could give the attacker examples that clients hold. A run that was not
    simulated by Overheard has no digest to compare. Its candidate records must be canaries,
    since the membership of other records is unknown.
    """
    plan = audit_inputs.plan
    if manifest.data:
        committed = count_committed_rounds(recording)
        rounds = committed - 1 if manifest.rounds is None else manifest.rounds
        audit_inputs = audit_inputs.with_rounds(max(rounds, 1))
    partition = audit_inputs.partition(plan.seeds[0])
    if manifest.data:
        _refuse_other_run(recording, manifest, audit_inputs, partition)
    elif (
        partition.candidates is not None
        and partition.canary_odds is None
        and audit_inputs.dataset.listed is None
    ):
        raise PlanError(
            f"{recording}: was not simulated by Overheard, so the members among the records of "
            "data.candidates are unknown: use canaries, which `overheard canaries` draws "
            "before a run, list records whose owners you know (candidates of data.source), or "
            "remove data.candidates"
        )
    return partition


def _refuse_other_run(
    recording: Path, manifest: Manifest, audit_inputs: AuditInputs, partition: DataPartition
) -> None:
    """Refuse a simulated run of another algorithm, sampling, number of epochs or partition."""
    plan = audit_inputs.plan
    planned = build_federation(
        plan,
        next(arm for arm in plan.arms if arm.is_reference),
        plan.seeds[0],
        partition,
        audit_inputs.dataset,
        Resources(device="cpu"),
    )
    distilled = {repr(arm.distillation) for arm in plan.arms if arm.distillation is not None}
    if manifest.protocol not in {planned.protocol, *distilled}:
        raise PlanError(
            f"{recording}: was run with {manifest.protocol}, the plan says "
            f"{planned.protocol}: set training.algorithm, and the sampling and epochs of "
            "clients, to those of the run"
        )
    if manifest.data != data_digest(planned):
        raise PlanError(
            f"{recording}: its clients held other examples than the plan assigns, so an "
            "auxiliary example could be a client's: use the [data] and the seed of the run"
        )


def _recorded_arm(recording: Path, manifest: Manifest, plan: Plan) -> ArmPlan:
    """Return the plan's arm with the recorded defenses, for attackers that know them."""
    recorded_settings = [one.settings for one in manifest.defenses]
    arms = [arm for arm in plan.arms if arm.algorithm is None]
    for arm in arms:
        if [repr(defense) for defense in arm.defenses] == recorded_settings:
            return arm
    if any("defenses" in threat.knows for threat in plan.threats):
        raise PlanError(
            f"{recording}: had the defenses {'; '.join(recorded_settings)}, which an attacker "
            "of the plan knows, but no arm of the plan has them: add an arm with them"
        )
    return next(arm for arm in arms if not arm.defenses)
