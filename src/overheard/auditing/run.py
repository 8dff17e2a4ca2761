"""The audit loop: arm x seed x threat x attack x targets -> findings | refusals."""

import platform
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from overheard.archive.folder_lock import lock_folder
from overheard.archive.manifest import read_manifest
from overheard.archive.tensor_cache import FolderTensorCache
from overheard.auditing import runs_ahead
from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import discard_other_code, prepare_simulated_runs
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_inputs
from overheard.auditing.progress import OnStep, Progress
from overheard.auditing.recording import prepare_recorded_runs, recording_digest
from overheard.auditing.runs_ahead import attack_ahead
from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun
from overheard.findings.result_cache import CellResult, ResultCache
from overheard.learning.threads import one_thread
from overheard.learning.workers import starter
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plugin_packages
from overheard.plans.release_plan import ReleasePlan

PACKAGES = ("overheard", "torch", "numpy", "scipy", "scikit-learn", "safetensors")


def audit(
    plan: Plan,
    folder: Path,
    *,
    resources: Resources | None = None,
    recording: Path | None = None,
    on_step: OnStep | None = None,
    rerun: bool = False,
) -> Audit:
    """Run every attack of a plan on every run, and score the claims against the ground truth.

    Results that the same code has already put into the folder are reused. Results of changed
    code are computed anew: see `plans.source_code`.

    Args:
        plan: what to audit.
        folder: for the transcripts and the results.
        resources: where the data are, and the compute resources.
        recording: folder of a recorded run to audit instead of simulating the plan's
            federations; the plan's data then supply the auxiliary examples. It contains
            `transcript/` and, if claims are to be scored, `truth.json`.
        on_step: called after each finished work item.
        rerun: whether to train runs of the folder anew that other code made; otherwise they are
            refused.

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
    audit_inputs = load_inputs(
        plan, resources, FolderTensorCache(resources.simulation_cache or home.simulation_path)
    )
    progress = Progress(on_step)
    if recording is None:
        runs = prepare_simulated_runs(plan, audit_inputs, home, progress, rerun=rerun)
    else:
        runs = prepare_recorded_runs(plan, audit_inputs, recording, progress)
    store, records, results = ResultCache(home.cells_path), list[ArmRun](), list[CellResult]()
    # One thread makes results independent of the number of cores; see `one_thread` for speed.
    with lock_folder(folder), one_thread():
        home.reserve(claim)
        audited = runs.runs
        if recording is None:
            discard_other_code(plan, home)
            audited = attack_ahead(audited, audit_inputs, home, progress)
        for run in audited:
            records.append(run.with_complete_record().record)
            for threat in runs.threats:
                results.extend(run_attacks(plan, run, threat, store, progress))
    class_names = audit_inputs.dataset.task.class_names
    return collect_audit(plan, runs.subject, class_names, records, results, recording)


def collect_audit(
    plan: Plan,
    subject: str,
    class_names: tuple[str, ...],
    runs: Sequence[ArmRun],
    results: Sequence[CellResult],
    recording: Path | None,
) -> Audit:
    """Return the results of an audit as one object, judged, with the versions of the software.

    Args:
        plan: the plan.
        subject: one sentence that describes what was audited.
        class_names: the names of the classes.
        runs: the runs that were attacked.
        results: the results of all cells.
        recording: the folder of the recording; None = the runs were simulated.

    """
    audit = Audit(
        title=plan.title,
        subject=subject,
        class_names=class_names,
        arms=tuple(runs),
        findings=tuple(finding for result in results for finding in result.findings),
        refusals=tuple(refusal for result in results for refusal in result.refusals),
        plan=plan.toml(),
        margins=plan.margins,
        release=plan.release.model_dump(exclude_none=True),
        made_on=date.today().isoformat(),
        is_recorded=recording is not None,
        is_auxiliary_separate=recording is None or bool(read_manifest(recording).data),
        versions={name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()}
        | dict(plugin_packages(plan)),
    )
    return with_verdicts(audit)


def folder_claim(plan: Plan, packages: Mapping[str, str], recording: Path | None) -> str:
    """Return the text that says to whom an audit's folder belongs.

    Args:
        plan: the plan of the audit.
        packages: the versions of the packages whose plugins it uses, by name.
        recording: the folder of the recording; None = the runs are simulated.

    """
    source = "" if recording is None else f"# recording {recording_digest(recording)}\n"
    others = "".join(f"# {name} {number}\n" for name, number in packages.items())
    # The same results may be released anew, to somebody else.
    unreleased = plan.model_copy(update={"release": ReleasePlan()})
    return f"# overheard {version('overheard')}\n{others}{source}{unreleased.toml()}"
