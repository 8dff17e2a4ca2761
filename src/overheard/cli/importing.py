"""Imports a folder of weights and prints a summary."""

from pathlib import Path

from rich.console import Console

from overheard.auditing.progress import ProgressStep
from overheard.cli.progress import progress_bar
from overheard.cli.terminal import escaped_text
from overheard.recorders.exports.reply_content import ImportOptions
from overheard.recorders.folder_import import ImportSummary, import_recording


def import_and_report(
    folder: Path,
    out: Path,
    options: ImportOptions,
    *,
    console: Console,
    errors: Console,
    quiet: bool,
) -> None:
    """Import with a progress bar on `errors`; unless `quiet`, print a summary to `console`.

    If the recording contradicts itself, it stays as it is, and `errors` says so.
    """
    with progress_bar(errors, quiet) as on_step:
        imported = import_recording(
            folder,
            out,
            kind=options.kind,
            rate=options.rate,
            saved=options.saved,
            on_progress=lambda name, done, total: on_step(ProgressStep(name, done, total)),
        )
    if not quiet:
        for line in _summary_lines(imported, out):
            console.print(escaped_text(line), soft_wrap=True)
    if imported.proof.outcome == "contradicts":
        first, *others = imported.proof.sentences
        for line in (f"Warning: {first}", *others):
            errors.print(escaped_text(line), soft_wrap=True)


def _summary_lines(imported: ImportSummary, out: Path) -> list[str]:
    replies = imported.updates + imported.missing
    lines = [
        f"{imported.rounds} rounds of {imported.clients} clients: {imported.updates} updates, "
        f"{imported.missing} missing updates."
        if replies
        else f"{imported.rounds} rounds without an update of a client."
    ]
    if imported.left_out:
        lines.append(
            f"{len(imported.left_out)} tensors per model were left out, since they are not "
            "parameters."
        )
    lines.extend(imported.notes)
    if imported.proof.outcome != "contradicts" and replies:
        lines.append(imported.proof.finding)
    return [*lines, f"The run: {out}", f"Next step: overheard show {out}"]
