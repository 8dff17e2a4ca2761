"""The command `review`: reads an app before anybody runs it."""

import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from overheard.cli.exits import UsageError
from overheard.cli.options import JsonOption, NoCodeOption, QuietOption

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.doctor.source.files import AppFiles
    from overheard.report.review.page import Review, ShownRun

ClientsOption = Annotated[
    int | None,
    typer.Option(
        "--clients",
        min=1,
        max=10_000,
        help="With --run: number of clients. Default: as the app states, or 10.",
    ),
]
SecondsOption = Annotated[
    int | None,
    typer.Option(
        "--seconds",
        min=1,
        help="With --run: after how many seconds it is ended; recorded rounds stay. "
        "Default: 600.",
    ),
]
RecordingOption = Annotated[
    Path | None,
    typer.Option(
        "--recording",
        help="With --run: folder of the recording. Default: NAME-recording beside the page.",
    ),
]


def review(
    app: Annotated[
        Path,
        typer.Argument(help="The folder of an app, or its .py file. It is read."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The page to write, to put beside a signature."),
    ] = Path("review.html"),
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Also run the app in a simulation, and say what its recording shows. Its code "
            "can do all that you can: it says which code that is, and asks first.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --run: run without asking.")] = False,
    clients: ClientsOption = None,
    seconds: SecondsOption = None,
    recording: RecordingOption = None,
    _no_code: NoCodeOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read the source of an app, and say what it states and what is wrong in it.

    Writes one HTML page: known faults of differential privacy, each with its
    line; what clients send, the strategy, rounds, secure aggregation and
    frameworks; and what could not be seen. The app is read, and runs only
    with --run: a Flower app then runs in a process of its own, on its own data.

    \b
    Exit codes:
      0  no critical fault was found
      1  there is a critical fault
      2  an input is invalid

    \b
    Examples:
      overheard review my_app
      overheard review my_app --out reviews/my_app.html --json
      overheard review my_app --run --clients 4 --seconds 120

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.disk.writing import write_text
    from overheard.doctor.source.app_facts import app_facts
    from overheard.doctor.source.code import AppCode
    from overheard.doctor.source.diagnose import diagnose_app
    from overheard.doctor.source.files import digest_files, read_app_files
    from overheard.doctor.source.privacy import PrivateApp
    from overheard.report.review.page import Review, review_json, review_page

    if not run and (yes, clients, seconds, recording) != (False, None, None, None):
        raise UsageError("--yes, --clients, --seconds and --recording belong to --run.")
    files = read_app_files(app)
    code = PrivateApp(AppCode(files))
    found = Review(
        str(app),
        digest_files(files),
        len(files.texts),
        app_facts(code, files.job),
        diagnose_app(code),
    )
    if run:
        place = out.with_name(f"{out.stem}-recording") if recording is None else recording
        shown = _run(app, files, place, clients, seconds, is_agreed=yes)
        found = replace(found, shown=shown)
    write_text(out, review_page(found), inside=out.parent, is_private=False)
    if json:
        typer.echo(review_json(found), nl=False)
    elif not quiet:
        _print_review(found, out)
    raise typer.Exit(found.exit_code)


def _print_review(found: "Review", page: Path) -> None:
    from overheard.cli.doctor.command import print_diagnosis
    from overheard.cli.terminal import escaped_text
    from overheard.findings.names import make_printable

    console = Console(highlight=False)
    print_diagnosis(found.diagnosis, console)
    for one in found.facts:
        console.print(escaped_text(make_printable(f"{one.name}: {one.text}")), soft_wrap=True)
    for name, text in () if found.shown is None else found.shown.lines():
        console.print(escaped_text(f"{name}: {text}"), soft_wrap=True)
    done = "not run" if found.shown is None else "run once"
    console.print(escaped_text(f"The app was read and {done}. The page: {page}"))
    if found.shown is not None:
        console.print(escaped_text(f"Next: {found.shown.next_step}"), soft_wrap=True)


def _run(
    app: Path,
    files: "AppFiles",
    recording: Path,
    clients: int | None,
    seconds: int | None,
    *,
    is_agreed: bool,
) -> "ShownRun":
    """Say which code would run, ask, run it, and return what its recording shows."""
    from overheard.auditing.doctor_targets import recording_evidence
    from overheard.cli.terminal import escaped_text
    from overheard.doctor.recorded.diagnose import diagnose_runs
    from overheard.doctor.trial.trial_run import (
        MOST_SECONDS,
        describe_trial,
        find_trial,
        run_trial,
    )
    from overheard.report.review.page import ShownRun
    from overheard.report.show import show

    most = MOST_SECONDS if seconds is None else seconds
    request = find_trial(app, files, recording, clients)
    console = Console(stderr=True, highlight=False)
    console.print(escaped_text(describe_trial(request, most)), soft_wrap=True)
    if not is_agreed:
        if not sys.stdin.isatty():
            raise UsageError("--run asks before it runs code: add --yes if you trust it.")
        if not typer.confirm("Run it?", err=True):
            raise UsageError("nothing ran, and no page was written: leave out --run.")
    done = run_trial(request, most)
    return ShownRun(
        show(recording),
        diagnose_runs([recording_evidence(recording)]),
        describe_trial(request, most),
        f"overheard init --from-recording {quote(str(recording))} --flower {quote(str(app))}",
        done.rounds,
        most if done.is_ended_early else None,
    )
