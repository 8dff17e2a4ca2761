"""A run recorded elsewhere, held against the plan by which it is to be audited."""

from functools import partial
from hashlib import blake2b
from pathlib import Path

from overheard.archive.layout import (
    committed_rounds,
    manifest_path,
    messages_path,
    read_inside,
    transcript_folder,
    truth_path,
)
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.truth import has_truth, read_truth
from overheard.archive.weights import shapes_of
from overheard.auditing.chosen import chosen
from overheard.auditing.heard import AuditedRuns, Heard
from overheard.auditing.knowledge import knowledge_of
from overheard.auditing.progress import Progress
from overheard.auditing.record import recorded_defenses, run_record
from overheard.auditing.recorded_truth import recorded_truth
from overheard.auditing.simulate import federation_of
from overheard.auditing.supplies import Resources, Supplies, deal_examples
from overheard.auditing.work import cells, refuse_strangers
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Update
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import NO_TRUTH
from overheard.data.dataset import Dataset
from overheard.data.partition.deal import Deal
from overheard.federation.digest import data_digest
from overheard.findings.finding import ArmRun
from overheard.learning.initial import initial_weights
from overheard.plans.plan import ArmPlan, Plan
from overheard.plans.subject import subject_of_recording

RECORDED = "recorded"
"""Name of the one arm of an audit of a recorded run."""


def recorded_runs(
    plan: Plan, supplies: Supplies, recording: Path, progress: Progress
) -> AuditedRuns:
    """Open the one run of a recording. Raises as `recorded`."""
    run = recorded(plan, supplies, recording)
    parties = run.transcript.parties()
    refuse_strangers(plan, parties)
    progress.expect(cells(plan, len(run.rounds), is_control=False))
    manifest = read_manifest(recording)
    subject = subject_of_recording(plan, manifest, len(parties), len(run.rounds))
    return AuditedRuns(subject, iter((run,)))


def recorded(plan: Plan, supplies: Supplies, recording: Path) -> Heard:
    """Open a recorded run: `transcript/` and, where it was not kept back, `truth.json`.

    Of tensors that the plan's model does not have as parameters, such as the running means of a
    batch normalisation, no attack is told; they count as traffic.

    Raises:
        PlanError: if the plan's data, deal, model, recipe or defenses are not those of the run,
            or it asks about records that nobody put into it.
        TranscriptError: if it is damaged, or its truth lacks who sent something.

    """
    manifest, dataset = read_manifest(recording), supplies.dataset
    whole = open_transcript(recording)
    _refuse_other_data(recording, manifest, dataset)
    transcript = _of_the_model(recording, manifest, whole, plan, dataset)
    dealt = _dealt(recording, manifest, transcript, supplies)
    truth = recorded_truth(
        recording, transcript, dataset.task.classes, dealt, is_elsewhere=not manifest.data
    )
    seed, arm = plan.seeds[0], _arm_in_force(recording, manifest, plan)
    rounds = _rounds_answered(transcript)
    record = ArmRun(
        RECORDED,
        seed,
        recorded_defenses(manifest, len(rounds)),
        (truth or NO_TRUTH).accuracy,
        missing=0,
        answers=0,
        has_truth=truth is not None,
    )
    return Heard(
        run_record(plan, record, dataset, dealt, whole, transcript),
        transcript,
        truth,
        rounds,
        partial(knowledge_of, arm, seed, supplies),
        arm,
    )


def identity(recording: Path) -> str:
    """A short text that differs where anything that was recorded differs.

    Raises:
        TranscriptError: if the recording cannot be read.

    """
    transcript = transcript_folder(recording)
    read_manifest(recording)
    digest = blake2b(read_inside(manifest_path(transcript), transcript), digest_size=12)
    # Each message stands there with the digest of its weights.
    for number in range(committed_rounds(recording)):
        digest.update(read_inside(messages_path(transcript, number), transcript))
    if has_truth(recording):
        read_truth(recording)
        digest.update(truth_path(recording).read_bytes())
    return digest.hexdigest()


