"""Runs an audit and writes its report."""

from pathlib import Path

from rich.console import Console

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.cli.progress import progress_bar
from overheard.plans.plan import Plan
from overheard.report.empty_audit import refuse_empty_audit, unmeasured_attacks
from overheard.report.threat_sentences import headlines
from overheard.report.write import write_report


def audit_and_report(
    plan: Plan,
    folder: Path,
    resources: Resources,
    transcript: Path | None,
    rerun: bool,
    quiet: bool,
) -> tuple[str, ...]:
    """Run an audit with its progress, write its report, and return what it found in sentences.

    Raises:
        PlanError: if no attack could be asked anything.

    """
    with progress_bar(Console(stderr=True), quiet) as on_step:
        found = audit(
            plan,
            folder,
            resources=resources,
            recording=transcript,
            on_step=on_step,
            rerun=rerun,
        )
        write_report(found, folder)
    refuse_empty_audit(found)
    return (*headlines(found.arm_results), *unmeasured_attacks(found))
