"""Runs an audit and writes its report, and says which verdicts and attacks are missing."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from overheard.archive.reader import open_transcript
from overheard.archive.truth import has_truth
from overheard.auditing.inputs import Resources, load_data
from overheard.auditing.judging.record_difference import measure_record_difference
from overheard.auditing.run import audit
from overheard.cli.progress import progress_bar
from overheard.cli.summary.print_summary import AuditSummary
from overheard.cli.terminal import escaped_text
from overheard.consistency.proof import Reason
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER, is_shadow_device
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import Refusal
from overheard.findings.names import make_printable
from overheard.learning.devices.choice import forget_parts, sentence_on_devices
from overheard.plans.plan import Plan
from overheard.plans.planned_verdicts import (
    NO_TRUTH,
    TRUTH_OF_LIST,
    describe_missing_verdicts,
    describe_unlike_records,
)
from overheard.report.first_page.first_lines import first_lines
from overheard.report.pictures import PICTURES_FILE
from overheard.report.refusals import failure_sentences
from overheard.report.verdict_sentences import false_leak_sentences
from overheard.report.write import write_report

ACCEPT = (
    "\nIf you know that the recording is right nevertheless, state why in the plan: "
    '[recording] accept = "..."'
)
"""What to do about a recording that seems to contradict itself."""

MAX_REASONS = 5
"""Most reasons that are listed; of more their number is given."""


def audit_and_report(
    plan: Plan,
    folder: Path,
    resources: Resources,
    transcript: Path | None,
    rerun: bool,
    quiet: bool,
) -> AuditSummary:
    """Run an audit with its progress, write its report, and return what the terminal says.

    Raises:
        PlanError: if no attack could be asked anything.

    """
    forget_parts()
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
    pictures = folder / PICTURES_FILE
    recording, first = found.recording, first_lines(found)
    devices = None if resources.device == "cpu" else sentence_on_devices()
    proven = () if recording is None else recording.sentences
    return AuditSummary(
        first,
        found.arm_results,
        (
            *(one for one in map(make_printable, proven) if one not in first),
            *false_leak_sentences(found.arm_results),
            *found.data_warnings,
            *unmeasured_attacks(found),
            *failure_sentences(found.refusals),
            *found.data,
            *((devices,) if devices is not None else ()),
            *(
                (f"Pictures, as sensitive as the data: {pictures}",)
                if pictures.exists()
                else ()
            ),
        ),
    )


def print_missing_verdicts(
    plan: Plan, recording: Path | None, console: Console, resources: Resources | None = None
) -> None:
    """Print a sentence for each verdict that the plan's clients and seeds are too few for.

    So is one on listed records that differ by themselves, which takes seconds to find out.

    Args:
        plan: the plan to audit.
        recording: folder of the recorded run; None = a simulation.
        console: where to print.
        resources: where the data are.

    Raises:
        DataError: if the data cannot be read.
        TranscriptError: if the recording is damaged.

    """
    clients = None
    if recording is not None and plan.data.lists_records:
        dataset = load_data(plan, resources or Resources())
        assert dataset.listed is not None
        difference = measure_record_difference(dataset.listed, dataset.task)
        for text in describe_unlike_records(plan, difference):
            console.print(escaped_text(text), soft_wrap=True)
    if recording is not None and not has_truth(recording):
        text = TRUTH_OF_LIST if plan.data.lists_records else NO_TRUTH
        console.print(text, soft_wrap=True)
        return
    if recording is not None:
        parties = open_transcript(recording).parties()
        clients = sum(one != SERVER and not is_shadow_device(one) for one in parties)
    for sentence in describe_missing_verdicts(plan, clients):
        console.print(escaped_text(sentence), soft_wrap=True)


def refuse_empty_audit(audit: Audit) -> None:
    """Check that at least one attack made a claim; otherwise nothing was measured.

    Raises:
        PlanError: if none did; it says what the attacks lacked and what to change.
        RuntimeError: if none did since Overheard failed.

    """
    if audit.findings:
        return
    proven = audit.recording
    if proven is not None and any(map(proven.refusal, proven.reads)):
        raise PlanError("\n".join(("nothing was measured:", *proven.sentences)) + ACCEPT)
    failed = [one for one in audit.refusals if one.kind == "failed"]
    if failed:
        raise RuntimeError("nothing was measured:\n" + "\n".join(_reasons(failed)))
    if not audit.refusals and proven is not None and _has_no_updates(proven):
        raise PlanError(
            "nothing was measured: the recording has no update of a client. If it has several "
            "global models, a client that receives them reads the mean of all updates: "
            "`overheard init --from-recording` writes a plan that asks about it"
        )
    if not audit.refusals:
        raise PlanError(
            "nothing was measured: no client is left to ask about. Clients that observe are no "
            'targets: remove some from threats.observers, or set about = "cohort"'
        )
    raise PlanError(
        "nothing was measured: no attack could be asked. What was missing:\n"
        + "\n".join(_reasons(audit.refusals))
        + "\nGrant in threats.knows what they need, observe other parties, or choose other "
        "attacks: `overheard list attacks` says what each needs."
    )


def _has_no_updates(recording: AuditedRecording) -> bool:
    return recording.proof is not None and recording.proof.reason is Reason.NO_UPDATES


def unmeasured_attacks(audit: Audit) -> tuple[str, ...]:
    """Return a line for each attack that made no claim in any arm, with the reasons."""
    answered = {one.cell.attack for one in audit.findings}
    never = [one for one in audit.refusals if one.cell.attack not in answered]
    return tuple(f"Not measured: {line.strip()}" for line in _reasons(never))


def _reasons(refusals: Sequence[Refusal]) -> list[str]:
    lines = dict.fromkeys(
        f"  {make_printable(one.cell.label or one.cell.attack)}: "
        + "; ".join(map(make_printable, one.missing))
        for one in refusals
        if not one.cell.is_control
    )
    listed = list(lines)
    more = len(listed) - MAX_REASONS
    return [*listed[:MAX_REASONS], f"  and {more} more"] if more > 0 else listed
