"""The audit loop: arm x seed x threat x attack x targets -> claims, which are then judged."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path

from overheard.auditing import runs_ahead
from overheard.auditing.attacked_run import attack_run
from overheard.auditing.audited_run import check_simulated_runs
from overheard.auditing.cells.claim_store import ClaimStore, FolderClaimStore
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import (
    AuditInputs,
    Resources,
    load_inputs,
    refuse_plan_without_split,
)
from overheard.auditing.judging.judge import judge
from overheard.auditing.program import resolve_plan
from overheard.auditing.progress import OnStep, Progress
from overheard.auditing.recording import (
    check_recording,
    recording_digest,
)
from overheard.auditing.rounding import measure_rounding
from overheard.auditing.runs_ahead import attack_ahead
from overheard.auditing.subject import audit_subject, recorded_subject
from overheard.disk.folder_lock import lock_folder
from overheard.findings.audit import Audit
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.learning.workers import starter
from overheard.plans.description import describe_plan
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plugin_packages


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
    home, claim = AuditFolder(folder), folder_claim(plan, recording)
    # Check everything before anything is written.
    home.check_plan(claim)
    if recording is None:
        refuse_plan_without_split(plan)
    resources = resources or Resources()
    if resources.engine == "auto" and resources.cluster is None:
        starter.start_for(resources.workers, [runs_ahead.__name__])
    audit_inputs = load_inputs(plan, resources, home.tensor_cache(resources.simulation_cache))
    digests = audit_inputs.data_digests()
    if recording is not None:
        return _audit_recorded(audit_inputs, home, claim, on_step, recording)
    program = resolve_plan(plan, digests)
    check_simulated_runs(program, audit_inputs, home, rerun=rerun)
    progress = Progress(on_step, len(program))
    with _reserved(home, claim) as store:
        for run in program.runs:
            home.discard_other_origin(run.path_in(home.path), run.origin)
        rounding = measure_rounding(audit_inputs)
        description = describe_plan(plan) + (f"; {rounding}" if rounding is not None else "")
        subject = audit_subject(audit_inputs, description)
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
    run = checked.with_criticisms(checked.open_proven_run())
    progress = Progress(on_step, len(run.observed.spec))
    with _reserved(home, claim) as store:
        subject = recorded_subject(checked, run, checked.describe(run))
        return judge(subject, (attack_run(run, store, progress),))


@contextmanager
def _reserved(home: AuditFolder, claim: str) -> Iterator[ClaimStore]:
    """Hold the folder of an audit while it works, on one thread; give its store of claims."""
    # One thread makes results independent of the number of cores; see `single_thread` for
    # speed. Of the precisions of a GPU, float32 is the only one with a CPU's results.
    with lock_folder(home.path), single_thread(), computing("float32"):
        home.reserve(claim)
        yield FolderClaimStore(home.cells_path, home.path)


def folder_claim(plan: Plan, recording: Path | None) -> str:
    """Return the text that says to whom an audit's folder belongs.

    Args:
        plan: the plan of the audit.
        recording: the folder of the recording; None = the runs are simulated.

    """
    source = "" if recording is None else f"# recording {recording_digest(recording)}\n"
    others = "".join(f"# {name} {number}\n" for name, number in plugin_packages(plan).items())
    return (
        f"# overheard {version('overheard')}\n{others}{source}{plan.without_release().toml()}"
    )
