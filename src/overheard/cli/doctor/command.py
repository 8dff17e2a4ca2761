"""The command `doctor`: checks the differential privacy of a plan, a recording or an app."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.exits import UsageError
from overheard.cli.options import JsonOption, NoCodeOption, QuietOption
from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.doctor.criticism import Diagnosis, Severity

STYLES: "dict[Severity, str]" = {
    "critical": "bold red",
    "theoretical": "yellow",
    "negligible": "dim",
}

ClientOption = Annotated[
    str, typer.Option("--client", help="With --prove: its client, as 'package.module:name'.")
]
ModelOption = Annotated[
    str, typer.Option("--model", help="With --prove: what makes its model, likewise.")
]
LoaderOption = Annotated[
    str, typer.Option("--loader", help="With --prove: what loads a client's data, likewise.")
]
ClipOption = Annotated[
    float | None,
    typer.Option("--clip", help="With --prove: its clip, where the app has none to read."),
]
NoiseOption = Annotated[
    float | None,
    typer.Option("--noise-multiplier", help="With --prove: its noise in clips, likewise."),
]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", help="Write the faults to this file as SARIF 2.1.0.")
]
JunitOption = Annotated[
    Path | None,
    typer.Option("--junit", help="Write the result of each rule to this file as JUnit XML."),
]


@dataclass(frozen=True, slots=True)
class ProvenApp:
    """What the command line states of an app to prove; empty = it is read from the app."""

    client: str = ""
    model: str = ""
    loader: str = ""
    clip: float | None = None
    noise_multiplier: float | None = None


def doctor(
    target: Annotated[
        Path,
        typer.Argument(
            help="A plan (.toml), the folder of a recording, or an app (.py file or folder)."
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", help="A plan that states more of a recording, in its table 'recording'."
        ),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Run the app's own training many times, with and without one record, and "
            "compare. The app's code is imported and can do all that you can.",
        ),
    ] = False,
    client: ClientOption = "",
    model: ModelOption = "",
    loader: LoaderOption = "",
    clip: ClipOption = None,
    noise_multiplier: NoiseOption = None,
    sarif: SarifOption = None,
    junit: JunitOption = None,
    json: JsonOption = False,
    _no_code: NoCodeOption = False,
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
      overheard doctor my_app --prove

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.disk.writing import write_text
    from overheard.doctor.diagnosis_formats import as_json, as_junit, as_sarif

    proven = ProvenApp(client, model, loader, clip, noise_multiplier)
    if not prove and proven != ProvenApp():
        raise UsageError(
            "--client, --model, --loader, --clip and --noise-multiplier belong to --prove."
        )
    if not all(one is None or 0 < one < inf for one in (clip, noise_multiplier)):
        raise UsageError("--clip and --noise-multiplier must be above 0.")
    found = _diagnose(target, plan, proven if prove else None)
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


def _diagnose(target: Path, plan: Path | None, proven: ProvenApp | None) -> "Diagnosis":
    """Return what rules find in a plan, a recording or an app.

    Args:
        target: where it is.
        plan: that states more of a recording.
        proven: what is known of an app to prove; None = no proof.

    """
    if _is_stated(target):
        if proven is not None:
            raise UsageError("--prove runs an app: give its folder or its .py file.")
        return _diagnose_stated(target, plan)
    if plan is not None:
        raise UsageError("--plan states more of a recording: give the folder of one.")
    return _diagnose_app(target, proven)


def _is_stated(target: Path) -> bool:
    """Return whether a target is a plan or a recording, and not an app."""
    from overheard.archive.layout import manifest_path, path_exists, transcript_folder

    is_plan = target.suffix == ".toml"
    return is_plan or (
        target.is_dir() and path_exists(manifest_path(transcript_folder(target)))
    )


def _diagnose_stated(target: Path, plan: Path | None) -> "Diagnosis":
    """Look at a plan or a recording."""
    from overheard.auditing.doctor_targets import plan_evidence, recording_evidence
    from overheard.cli.plan_code import print_code
    from overheard.doctor.recorded.diagnose import diagnose_runs
    from overheard.plans.plan import read_plan

    if target.suffix != ".toml":
        stated = None if plan is None else read_plan(plan)
        return diagnose_runs([recording_evidence(target, stated)])
    if plan is not None:
        raise UsageError("--plan states more of a recording: give the folder of one.")
    read = read_plan(target)
    print_code(read, Console(stderr=True))
    return diagnose_runs(plan_evidence(read))


def _diagnose_app(target: Path, proven: ProvenApp | None) -> "Diagnosis":
    """Look at the source of an app.

    Args:
        target: its folder, or a file.
        proven: what is known of it, to prove it as well; None = do not run it.

    """
    from overheard.doctor.criticism import join_diagnoses
    from overheard.doctor.source.diagnose import diagnose_source

    found = diagnose_source(target)
    if proven is None:
        return found
    from overheard.doctor.replay.app import describe_code, find_code, prove_app
    from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim

    code = find_code(target, model=proven.model, data=proven.loader, client=proven.client)
    given = proven.clip, proven.noise_multiplier
    stated = (
        NOTHING_STATED if given == (None, None) else StatedClaim(*given, "the command line")
    )
    console = Console(stderr=True, highlight=False)
    console.print(escaped_text(describe_code(code)), soft_wrap=True)
    return join_diagnoses([found, prove_app(code, stated)])


def print_diagnosis(found: "Diagnosis", console: Console) -> None:
    """Print each fault with its evidence, then what passed and what was not seen."""
    from overheard.doctor.criticism import SEVERITIES

    for one in found.criticisms:
        rule = one.rule
        head = escaped_text(f"{rule.severity}: {rule.title}")
        head.stylize(STYLES[rule.severity])
        console.print(head.append_text(escaped_text(f" [{rule.id}]")), soft_wrap=True)
        for name, text in (
            ("where", one.where),
            ("what", one.what),
            ("evidence", one.evidence),
            ("mend", rule.mend),
            ("see", rule.reference),
        ):
            console.print(_line(f"  {name}: {text}"), soft_wrap=True)
    for note in found.notes:
        console.print(_line(note), soft_wrap=True)
    if found.passed:
        names = ", ".join(rule.id for rule in found.passed)
        console.print(escaped_text(f"No fault by: {names}"), soft_wrap=True)
    for unseen in found.unseen:
        console.print(_line(f"Not seen, {unseen.rule.id}: {unseen.why}"), soft_wrap=True)
    counts = ", ".join(
        f"{sum(one.rule.severity == severity for one in found.criticisms)} {severity}"
        for severity in SEVERITIES
    )
    console.print(escaped_text(f"Faults: {counts}."))


def _line(text: str) -> Text:
    """Return one line: a break in the name of a file could forge a line of the diagnosis."""
    from overheard.findings.names import make_printable

    return escaped_text(make_printable(text))
