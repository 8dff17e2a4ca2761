"""The command `truth`: the ground truth of a recording, from a table of its owners."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.exits import UsageError
from overheard.cli.options import QuietOption


def truth(
    recording: Annotated[Path, typer.Argument(help="Folder of the recording.")],
    counts: Annotated[
        Path | None,
        typer.Option(
            "--counts",
            help="A table with a row for each client: `owner`, and a column for each class "
            "with its number of examples, in the order of the model's outputs.",
        ),
    ] = None,
    targets: Annotated[
        Path | None,
        typer.Option(
            "--targets",
            help="A table with a row for each example: `owner`, and a column for each number "
            "to predict, in the units in which clients train.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite truth.json if there is one.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Write truth.json of a test run, in which you know what each client held.

    An audit of the recording then scores its claims. An owner is a client of the
    recording, such as client/3 or 3, or its name in node_names.json, such as the
    number of its partition. With a column `round`, a row of --counts is of that
    round alone.

    \b
    Examples:
      overheard truth recording --counts counts.csv
      overheard truth recording --targets prices.csv

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.archive.layout import truth_path
    from overheard.archive.truth import has_truth, write_truth
    from overheard.core.errors import OutputError
    from overheard.planning.stated_truth import state_label_counts, state_target_numbers

    if (counts is None) == (targets is None):
        raise UsageError("Give --counts, for classes, or --targets, for numbers to predict.")
    path = truth_path(recording)
    if has_truth(recording) and not force:
        raise OutputError(f"{path}: exists already: keep it, or add --force")
    if counts is not None:
        stated = state_label_counts(recording, counts)
    else:
        assert targets is not None
        stated = state_target_numbers(recording, targets)
    write_truth(recording, stated)
    if not quiet:
        console = Console(highlight=False, soft_wrap=True)
        console.print(Text(f"Written: {path}", style="bold"))
        console.print("The next audit of the recording scores its claims.")
