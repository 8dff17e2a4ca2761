"""The audit loop: arm x seed x threat x attack x targets -> claims, which are then judged."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.reader import open_transcript
from overheard.auditing import runs_ahead
from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import AuditedRun, check_simulated_runs
from overheard.auditing.cells.claim_store import ClaimStore, FolderClaimStore
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import (
    AuditInputs,
    Resources,
    load_inputs,
    refuse_plan_without_split,
)
from overheard.auditing.judging.judge import AttackedRun, AuditSubject, ClaimsOfThreat, judge
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AttackSpec, resolve_plan
from overheard.auditing.progress import OnStep, Progress
from overheard.auditing.recorded_tensors.data_trial import try_data
from overheard.auditing.recorded_truth import compare_counts
from overheard.auditing.recording import (
    CheckedRecording,
    check_recording,
    recording_digest,
)
from overheard.auditing.runs_ahead import attack_ahead
from overheard.core.transcript import Transcript
from overheard.data.dataset import Dataset
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.reading.folder import data_folder
from overheard.data.reading.scales import Scale
from overheard.data.summary import summarise_data
from overheard.disk.digests import is_store_trusted
from overheard.disk.folder_lock import lock_folder
from overheard.findings.audit import Audit
from overheard.learning.threads import one_thread
from overheard.learning.workers import starter
from overheard.plans.description import describe_plan
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plugin_packages

TRUSTED = (
    "Stored files were not compared with their SHA-256 (--trust-store): results may rest on "
    "files that were altered."
)
"""What an audit says that was told to trust what is stored."""


def audit(
    plan: Plan,
    folder: Path,
    *,
    resources: Resources | None = None,
    recording: Path | None = None,
    on_step: OnStep | None = None,
    rerun: bool = False,
) -> Audit:
    """Run every attack of a plan on every run, and judge the claims against the ground truth.

    Claims that the same code has already put into the folder, from the same data, are reused.
    Claims of changed code or data are made anew: see `auditing.program`. Scores and verdicts
    are computed each time, so that a ground truth may be added to a recording, or changed,
    without running an attack again.

    Args:
        plan: what to audit.
        folder: for the transcripts and the results.
        resources: where the data are, and the compute resources.
        recording: folder of a recorded run to audit instead of simulating the plan's
            federations; the plan's data then supply the auxiliary examples. It contains
            `transcript/` and, if claims are to be scored, `truth.json`.
        on_step: called after each finished work item.
        rerun: whether to train runs of the folder anew that other code or data made; otherwise
            they are refused.

    Raises:
        AuditError: a subclass that says what to change; earlier results are preserved. An
            `OutputError` if another audit works in the folder.

    """
    home, packages = AuditFolder(folder), plugin_packages(plan)
    claim = folder_claim(plan, packages, recording)
    # Check everything before anything is written.
    home.check_plan(claim)
    resources = resources or Resources()
    if resources.engine == "auto" and resources.cluster is None:
        starter.start_for(resources.workers, [runs_ahead.__name__])
    audit_inputs = load_inputs(plan, resources, home.tensor_cache(resources.simulation_cache))
    if recording is None:
        return _audit_simulated(audit_inputs, home, claim, on_step, rerun=rerun)
    return _audit_recorded(audit_inputs, home, claim, on_step, recording)


def _audit_simulated(
    audit_inputs: AuditInputs,
    home: AuditFolder,
    claim: str,
    on_step: OnStep | None,
    *,
    rerun: bool,
) -> Audit:
    """Audit the simulated runs of a plan."""
    plan = audit_inputs.plan
    refuse_plan_without_split(plan)
    program = resolve_plan(plan, audit_inputs.data_digests())
    check_simulated_runs(program, audit_inputs, home, rerun=rerun)
    progress = Progress(on_step, len(program))
    with _reserved(home, claim) as store:
        for run in program.runs:
            home.discard_other_origin(run.path_in(home.path), run.origin)
        subject = audit_subject(audit_inputs, describe_plan(plan))
        with closing(attack_ahead(program, audit_inputs, home, progress)) as runs:
            return judge(subject, (attack_run(run, store, progress) for run in runs))


def _audit_recorded(
    audit_inputs: AuditInputs,
    home: AuditFolder,
    claim: str,
    on_step: OnStep | None,
    recording: Path,
) -> Audit:
    """Audit a recorded run."""
    checked = check_recording(audit_inputs.plan, audit_inputs, recording)
    run = checked.open_proven_run()
    progress = Progress(on_step, len(run.observed.spec))
    with _reserved(home, claim) as store:
        subject = recorded_subject(checked, run.observed, checked.describe(run))
        return judge(subject, (attack_run(run, store, progress),))


@contextmanager
def _reserved(home: AuditFolder, claim: str) -> Iterator[ClaimStore]:
    """Hold the folder of an audit while it works, on one thread; give its store of claims."""
    # One thread makes results independent of the number of cores; see `one_thread` for speed.
    with lock_folder(home.path), one_thread():
        home.reserve(claim)
        yield FolderClaimStore(home.cells_path, home.path)


def attack_run(run: AuditedRun, store: ClaimStore, progress: Progress) -> AttackedRun:
    """Return a run with the claims about it; an attack runs when its claims are asked for."""
    return AttackedRun(
        run.record,
        (
            claims_of_threat(run, attacks, store, progress)
            for attacks in run.observed.spec.by_threat()
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class DataFit:
    """What a recording shows of the plan's data: whether scale and order of classes fit.

    Args:
        notes: sentences on what was found.
        warnings: sentences on what does not fit, or is assumed and was not checked.
        fitting_scale: a scale that the plan can set and that fits clearly better; None = none.

    """

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    fitting_scale: Scale | None = None


def check_data(checked: CheckedRecording, transcript: Transcript) -> DataFit:
    """Compare the plan's data with a recording: with what it states, and with its last model.

    Args:
        checked: the recording.
        transcript: its messages, with the tensors of the plan's model only.

    """
    plan, dataset = checked.plan, checked.audit_inputs.dataset
    if not dataset.task.has_classes or isinstance(plan.data.source, NoExamples):
        return DataFit()
    folder = data_folder(checked.audit_inputs.resources.data)
    trial = try_data(plan, dataset, transcript, folder)
    is_stated = checked.manifest.task is not None
    if trial is None:
        why = "The network is not known, so the plan's data could not be tried on it."
        return DataFit((why,), () if is_stated else (_assumed_order(dataset),))
    warnings = list(trial.warnings(dataset))
    if not (is_stated or trial.is_order_seen or trial.order):
        warnings.append(_assumed_order(dataset))
    return DataFit(
        tuple(trial.notes()),
        tuple(warnings),
        trial.fitting_scale if trial.is_setting else None,
    )


def _assumed_order(dataset: Dataset) -> str:
    first, second = map(printable_excerpt, dataset.task.class_names[:2])
    return (
        "The order of the classes is assumed, and could not be checked: output 0 of the "
        f"network is taken for {first!r}, output 1 for {second!r}, and so on. In another "
        "order, claims name wrong classes."
    )


def claims_of_threat(
    run: AuditedRun, attacks: Sequence[AttackSpec], store: ClaimStore, progress: Progress
) -> ClaimsOfThreat:
    """Return the claims of a threat about a run, with the truth; an attack runs when asked.

    Args:
        run: the run.
        attacks: the attacks of the threat.
        store: where claims are kept.
        progress: counts the cells.

    """
    observed = run.observed
    claims = run_attacks(observed, attacks, store, progress)
    truth = run.truth.for_threat(observed, attacks[0].threat)
    return ClaimsOfThreat(observed.spec.rounds, claims, truth)


def audit_subject(audit_inputs: AuditInputs, description: str) -> AuditSubject:
    """Return what is audited, as far as it is not a recording.

    Args:
        audit_inputs: the plan and its data.
        description: one sentence that describes it.

    """
    plan, is_trusted = audit_inputs.plan, is_store_trusted()
    return AuditSubject(
        plan,
        # findings.json has this sentence, and no warnings about data.
        f"{description}; not compared with its SHA-256" if is_trusted else description,
        audit_inputs.dataset.task.class_names,
        data=tuple(summarise_data(audit_inputs.dataset, plan.data.split)),
        data_warnings=(TRUSTED,) if is_trusted else (),
    )


def recorded_subject(
    checked: CheckedRecording, run: ObservedRun, description: str
) -> AuditSubject:
    """Return the recording that is audited, and what it shows of the plan's data.

    Args:
        checked: the recording.
        run: its run as attacks see it.
        description: one sentence that describes it.

    """
    subject = audit_subject(checked.audit_inputs, description)
    fit, counts = check_data(checked, run.transcript), tuple[str, ...]()
    is_external = not checked.manifest.data
    if is_external:
        counts = compare_counts(checked.folder, open_transcript(checked.folder))
    return replace(
        subject,
        is_recorded=True,
        is_auxiliary_separate=not is_external,
        data=(*subject.data, *fit.notes),
        data_warnings=(*fit.warnings, *counts, *subject.data_warnings),
        recording=run.recording,
    )


def folder_claim(plan: Plan, packages: Mapping[str, str], recording: Path | None) -> str:
    """Return the text that says to whom an audit's folder belongs.

    Args:
        plan: the plan of the audit.
        packages: the versions of the packages whose plugins it uses, by name.
        recording: the folder of the recording; None = the runs are simulated.

    """
    source = "" if recording is None else f"# recording {recording_digest(recording)}\n"
    others = "".join(f"# {name} {number}\n" for name, number in packages.items())
    return (
        f"# overheard {version('overheard')}\n{others}{source}{plan.without_release().toml()}"
    )
