"""The command `overheard`."""

import json
import signal
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, final

import click
import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.options import (
    DataOption,
    Device,
    DeviceOption,
    FileContent,
    ListedKind,
    OutOption,
    QuietOption,
    SeedOption,
    WorkersOption,
)
from overheard.cli.terminal import plain
from overheard.cli.workers import Workers
from overheard.core.errors import AuditError, PlanError
from overheard.core.kind import PluginWarning

app = typer.Typer(
    name="overheard",
    help="Measures what a federated-learning run gives away about its participants' data, "
    "and which defenses take that away at what cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=False,
)

MENDABLE = 2
"""Exit code for whatever a user can mend."""

STOPPED = 130
"""Exit code after Ctrl-C, as shells have it."""

TERMINATED = 143
"""Exit code after SIGTERM, as shells have it."""


def _tell_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"overheard {version('overheard')}")
        raise typer.Exit
    return wanted


@app.callback()
def overheard(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Measure what a federated-learning run gives away, and what takes that away."""


@app.command()
def audit(
    plan: Annotated[
        Path | None,
        typer.Argument(help="A plan (TOML). Left out: the built-in one, a minute."),
    ] = None,
    transcript: Annotated[
        Path | None,
        typer.Option(help="A recorded run to audit in place of simulating the plan's."),
    ] = None,
    out: OutOption = None,
    data: DataOption = None,
    seed: SeedOption = None,
    device: DeviceOption = Device.auto,
    workers: WorkersOption = None,
    quiet: QuietOption = False,
) -> None:
    """Simulate a federation, attack it, score the attacks, write a report.

    Leaves report.html, findings.json, findings.csv, plan.toml and the transcripts in the output
    folder. A run that was stopped goes on where it was when the same command is given again.

    \b
    Examples:
      overheard audit
      overheard audit plan.toml --data ~/data --out audits/march
      overheard audit plan.toml --transcript recordings/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.run import audit as run_audit
    from overheard.auditing.supplies import Resources
    from overheard.cli.progress import progress_bar
    from overheard.core.seeds import Seed
    from overheard.plans.built_in import built_in_plan
    from overheard.plans.plan import read_plan
    from overheard.report.words import headlines
    from overheard.report.write import write_report

    hands = workers or Workers()
    chosen = built_in_plan() if plan is None else read_plan(plan)
    if seed is not None:
        chosen = chosen.model_copy(update={"seeds": (seed,)})
    folder = out or Path("audit" if plan is None else f"{plan.stem}-audit")
    if transcript is not None and not transcript.is_dir():
        raise PlanError(f"{transcript}: no such folder; name the one that holds transcript/")
    with progress_bar(Console(stderr=True), quiet) as on_step:
        found = run_audit(
            chosen,
            folder,
            resources=Resources(data, device.value, hands.processes, cluster=hands.cluster),
            recording=transcript,
            on_step=on_step,
        )
        write_report(found, folder, Seed(0))
    if not quiet:
        console = Console(highlight=False)
        for sentence in headlines(found, Seed(0)):
            console.print(plain(sentence.replace("\N{NO-BREAK SPACE}", " ")))
        console.print(Text(f"The report: {folder / 'report.html'}", style="bold"))


@app.command()
def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="PAPER/EXPERIMENT, such as decaf/table3; see `list papers`.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller size that runs in minutes on two cores.")
    ] = False,
    out: OutOption = None,
    data: DataOption = None,
    seed: SeedOption = None,
    device: DeviceOption = Device.auto,
    workers: WorkersOption = None,
    quiet: QuietOption = False,
) -> None:
    """Run a table or figure of a paper again, beside the published figures.

    Leaves figures.json, figures.html and the reports of the audits behind them in the output
    folder. A run that was stopped goes on where it was when the same command is given again.

    \b
    Example:
      overheard reproduce decaf/table3 --data ~/data

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.supplies import Resources
    from overheard.cli.figures import print_figures
    from overheard.cli.progress import progress_bar
    from overheard.papers.experiment import PAGE
    from overheard.papers.find import find_experiment
    from overheard.papers.reproduce import reproduce as run_again

    hands = workers or Workers()
    chosen = find_experiment(experiment)
    name = experiment.replace("/", "-") + ("-quick" if quick else "")
    folder = out or Path("reproduced") / name
    with progress_bar(Console(stderr=True), quiet) as on_step:
        figures = run_again(
            experiment,
            folder,
            quick=quick,
            seed=seed,
            resources=Resources(data, device.value, hands.processes, cluster=hands.cluster),
            on_step=on_step,
        )
    if not quiet:
        print_figures(chosen, figures, Console())
        Console().print(Text(f"Written to {folder / 'figures.json'}"))
        Console().print(Text(f"The page: {folder / PAGE}", style="bold"))


@app.command("list")
def list_command(kind: Annotated[ListedKind, typer.Argument(help="What to list.")]) -> None:
    """List what a plan may name: each with its settings and where it comes from.

    \b
    Example:
      overheard list attacks

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.listing import list_parts

    list_parts(kind.value, Console())


