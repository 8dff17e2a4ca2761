"""The command `release`: what may leave of an audit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.options import QuietOption
from overheard.cli.purging import print_purge
from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load what reads findings
    from overheard.findings.document import FindingsDocument


WithClientsOption = Annotated[
    bool,
    typer.Option(
        "--with-clients",
        help="Keep what attacks claim of each client, and what is true, in findings.json; as "
        "with --least-group 1, no figures are left out.",
    ),
]


def release(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished audit.")],
    out: Annotated[
        Path,
        typer.Option("--out", help="Output folder; a release in it is made anew."),
    ],
    least_group: Annotated[
        int,
        typer.Option(
            "--least-group",
            min=1,
            max=1_000_000,
            help="Leave out figures on fewer clients than this; 1 = leave out none.",
        ),
    ] = 5,
    with_names: Annotated[
        bool, typer.Option("--with-names", help="Keep the names of the recording's parties.")
    ] = False,
    with_clients: WithClientsOption = False,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", help="Also check the release against this policy, as check.sarif."
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write what may leave of an audit: no names, and no figures of single clients.

    An audit folder holds messages, the ground truth, and claims about each
    client. A release holds the page, the findings and the evidence without
    them: figures are means over clients, and parties of a recording have
    numbers in place of names. It says what it leaves out, and why, in
    release.json and on its page.

    Results that rest on few clients are those of single clients. They are left
    out if there are fewer than --least-group; their verdicts are named in
    a word. Texts of your own stay as they are: the title, names of arms and of
    classes, the table release of the plan, and officer.toml. Read them before
    you hand the release on.

    \b
    Writes to the output folder:
      report.html     the page
      findings.json   for `overheard check`, `compare` and `evidence`
      release.json    what is left out, and why
      evidence/       the annex, in two formats
      digests.json    for `overheard verify`
      check.sarif     with --policy

    \b
    Examples:
      overheard release audits/march --out released/march
      overheard release audits/march --out released/march --policy policy.toml
      overheard release audits/march --out inside --with-names --least-group 1
      overheard verify released/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from datetime import UTC, datetime

    from overheard.report.release.left_out import KEPT, ReleaseSettings
    from overheard.report.release.write import write_release

    print_purge(folder, quiet=quiet)
    written = write_release(
        folder,
        out,
        ReleaseSettings(1 if with_clients else least_group, with_names, with_clients),
        datetime.now(UTC).date(),
        _no_files if policy is None else _sarif(policy),
    )
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for name in written.remaining_names:
        errors.print(
            escaped_text(
                f"Read before you hand it on: a text of your own contains the name “{name}”."
            )
        )
    if quiet:
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print("Left out:")
    for one in written.left_out:
        console.print(escaped_text(f"  {one.what}: {one.why}."))
    console.print("Kept as written, so read it before you hand it on:")
    for text in KEPT:
        console.print(escaped_text(f"  {text}."))
    console.print(Text(f"The release: {written.folder / 'report.html'}", style="bold"))


def _no_files(found: "FindingsDocument") -> Mapping[str, str]:
    return {}


def _sarif(path: Path) -> "Callable[[FindingsDocument], Mapping[str, str]]":
    """Return what makes the SARIF of released findings by a policy."""
    from overheard.cli.checking import sarif_of

    return lambda found: {"check.sarif": sarif_of(found, path)}
