"""The commands `evidence` and `verify`: an annex on data protection, and checks of files."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.options import JsonOption, QuietOption
from overheard.cli.purging import print_purge
from overheard.cli.terminal import escaped_text

_SHA256 = re.compile(r"[0-9a-f]{64}")

_STYLES: dict[str, str] = {
    "as written": "green",
    "changed": "bold red",
    "missing": "bold red",
    "a link": "bold red",
    "no file": "bold red",
    "not listed": "dim",
}


def evidence(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished audit.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Output folder. Default: evidence, in the audit's folder."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write an annex to a data-protection impact assessment from an audit.

    The annex states the context of the release, the threat model, which tests
    were made and which were not, the results, claims of differential privacy,
    and which standards describe each kind of finding. It contains neither
    messages nor the ground truth about clients, but names of observers and
    figures on few clients: `overheard release` writes one without them. It is
    no legal assessment.

    What only people can state, such as the residual risk, belongs in
    officer.toml. The command reads this file and never overwrites it.

    The command refuses an audit with a changed file. It prints the SHA-256 of
    the digests.json that covers the audit and the evidence: store it elsewhere.

    \b
    Steps:
      1. overheard evidence audit   writes the annex, and officer.toml.
      2. fill in officer.toml       purpose, retention, residual risk, decision.
      3. overheard evidence audit   writes the annex anew, with your words.
      4. overheard verify audit     says later which files were changed.

    \b
    Writes to the output folder:
      annex.pdf, annex.html    the annex, in two formats
      officer.toml             your own words
      ro-crate-metadata.json   a description of these files
      digests.json             for `overheard verify`

    \b
    Examples:
      overheard evidence audit
      overheard evidence audits/march --out dpia/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from datetime import UTC, datetime

    from overheard.report.evidence.digests import EVIDENCE_FOLDER
    from overheard.report.evidence.officer import OFFICER_FILE
    from overheard.report.evidence.write import write_evidence

    print_purge(folder, quiet=quiet)
    today = datetime.now(UTC).date()
    written = write_evidence(folder, out or folder / EVIDENCE_FOLDER, today)
    if quiet:
        return
    console = Console(highlight=False, soft_wrap=True)
    if written.unstated:
        place = written.folder / OFFICER_FILE
        console.print(escaped_text(f"To be filled in, in {place}:"))
        for title in written.unstated:
            console.print(escaped_text(f"  {title}"))
    console.print(escaped_text(f"For `overheard verify --expect`: {written.sha256}"))
    console.print(Text(f"The annex: {written.folder / 'annex.pdf'}", style="bold"))


def verify(
    folder: Annotated[Path, typer.Argument(help="Folder of an audit, or of its evidence.")],
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            help="SHA-256 of digests.json, as printed earlier. No file may be added either.",
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say which files of an audit are as they were written, and which were changed.

    Compares the report, the findings and the plan with digests.json, and the
    evidence in the subfolder evidence as well. Whoever changes a file can also
    change digests.json. So store its SHA-256 elsewhere, and compare it by
    --expect. Then nothing may have been added either.

    \b
    Exit codes:
      0  every listed file is as it was written
      1  a file was changed, replaced or is missing, or --expect does not match
      2  there is no list of digests, it cannot be read, or --expect is no SHA-256

    \b
    Examples:
      overheard verify audit
      overheard verify audit --expect 5f2c...

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.report.evidence.digests import DIGESTS_FILE, check_published

    expected = None if expect is None else expect.strip().lower()
    if expected is not None and not _SHA256.fullmatch(expected):
        raise typer.BadParameter(
            "is no SHA-256, which has 64 hexadecimal digits: copy it whole",
            param_hint="--expect",
        )
    folders = check_published(folder)
    is_expected = expected in (None, folders[0].sha256)
    has_additions = expected is not None and any(one.has_additions for one in folders)
    is_intact = is_expected and not has_additions and all(one.is_as_written for one in folders)
    if as_json:
        content = {
            "is_intact": is_intact,
            "is_expected": is_expected,
            "folders": [
                {
                    "folder": str(one.path),
                    "sha256": one.sha256,
                    "files": {item.name: item.state for item in one.files},
                }
                for one in folders
            ],
        }
        typer.echo(json.dumps(content, indent=2))
    elif not quiet:
        console = Console(highlight=False, soft_wrap=True)
        for one in folders:
            files = [(item.state, item.name) for item in one.files]
            _print_folder(one.path, one.sha256, files, console)
        if not is_expected:
            wrong = f"{DIGESTS_FILE} was changed: its SHA-256 is not the expected one."
            console.print(Text(wrong, style="bold red"))
        if has_additions:
            added = "A file that is not listed was added."
            console.print(Text(added, style="bold red"))
        console.print(
            Text(
                "All listed files are as they were written."
                if is_intact
                else "Not all files are as they were written.",
                style="bold green" if is_intact else "bold red",
            )
        )
    raise typer.Exit(0 if is_intact else 1)


def _print_folder(
    path: Path, digest: str, files: Iterable[tuple[str, str]], console: Console
) -> None:
    """Print the state and the name of each file, below the folder and its list's digest."""
    console.print(escaped_text(f"{path}, digests.json with SHA-256 {digest}"))
    for state, name in files:
        line = escaped_text(f"  {state:<10}  {name}")
        line.stylize(_STYLES[state])
        console.print(line)