def _refuse_other_data(recording: Path, manifest: Manifest, dataset: Dataset) -> None:
    there, here = manifest.task, dataset.task
    if there is None:
        return
    if there.class_names != here.class_names:
        raise PlanError(
            f"{recording}: has the classes {', '.join(there.class_names)}, the plan's "
            f"data {', '.join(here.class_names)}: name the data the run was about"
        )
    if there.shape != here.shape:
        raise PlanError(
            f"{recording}: is about examples of shape {there.shape}, the plan's data have "
            f"{here.shape}: name the data the run was about"
        )


def _rounds_answered(transcript: Transcript) -> tuple[int, ...]:
    """The rounds in which some client said what it learned, in order."""
    told = (Update, DistilledSet, Aggregate)
    return tuple(sorted({m.round for m in transcript.messages if isinstance(m.body, told)}))


def _of_the_model(
    recording: Path, manifest: Manifest, whole: Transcript, plan: Plan, dataset: Dataset
) -> Transcript:
    """The transcript as far as it tells of the parameters of the plan's model.

    An attacker that is told another model or recipe would be told a falsehood.
    """
    model, recipe = plan.training.model, plan.training.recipe
    if manifest.recipe is not None and manifest.recipe != recipe:
        raise PlanError(
            f"{recording}: trained by {manifest.recipe}, the plan by {recipe}: make the plan's "
            "[training] say what was run"
        )
    here = shapes_of(initial_weights(partial(model.build, dataset.task), Seed(0)))
    for message in whole.messages:
        if not isinstance(message.body, Broadcast):
            continue
        there = shapes_of(message.body.weights)
        if any(there.get(name) != shape for name, shape in here.items()):
            known = manifest.model or "which it does not tell"
            raise PlanError(
                f"{recording}: broadcast the weights {there}, the plan's training.model has "
                f"{here}: name the model of the run, {known}"
            )
    return Transcript(tuple(chosen(message, tuple(here)) for message in whole.messages))


def _dealt(
    recording: Path, manifest: Manifest, transcript: Transcript, supplies: Supplies
) -> Deal:
    """Who gets which examples by the plan.

    Another deal than that of the run could give the attacker one of the clients' own examples.
    Of a run that was not simulated here there is no digest to compare: its user alone knows,
    and nobody knows what the plan's records are to it, but canaries, which were put in before.
    """
    plan, dataset = supplies.plan, supplies.dataset
    seed = plan.seeds[0]
    if not manifest.data:
        dealt = supplies.partition(seed)
        if dealt.candidates is not None and dealt.canary_odds is None:
            raise PlanError(
                f"{recording}: was not simulated here, and nobody knows who held the records "
                "of data.candidates: ask about canaries, which `overheard canaries` draws "
                "before a run, or leave data.candidates out"
            )
        return dealt
    rounds = max((message.round for message in transcript.messages), default=0) or 1
    training = plan.training.model_copy(update={"rounds": rounds})
    same, here = plan.model_copy(update={"training": training}), Resources(device="cpu")
    dealt = deal_examples(same, dataset, seed)
    planned = federation_of(same, plan.arms[0], seed, dealt, dataset.task, here)
    if manifest.data != data_digest(planned):
        raise PlanError(
            f"{recording}: its clients held other examples than the plan deals, so that an "
            "auxiliary example could be a client's: take the [data] and the seed of the run"
        )
    return dealt


def _arm_in_force(recording: Path, manifest: Manifest, plan: Plan) -> ArmPlan:
    """The plan's arm with the defenses of the recording, for attackers who know them."""
    there = [one.settings for one in manifest.defenses]
    for arm in plan.arms:
        if [repr(defense) for defense in arm.defenses] == there:
            return arm
    if any("defenses" in threat.knows for threat in plan.threats):
        raise PlanError(
            f"{recording}: had the defenses {'; '.join(there)}, which an attacker of the plan "
            "knows, and no arm of the plan has them: add one that does"
        )
    return next(arm for arm in plan.arms if not arm.defenses)
