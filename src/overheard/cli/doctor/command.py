"""The command `doctor`: checks the differential privacy of a plan, a recording or an app."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from overheard.cli.exits import UsageError
from overheard.cli.options import JsonOption, QuietOption
from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.doctor.criticism import Diagnosis, Severity

STYLES: "dict[Severity, str]" = {
    "critical": "bold red",
    "theoretical": "yellow",
    "negligible": "dim",
}


def doctor(
    target: Annotated[
        Path,
        typer.Argument(
            help="A plan (.toml), the folder of a recording, or an app (.py file or folder)."
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="A plan that states more of a recording in [recording]."),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Run the app's own training twice, with and without one record, and compare. "
            "The app's code is imported and can do all that you can.",
        ),
    ] = False,
    sarif: Annotated[
        Path | None,
        typer.Option("--sarif", help="Write the faults to this file as SARIF 2.1.0."),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", help="Write the result of each rule to this file as JUnit XML."
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what is wrong with the differential privacy of a run, with evidence.

    Each rule has a severity. Critical: the released outputs do not satisfy the
    claim. Theoretical: only a largely theoretical attacker profits. Negligible:
    the claim becomes weaker by a bounded, small amount. Only critical faults
    are alarms. Rules that could not look say why.

    Source code is read, and runs only with --prove.

    \b
    Exit codes:
      0  no critical fault was found
      1  there is a critical fault
      2  an input is invalid

    \b
    Examples:
      overheard doctor plan.toml
      overheard doctor recordings/march
      overheard doctor recordings/march --plan plan.toml --json
      overheard doctor my_app/client_app.py --sarif doctor.sarif

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.disk.writing import write_text
    from overheard.doctor.diagnosis_formats import as_json, as_junit, as_sarif

    found = _diagnose(target, plan, prove=prove)
    code = 1 if found.alarms else 0
    for file, text in (
        (sarif, None if sarif is None else as_sarif(found, str(target))),
        (junit, None if junit is None else as_junit(found, str(target))),
    ):
        if file is not None and text is not None:
            write_text(file, text, inside=file.parent, is_private=False)
    if json:
        typer.echo(as_json(found, str(target), code), nl=False)
    elif not quiet:
        print_diagnosis(found, Console(highlight=False))
    raise typer.Exit(code)


def _diagnose(target: Path, plan: Path | None, *, prove: bool) -> "Diagnosis":
    """Look at what the target is."""
    from overheard.archive.layout import manifest_path, path_exists, transcript_folder

    if target.suffix == ".toml":
        from overheard.auditing.doctor_targets import plan_evidence
        from overheard.cli.plan_code import print_code
        from overheard.doctor.recorded.diagnose import diagnose_runs
        from overheard.plans.plan import read_plan

        _refuse_options(plan is not None, prove)
        read = read_plan(target)
        print_code(read, Console(stderr=True))
        return diagnose_runs(plan_evidence(read))
    if target.is_dir() and path_exists(manifest_path(transcript_folder(target))):
        from overheard.auditing.doctor_targets import recording_evidence
        from overheard.doctor.recorded.diagnose import diagnose_runs
        from overheard.plans.plan import read_plan

        _refuse_options(is_plan_given=False, prove=prove)
        stated = None if plan is None else read_plan(plan)
        return diagnose_runs([recording_evidence(target, stated)])
    from overheard.doctor.source.diagnose import diagnose_source

    _refuse_options(plan is not None, prove=False)
    if prove:
        raise UsageError("--prove is not built yet.")
    return diagnose_source(target)


def _refuse_options(is_plan_given: bool, prove: bool) -> None:
    if is_plan_given:
        raise UsageError("--plan states more of a recording: give the folder of one.")
    if prove:
        raise UsageError("--prove runs an app: give its folder or its .py file.")


def print_diagnosis(found: "Diagnosis", console: Console) -> None:
    """Print each fault with its evidence, then what passed and what was not seen."""
    from overheard.doctor.criticism import SEVERITIES

    for one in found.criticisms:
        rule = one.rule
        head = escaped_text(f"{rule.severity}: {rule.title}")
        head.stylize(STYLES[rule.severity])
        console.print(head.append_text(escaped_text(f" [{rule.id}]")))
        for name, text in (
            ("where", one.where),
            ("what", one.what),
            ("evidence", one.evidence),
            ("mend", rule.mend),
            ("see", rule.reference),
        ):
            console.print(escaped_text(f"  {name}: {text}"), soft_wrap=True)
    for note in found.notes:
        console.print(escaped_text(note), soft_wrap=True)
    if found.passed:
        names = ", ".join(rule.id for rule in found.passed)
        console.print(escaped_text(f"No fault by: {names}"), soft_wrap=True)
    for unseen in found.unseen:
        console.print(escaped_text(f"Not seen, {unseen.rule.id}: {unseen.why}"), soft_wrap=True)
    counts = ", ".join(
        f"{sum(one.rule.severity == severity for one in found.criticisms)} {severity}"
        for severity in SEVERITIES
    )
    console.print(escaped_text(f"Faults: {counts}."))