@app.command("import")
def import_command(
    folder: Annotated[Path, typer.Argument(help="Holds a folder for each round.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the run; taken up again.")],
    kind: Annotated[
        FileContent,
        typer.Option(
            "--kind",
            help="What clients' files hold: weights, or these minus those they were sent.",
        ),
    ] = FileContent.weights,
    quiet: QuietOption = False,
) -> None:
    """Make a run's folder of saved weights, from any framework.

    The weights are .safetensors or .npz files by round and client; those of
    the model that was sent out in a round are called global. A last round
    that holds nothing else is the final model. What files do not say (classes,
    recipe, defenses, sizes, who was asked) may stand in about.toml beside them.

    \b
    A folder:
      exported/
        about.toml
        round-0000/global.safetensors
        round-0000/client-0.safetensors
        round-0000/client-1.safetensors
        round-0001/global.safetensors

    \b
    Examples:
      overheard import exported --out recordings/march
      overheard import gradients --out recordings/april --kind differences
      overheard show recordings/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.importing import import_and_tell

    import_and_tell(
        folder,
        out,
        kind.value,
        console=Console(highlight=False),
        errors=Console(stderr=True),
        quiet=quiet,
    )


@app.command()
def canaries(
    plan: Annotated[
        Path, typer.Argument(help="The plan (TOML) by which the recording will be audited.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")],
    data: DataOption = None,
    quiet: QuietOption = False,
) -> None:
    """Draw records to put into a run before it is recorded.

    A die gives each to one client or to nobody. Whoever audits the recording then tells how
    well attacks know the ones from the others, and so how large epsilon is at least. How many
    there are is for the plan to say. Each client is to learn from its file (x, y) besides what
    it has; truth.json goes beside the transcript, with the names that clients have there.

    \b
    In the plan:
      [data]
      clients = 3
      candidates = { members = 50, outsiders = 200, canaries = "mislabelled" }

    \b
    Examples:
      overheard canaries plan.toml --out canaries
      overheard audit plan.toml --transcript recordings/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.canaries import draw_canaries
    from overheard.auditing.supplies import Resources
    from overheard.plans.plan import read_plan

    drawn = draw_canaries(read_plan(plan), out, resources=Resources(data))
    if quiet:
        return
    console = Console(highlight=False)
    for who, file in drawn.files.items():
        console.print(plain(f"{who}: {drawn.counts[who]} canaries, {file}"), soft_wrap=True)
    console.print(plain(f"nobody: {drawn.outsiders}"))
    console.print(Text(f"The truth: {out / 'truth.json'}", style="bold"), soft_wrap=True)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(help="A run: the folder that holds transcript/.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Also check every stored weight file.")
    ] = False,
) -> None:
    """Tell what a transcript holds and what each observer of it sees.

    \b
    Example:
      overheard show audit/runs/none-seed0 --verify

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.archive.reader import verify as verify_transcript
    from overheard.cli.showing import print_overview
    from overheard.report.show import show as show_run

    print_overview(show_run(folder), Console())
    if verify:
        Console().print(Text(f"{verify_transcript(folder)} weight files are whole."))


@app.command()
def check(
    findings: Annotated[Path, typer.Argument(help="The findings.json of an audit.")],
    policy: Annotated[Path, typer.Option("--policy", help="The rules (TOML).")],
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Earlier findings, for rules on growth."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="File for the verdicts as JUnit XML.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="File for the verdicts as Markdown.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Hold an audit's findings against a policy, for a pipeline to go on or to stop.

    Rules are on what attacks read (leaks), on what mechanisms promise and
    attacks prove of it (epsilons), and on what arms cost (costs). What counts
    is the whole interval of a figure, never its mean.

    \b
    Exit codes:
      0  all that is asked is kept
      1  something is broken: a limit, or a claim
      2  neither is sure, something was not measured, or a file is wrong

    \b
    A policy is TOML:
      [\\[leaks]]
      name = "records stay unrecognised"
      question = "membership"
      score = "membership_auc"
      no_better_than = 0.6

      [\\[epsilons]]
      name = "clients are covered"
      arms = ["local DP"]
      guaranteed_at_most = 8.0

    \b
    Examples:
      overheard check findings.json --policy policy.toml
      overheard check findings.json --policy policy.toml --against earlier.json
      overheard check findings.json --policy policy.toml --junit check.xml

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.archive.atomic import write_text
    from overheard.cli.checking import EXIT_CODES, print_checked, refuse_to_overwrite
    from overheard.findings.read_document import read_findings
    from overheard.gate.check import check as check_findings
    from overheard.gate.junit import as_junit
    from overheard.gate.markdown import as_markdown
    from overheard.gate.policy import read_policy

    refuse_to_overwrite((findings, policy, against), (junit, markdown))
    rules = read_policy(policy)
    before = None if against is None else read_findings(against)
    checked = check_findings(rules, read_findings(findings), before)
    if junit is not None:
        write_text(junit, as_junit(checked))
    if markdown is not None:
        write_text(markdown, as_markdown(checked))
    if not quiet:
        print_checked(checked, Console(highlight=False))
    raise typer.Exit(EXIT_CODES[checked.status])


@app.command()
def schema(
    policy: Annotated[
        bool, typer.Option("--policy", help="Of policies, which `check` reads.")
    ] = False,
) -> None:
    """Print the JSON schema of plans, for an editor to complete and check by.

    \b
    Examples:
      overheard schema > plan.schema.json
      overheard schema --policy > policy.schema.json

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.gate.policy import Policy
    from overheard.plans.plan import Plan

    typer.echo(json.dumps((Policy if policy else Plan).model_json_schema(), indent=2))


