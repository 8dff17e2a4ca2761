"""The command `init`: a first plan that runs."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.exits import UsageError
from overheard.cli.options import JsonOption, NoCodeOption, QuietOption, TrustStoreOption
from overheard.cli.terminal import escaped_text
from overheard.core.errors import OutputError

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.planning.apps.federated_app import FederatedApp
    from overheard.planning.first_plan.writing import FirstPlan
    from overheard.planning.training_facts import TrainingFacts

FORMAT = "overheard init"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

RecordingOption = Annotated[
    Path | None,
    typer.Option(
        "--from-recording",
        help="Folder of a finished recording to audit. Default: the newest one in the "
        "working directory or in the folder of --flower, if there is one.",
    ),
]
SimulateOption = Annotated[
    bool,
    typer.Option("--simulate", help="Simulate a federation, even if there is a recording."),
]
FlowerOption = Annotated[
    Path | None,
    typer.Option(
        "--flower",
        help="Folder of a Flower app. Its files are read. Its networks, and functions that "
        "build one, such as get_model, are imported and called to find the recorded one: "
        "name only an app you trust.",
    ),
]
NvflareOption = Annotated[
    Path | None,
    typer.Option(
        "--nvflare",
        help="Folder of an NVFlare job, with meta.json. Its settings and source files are "
        "read. Its network is imported and called to compare it with the recorded one: name "
        "only a job you trust.",
    ),
]
SpareDataOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Examples that no client holds: a table (.csv, .tsv, .parquet, "
        ".xlsx, ...), LEAF's .json, arrays x and y in an .npz, a folder of images by class, "
        "or 'package.module:function', which is run: name only code you trust.",
    ),
]
TextOption = Annotated[
    str | None, typer.Option("--text", help="Column of the texts to learn from, in a table.")
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        help="What makes token ids of a text, if the network has a vocabulary of its own: "
        "'package.module:function', such as the app's. It is run.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", help="Your network: 'package.module:Class' or '...:function'. It is run."
    ),
]
LabelOption = Annotated[str, typer.Option("--label", help="Column of the labels in a table.")]
UserOption = Annotated[
    str | None, typer.Option("--user", help="Column of the users in a table.")
]

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        help="How --data is read: a setting of the plan's source, such as 'header_lines = 0', "
        "'left_out = [\"remark\"]' or 'task = \"regression\"'. May be given several times.",
    ),
]

CandidatesOption = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        help="Records whose membership is asked: a file like that of --data, with a column "
        "or an array `owner` (a client, or none) or `member` (1 or 0).",
    ),
]


def init(
    file: Annotated[Path, typer.Argument(help="The plan to write.")] = Path("plan.toml"),
    recording: RecordingOption = None,
    simulate: SimulateOption = False,
    flower: FlowerOption = None,
    nvflare: NvflareOption = None,
    data: SpareDataOption = None,
    label: LabelOption = "label",
    user: UserOption = None,
    text: TextOption = None,
    tokenizer: TokenizerOption = None,
    model: ModelOption = None,
    read: ReadOption = None,
    candidates: CandidatesOption = None,
    _trust_store: TrustStoreOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the plan if there is one.")
    ] = False,
    _no_code: NoCodeOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a first plan that runs, with a comment on each choice.

    From a recording, the plan has what the recording states: network, classes,
    training, defenses and rounds. Code that it names is never run. Only networks
    of --flower, --nvflare and --model, and a function of --data, are. Attacks for which
    something is missing are left out, and the plan says what to add.
    If no recording is given, the newest one in the working directory is taken.
    Without any, the plan simulates a federation. On a terminal, the command asks
    for what was not given as an option; with --json it asks nothing.

    \b
    Examples:
      overheard init --from-recording recording --flower .
      overheard init --from-recording recording --flower . --data spare.csv --label y
      overheard init --flower . --data spare.npz --candidates records.npz
      overheard init --from-recording recording --nvflare jobs/digits
      overheard init study.toml --data cases.parquet --label diagnosis --user ward

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.inputs import Resources
    from overheard.planning.first_plan.request import FirstPlanRequest
    from overheard.planning.first_plan.writing import write_first_plan
    from overheard.planning.recorded_facts import read_recorded_facts

    if file.exists() and not force:
        raise _is_there(file)
    if simulate and recording is not None:
        raise UsageError("Give --simulate or --from-recording, not both.")
    if not simulate:
        recording = _find_recording(recording, flower, is_told=not (quiet or as_json))
    if not as_json and _may_ask(recording, flower, nvflare, data, simulate):
        recording, data, label, user = _ask(label)
    app = _read_app(flower, nvflare)
    request = FirstPlanRequest(
        None if recording is None else read_recorded_facts(recording),
        app,
        data,
        label,
        user,
        model,
        tuple(read or ()),
        candidates,
        text,
        tokenizer,
    )
    written = write_first_plan(request, Resources())
    if app is not None:
        written = replace(written, notes=(*app.notes, *written.notes))
    _write_plan(file, written.text, force=force)
    if as_json:
        typer.echo(_as_json(written, file, recording), nl=False)
    elif not quiet:
        _print_plan(written, data)
        _print_training(written.training, is_simulated=recording is None and app is None)
        _print_next_step(file, recording, written.app, is_app=app is not None)


def _find_recording(
    recording: Path | None, flower: Path | None, *, is_told: bool
) -> Path | None:
    """Return the recording that was named, or else the newest one; tell of a newer one."""
    from overheard.cli.recordings import find_newest_recording, print_newer_recording

    if recording is None:
        return find_newest_recording([Path(), *([] if flower is None else [flower])])
    if is_told:
        print_newer_recording(recording)
    return recording


def _read_app(flower: Path | None, nvflare: Path | None) -> "FederatedApp | None":
    """Return what an app or a job states; None = neither is named."""
    from overheard.planning.apps.flower_app import read_flower_app
    from overheard.planning.apps.nvflare_app import read_nvflare_app

    if flower is not None and nvflare is not None:
        raise UsageError("Give --flower or --nvflare, not both.")
    if nvflare is not None:
        return read_nvflare_app(nvflare)
    return None if flower is None else read_flower_app(flower)


def _write_plan(file: Path, text: str, *, force: bool) -> None:
    from overheard.disk.writing import write_new_text, write_text

    if force:
        write_text(file, text, inside=file.parent, is_private=False)
    elif not write_new_text(file, text, inside=file.parent, is_private=False):
        raise _is_there(file)


def _is_there(file: Path) -> OutputError:
    return OutputError(f"{file}: exists already: name another file, or add --force")


def _print_plan(written: "FirstPlan", data: str | None) -> None:
    _print_lines(written.data)
    _print_attacks(written.attacks, written.missing, data)
    _print_lines(tuple(f"{note}." for note in written.notes))
    _print_proposal(written.proposal)
    _print_networks(written.networks)


def _print_lines(lines: Sequence[str]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(escaped_text(line))


def _print_next_step(
    file: Path, recording: Path | None, app: Path | None, *, is_app: bool
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if is_app and recording is None:
        console.print("To audit the app itself, record it: docs/flower.md, docs/nvflare.md")
    command, report = _next_step(file, recording, app)
    console.print(Text(f"Written: {file}", style="bold"))
    console.print(escaped_text(f"Next: {command}"))
    console.print(escaped_text(f"Then open {report}"))


def _next_step(file: Path, recording: Path | None, app: Path | None) -> tuple[str, Path]:
    """Return the command that audits the plan, and the page that it writes."""
    from overheard.auditing.folder import default_folder, free_folder

    source = "" if recording is None else f" --transcript {quote(str(recording))}"
    # The default folder may hold the audit of an earlier plan.
    folder = free_folder(file)
    out = "" if folder == default_folder(file) else f" --out {quote(str(folder))}"
    is_elsewhere = app is not None and app.resolve() != Path.cwd()
    path = f"PYTHONPATH={quote(str(app))} " if is_elsewhere else ""
    return f"{path}overheard audit {quote(str(file))}{source}{out}", folder / "report.html"


def _as_json(written: "FirstPlan", file: Path, recording: Path | None) -> str:
    """Return what was written and what is missing, for programs."""
    command, report = _next_step(file, recording, written.app)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "plan": str(file),
        "recording": None if recording is None else str(recording),
        "app": None if written.app is None else str(written.app),
        "attacks": list(written.attacks),
        "missing": dict(written.missing),
        "data": list(written.data),
        "notes": list(written.notes),
        "training": {key: one.value for key, one in written.training.settings.items()},
        "doubts": list(written.training.doubts),
        "networks_not_taken": dict(written.networks),
        "proposed_network": written.proposal,
        "next": command,
        "report": str(report),
    }
    # Beyond ASCII all is escaped.
    return json.dumps(document, indent=1) + "\n"


def _print_attacks(
    attacks: Sequence[str], missing: Mapping[str, str], data: str | None
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(escaped_text(f"Attacks that can run: {', '.join(attacks)}."))
    for name, what in missing.items():
        console.print(escaped_text(f"Left out: {name}, which needs {what}."))
    if missing and data is None:
        console.print("To give examples: --data FILE --label COLUMN, of none of the clients.")


def _print_proposal(reference: str | None) -> None:
    from overheard.planning.first_plan.plan_refusal import describe_proposal

    if reference is not None:
        console = Console(highlight=False, soft_wrap=True)
        console.print(escaped_text(f"{describe_proposal(reference)}."))


def _print_networks(networks: Mapping[str, str]) -> None:
    """Print which networks of an app were not taken, and why."""
    console = Console(highlight=False, soft_wrap=True)
    for reference, difference in networks.items():
        console.print(escaped_text(f"{reference} is not taken: {difference}."))


def _print_training(training: "TrainingFacts", *, is_simulated: bool) -> None:
    """Print how clients train, with the source of each setting and what was not found."""
    if is_simulated:
        return
    console = Console(highlight=False, soft_wrap=True)
    for line in training.lines():
        console.print(escaped_text(f"{line}."))


def _may_ask(*given: object) -> bool:
    """Return whether to ask: nothing was given, and a person is there to answer."""
    return not any(given) and sys.stdin.isatty() and sys.stdout.isatty()


def _ask(label: str) -> tuple[Path | None, str | None, str, str | None]:
    """Ask for the recording and the data; an empty answer means none."""
    folder = typer.prompt(
        "Folder of a finished recording (empty = simulate a federation)",
        default="",
        show_default=False,
    )
    data = typer.prompt(
        "File with labelled examples that no client holds (empty = none)",
        default="",
        show_default=False,
    )
    from overheard.data.reading.text_table import TABLE_SUFFIXES

    user = ""
    if data.endswith(TABLE_SUFFIXES):
        label = typer.prompt("Column of the labels", default=label)
        user = typer.prompt(
            "Column of the users (empty = unknown)", default="", show_default=False
        )
    return Path(folder) if folder else None, data or None, label, user or None
