"""Options that several commands share."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from overheard.cli.workers import METAVAR, WorkerOptions, parse_workers
from overheard.core.custom_code.reference import refuse_code
from overheard.core.failures import raise_failures
from overheard.disk import digests
from overheard.disk.limits import OPTION, VARIABLE, parse_size, set_max_unpacked


class Device(enum.StrEnum):
    """The device to train on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class FileContent(enum.StrEnum):
    """What a client's file holds; see `ReplyKind`."""

    weights = "weights"
    differences = "differences"
    gradients = "gradients"


class SavedWhen(enum.StrEnum):
    """When the global model in the folder of a round was saved."""

    before = "before"
    after = "after"


class ListedKind(enum.StrEnum):
    """What can be listed."""

    attacks = "attacks"
    datasets = "datasets"
    defenses = "defenses"
    algorithms = "algorithms"
    distillations = "distillations"
    models = "models"
    papers = "papers"
    questions = "questions"
    scorers = "scorers"
    splits = "splits"
    terms = "terms"


OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Output folder. An unfinished run in it is resumed."),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder with data sets. Default: OVERHEARD_DATA, else a download."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**31 - 1, help="Use this seed instead of the seeds of the plan."
    ),
]
DeviceOption = Annotated[
    Device,
    typer.Option(
        "--device",
        help="Where to train. 'auto': on a GPU where that saves time, else on the CPU. 'cuda': "
        "always on the GPU. 'cpu': never.",
    ),
]
WorkersOption = Annotated[
    WorkerOptions | None,
    typer.Option(
        "--workers",
        parser=parse_workers,
        metavar=METAVAR,
        help="Number of training processes. Default: one per core. With 'ray' or an address, "
        "Ray on this machine or on that cluster trains the attackers' virtual clients.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")]
RerunOption = Annotated[
    bool,
    typer.Option(
        "--rerun", help="Train runs anew that other code or data made, and replace them."
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Run only the audit with this name, such as a column of a table. Repeat the "
        "option for several. A wrong name lists all names.",
    ),
]
ArmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        help="Run only the arm with this name, a variant of the federation such as "
        "'epsilon 5', and the arm without defenses. Repeat the option for several. Finished "
        "arms of the output folder stay. A wrong name lists all names.",
    ),
]
MarkdownOption = Annotated[
    Path | None,
    typer.Option("--markdown", help="With --report: write the conclusions to this file, too."),
]
RunsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        min=1,
        help="Number of runs, with the seeds from 0 on. Fewer than at the full size count as "
        "a reduced size.",
    ),
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="Audit the recording while it grows, until the run ends; it need not exist yet.",
    ),
]
FollowWindowOption = Annotated[
    int,
    typer.Option(
        "--follow-window",
        min=1,
        max=100_000,
        help="With --follow: rounds that attacks look at after each round, the latest ones.",
    ),
]
FollowTimeoutOption = Annotated[
    float,
    typer.Option(
        "--follow-timeout",
        min=0.0,
        help="With --follow: seconds without a new round after which the run counts as over.",
    ),
]
MlflowOption = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        metavar="URI",
        help="Log figures, verdicts and the report to this MLflow server or store, such as "
        "sqlite:///mlflow.db; 'default' = MLFLOW_TRACKING_URI, else MLflow's own default.",
    ),
]


def _raise_failures(wanted: bool) -> bool:
    """Let failures of Overheard end the command, and print them in full."""
    if wanted:
        raise_failures()
    return wanted


DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=_raise_failures,
        help="Stop at the first failure of Overheard itself, and print where it failed, to "
        "report it.",
    ),
]


def _trust_store(wanted: bool) -> bool:
    """Let stored files be read without a comparison with their digests."""
    if wanted:
        digests.trust_store()
    return wanted


TrustStoreOption = Annotated[
    bool,
    typer.Option(
        "--trust-store",
        callback=_trust_store,
        help="Read stored files, of the recording and of the output folder, without comparing "
        "them with their SHA-256. The report says so.",
    ),
]


def _refuse_code(wanted: bool) -> bool:
    if wanted:
        refuse_code()
    return wanted


NoCodeOption = Annotated[
    bool,
    typer.Option(
        "--no-code",
        # First, as worker processes that start at once must know it.
        is_eager=True,
        callback=_refuse_code,
        help="Refuse code of others: what a plan or an option names as 'package.module:name', "
        "and the plugins of all other packages. OVERHEARD_NO_CODE=1 does so for all commands.",
    ),
]


def _set_max_unpacked(size: int | None) -> int | None:
    if size is not None:
        set_max_unpacked(size)
    return size


def _parse_size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


MaxUnpackedOption = Annotated[
    int | None,
    typer.Option(
        OPTION,
        parser=_parse_size,
        metavar="SIZE",
        callback=_set_max_unpacked,
        help="Most memory that the content of one file may take. Larger files are refused, and "
        f"so are small files that unpack to much. Default: {VARIABLE}, else 4GB.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