def main() -> None:
    """Run the command; whatever a user can mend is one message and exit code 2."""
    sigterm = _Sigterm()
    signal.signal(signal.SIGTERM, sigterm)
    with warnings.catch_warnings():
        warnings.showwarning = _Warnings(warnings.showwarning)
        code = _run()
    sys.exit(TERMINATED if code == STOPPED and sigterm.came else code)


@final
class _Warnings:
    """Tells of a part that is left out as plainly as of an error, and of the rest as before."""

    def __init__(self, otherwise: Callable[..., None]) -> None:
        self._otherwise = otherwise

    # Any: whatever `warnings.showwarning` takes.
    def __call__(
        self, message: Warning | str, category: type[Warning], *place: Any, **more: Any
    ) -> None:
        if issubclass(category, PluginWarning):
            Console(stderr=True, soft_wrap=True).print(plain(f"overheard: {message}"))
        else:
            self._otherwise(message, category, *place, **more)


@final
class _Sigterm:
    """Makes of the first SIGTERM a Ctrl-C, which ends workers before the command.

    What comes after it would only break that off.
    """

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            # Ray, while it waits, hands on this one and aborts the process for any other.
            raise KeyboardInterrupt


def _run() -> int:
    message, code = "", 0
    try:
        given = app(standalone_mode=False)
        code = given if isinstance(given, int) else 0
    except click.ClickException as error:
        error.show()
        code = MENDABLE
    except AuditError as error:
        message, code = str(error), MENDABLE
    except OSError as error:
        # A full disk or a missing permission, wherever it strikes, is the user's to mend.
        message = f"{error.filename or 'the machine'}: {error.strerror or error}"
        code = MENDABLE
    except (KeyboardInterrupt, click.Abort):
        code = STOPPED
    # Typer answers Ctrl-C by this code itself, or hands it on, by its version.
    if code == STOPPED:
        message = "stopped; what is done is kept: give the same command again to go on"
    if message:
        Console(stderr=True, soft_wrap=True).print(plain(f"overheard: {message}"))
    return code
