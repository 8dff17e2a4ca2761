"""The command `review`: reads an app before anybody runs it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from overheard.cli.options import JsonOption, QuietOption


def review(
    app: Annotated[
        Path,
        typer.Argument(help="The folder of an app, or its .py file. It is not run."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The page to write, to put beside a signature."),
    ] = Path("review.html"),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read the source of an app, and say what it states and what is wrong in it.

    Writes one HTML page: known faults of differential privacy, each with its
    line; what clients send, the strategy, rounds, secure aggregation and
    frameworks; and what could not be seen. The app is read and never run.

    \b
    Exit codes:
      0  no critical fault was found
      1  there is a critical fault
      2  an input is invalid

    \b
    Examples:
      overheard review my_app
      overheard review my_app --out reviews/my_app.html --json

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.doctor.command import print_diagnosis
    from overheard.cli.terminal import escaped_text
    from overheard.disk.writing import write_text
    from overheard.doctor.source.app_facts import app_facts
    from overheard.doctor.source.code import AppCode
    from overheard.doctor.source.diagnose import diagnose_app
    from overheard.doctor.source.files import digest_files, read_app_files
    from overheard.doctor.source.privacy import PrivateApp
    from overheard.findings.names import make_printable
    from overheard.report.review.page import Review, review_json, review_page

    files = read_app_files(app)
    code = PrivateApp(AppCode(files))
    found = Review(
        str(app), digest_files(files), len(files.texts), app_facts(code), diagnose_app(code)
    )
    write_text(out, review_page(found), inside=out.parent, is_private=False)
    if json:
        typer.echo(review_json(found), nl=False)
    elif not quiet:
        console = Console(highlight=False)
        print_diagnosis(found.diagnosis, console)
        for one in found.facts:
            console.print(
                escaped_text(make_printable(f"{one.name}: {one.text}")), soft_wrap=True
            )
        console.print(escaped_text(f"The app was read and not run. The page: {out}"))
    raise typer.Exit(found.exit_code)
