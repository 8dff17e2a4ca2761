"""What several commands are told in the same words."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from overheard.cli.workers import METAVAR, Workers, parse_workers


class Device(enum.StrEnum):
    """What the work is done on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class FileContent(enum.StrEnum):
    """What a client's file holds."""

    weights = "weights"
    differences = "differences"


class ListedKind(enum.StrEnum):
    """What can be listed."""

    attacks = "attacks"
    datasets = "datasets"
    defenses = "defenses"
    distillations = "distillations"
    models = "models"
    papers = "papers"
    questions = "questions"
    scorers = "scorers"
    splits = "splits"


OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for what is found; taken up again."),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with data sets; else OVERHEARD_DATA, else downloads."),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**31 - 1, help="One seed in place of those planned."),
]
DeviceOption = Annotated[Device, typer.Option("--device", help="What the work is done on.")]
WorkersOption = Annotated[
    Workers | None,
    typer.Option(
        "--workers",
        parser=parse_workers,
        metavar=METAVAR,
        help="Processes to train in; else one a core. 'ray' or an address: the virtual "
        "clients of attackers are trained by Ray on this machine or by that cluster.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
