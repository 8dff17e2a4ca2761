"""The command `overheard`."""

import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.canaries.command import canaries
from overheard.cli.cohorts.command import cohorts
from overheard.cli.doctor.command import doctor
from overheard.cli.evidence import evidence, verify
from overheard.cli.exits import EXIT_CODES, SigtermHandler, UsageError, run_command
from overheard.cli.gate_commands import check, compare, records
from overheard.cli.init import init
from overheard.cli.options import (
    ArmOption,
    DataOption,
    DebugOption,
    Device,
    DeviceOption,
    FileContent,
    FollowOption,
    FollowTimeoutOption,
    FollowWindowOption,
    JsonOption,
    ListedKind,
    MarkdownOption,
    MaxUnpackedOption,
    MlflowOption,
    NoCodeOption,
    OnlyOption,
    OutOption,
    QuietOption,
    RerunOption,
    RunsOption,
    SavedWhen,
    SeedOption,
    TrustStoreOption,
    WorkersOption,
)
from overheard.cli.plan_checking import plan_app
from overheard.cli.purging import print_due, purge
from overheard.cli.releasing import release
from overheard.cli.review.command import review
from overheard.cli.terminal import escaped_text
from overheard.cli.truth.command import truth
from overheard.cli.workers import prepare_workers

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.cli.summary.print_summary import AuditSummary
from overheard.core.errors import PlanError
from overheard.core.plugin_registry import PluginWarning

app = typer.Typer(
    name="overheard",
    help="Measure what a federated-learning run reveals about its clients, and what "
    "defenses achieve at what cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"overheard {version('overheard')}")
        raise typer.Exit
    return wanted


def _log_to_stderr(count: int) -> int:
    """Show messages of Overheard: at 1 what it does, at 2 errors in full."""
    if count:
        level = logging.INFO if count == 1 else logging.DEBUG
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")
        logging.getLogger("overheard").setLevel(level)
    return count


@app.callback()
def overheard(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    _verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            callback=_log_to_stderr,
            help="Log each step to stderr; twice: errors in full too.",
        ),
    ] = 0,
    _debug: DebugOption = False,
    _max_unpacked: MaxUnpackedOption = None,
) -> None:
    """Measure what a federated-learning run reveals, and what defenses achieve."""


@app.command()
def audit(
    plan: Annotated[
        Path | None,
        typer.Argument(help="The plan (TOML). Default: a built-in plan (half a minute)."),
    ] = None,
    transcript: Annotated[
        Path | None,
        typer.Option(help="Folder of a recorded run to audit instead of simulating one."),
    ] = None,
    follow: FollowOption = False,
    follow_window: FollowWindowOption = 10,
    follow_timeout: FollowTimeoutOption = 3600.0,
    out: OutOption = None,
    data: DataOption = None,
    seed: SeedOption = None,
    device: DeviceOption = Device.auto,
    workers: WorkersOption = None,
    rerun: RerunOption = False,
    _trust_store: TrustStoreOption = False,
    mlflow: MlflowOption = None,
    _no_code: NoCodeOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _debug: DebugOption = False,
    _max_unpacked: MaxUnpackedOption = None,
) -> None:
    """Simulate a federation, attack it, score the attacks, write a report.

    Writes report.html, findings.json, findings.csv, plan.toml and the
    transcripts to the output folder. To resume an interrupted audit, run the
    same command again. Results of code that has changed since are not reused.
    If no attack could be asked anything, the exit code is 2.

    With --follow, a recording is audited while the run goes on: a line after
    each round, and a report that is written anew. When the run has ended, all
    of its rounds are audited as without --follow.

    \b
    Examples:
      overheard audit
      overheard audit plan.toml --data ~/data --out audits/march
      overheard audit plan.toml --transcript recordings/march
      overheard audit plan.toml --transcript recordings/march --follow
      overheard audit plan.toml --mlflow sqlite:///mlflow.db
      overheard audit plan.toml --json

    """  # noqa: D301 - a backspace tells click to keep the lines
    prepare_workers(workers)  # first, as the imports below take as long
    from overheard.auditing.folder import default_folder
    from overheard.auditing.following.follow import FollowSettings
    from overheard.auditing.inputs import refuse_plan_without_split
    from overheard.cli.audit_and_report import audit_and_report, print_missing_verdicts
    from overheard.cli.following import follow_and_print
    from overheard.cli.plan_code import print_code
    from overheard.cli.recordings import print_newer_recording
    from overheard.cli.resources import make_resources
    from overheard.cli.tracking import log_audit, require_mlflow
    from overheard.plans.built_in import read_plan_or_built_in

    require_mlflow(mlflow)
    audit_plan = read_plan_or_built_in(plan, seed)
    print_code(audit_plan, Console(stderr=True, quiet=quiet))
    folder = out or default_folder(plan)
    resources = make_resources(data, device, workers)
    if follow and as_json:
        raise UsageError(
            "--follow prints a line each round, and no JSON: leave out one of them."
        )
    if follow:
        settings = FollowSettings(follow_window, follow_timeout)
        follow_and_print(audit_plan, folder, transcript, settings, resources, quiet=quiet)
    _refuse_missing_folder(transcript)
    if transcript is None:
        refuse_plan_without_split(audit_plan)
    if not quiet:
        print_newer_recording(transcript)
        errors = Console(stderr=True)
        print_missing_verdicts(audit_plan, transcript, errors, resources)
    summary = audit_and_report(audit_plan, folder, resources, transcript, rerun, quiet)
    _print_audit(summary, folder, as_json, quiet)
    log_audit(folder, mlflow, Console(highlight=False, quiet=quiet or as_json))


def _print_audit(summary: "AuditSummary", folder: Path, as_json: bool, quiet: bool) -> None:
    from overheard.cli.summary.print_summary import print_summary
    from overheard.cli.summary.summary_json import summary_json

    if as_json:
        typer.echo(summary_json(summary, folder), nl=False)
    elif not quiet:
        print_summary(summary, folder, Console(highlight=False))
        print_due(folder, Console(highlight=False, soft_wrap=True))


def _refuse_missing_folder(transcript: Path | None) -> None:
    if transcript is not None and not transcript.is_dir():
        raise PlanError(
            f"{transcript}: no such folder: name the folder that contains transcript/"
        )


@app.command()
def reproduce(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="PAPER/EXPERIMENT, such as decaf/table3. See `overheard list papers`."
        ),
    ] = None,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Run every experiment in turn, and write their page.")
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Run nothing; write the page of all experiments that were run, and print "
            "which conclusions of the papers hold.",
        ),
    ] = False,
    markdown: MarkdownOption = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run a reduced size, which takes minutes on two cores."),
    ] = False,
    only: OnlyOption = None,
    arm: ArmOption = None,
    runs: RunsOption = None,
    rerun: RerunOption = False,
    _trust_store: TrustStoreOption = False,
    out: OutOption = None,
    data: DataOption = None,
    seed: SeedOption = None,
    device: DeviceOption = Device.auto,
    workers: WorkersOption = None,
    quiet: QuietOption = False,
) -> None:
    """Reproduce a table or figure of a paper, and compare with published values.

    Writes figures.json, figures.html and the reports of the underlying audits
    to the output folder. To resume an interrupted run, run the same command
    again. `--all` runs every experiment into a sub-folder of the output folder,
    except those that are stored there at this size, and first says how many core
    hours are known to be needed. `--all` and `--report` write index.html there,
    with all values beside the published ones, and print which conclusions of
    the papers hold. The experiments are a package of their own: in a checkout,
    `pip install ./studies` installs it.

    \b
    Examples:
      overheard reproduce decaf/table3 --data ~/data
      overheard reproduce whispers/table3 --only mnist_alpha_0.5 --runs 1
      overheard reproduce whispers/table4 --arm "epsilon 5" --runs 1
      overheard reproduce --all --quick --data ~/data
      overheard reproduce --report

    """  # noqa: D301 - a backspace tells click to keep the lines
    _check_reproduction(
        experiment, all_of_them, report, markdown is not None, quick or rerun, seed, runs
    )
    if (only or arm) and experiment is None:
        raise UsageError("--only and --arm select parts of one experiment: name it.")
    if not report:
        prepare_workers(workers)
    from overheard.cli.resources import make_resources
    from overheard.cli.studies import find_studies

    studies = find_studies()
    seeds = tuple(range(runs or 0)) if seed is None else (seed,)
    resources = make_resources(data, device, workers)
    if experiment is not None:
        studies.reproduce_study(
            experiment, out, quick, only or (), arm or (), seeds, rerun, resources, quiet
        )
    elif report:
        studies.write_report_of_all(out, markdown, quiet)
    else:
        studies.reproduce_all(out, quick, seeds, rerun, resources, quiet)


def _check_reproduction(
    experiment: str | None,
    all_of_them: bool,
    report: bool,
    writes_markdown: bool,
    changes_runs: bool,
    seed: int | None,
    runs: int | None,
) -> None:
    """Refuse options of `reproduce` that contradict each other."""
    if [experiment is not None, all_of_them, report].count(True) != 1:
        raise UsageError("Give one experiment, or --all, or --report.")
    if writes_markdown and not report:
        raise UsageError("--markdown belongs to --report.")
    if report and (changes_runs or seed is not None or runs is not None):
        raise UsageError(
            "--report runs nothing: leave out --quick, --runs, --seed and --rerun."
        )
    if seed is not None and runs is not None:
        raise UsageError("Give --seed or --runs, not both.")


@app.command("list")
def list_command(
    kind: Annotated[ListedKind, typer.Argument(help="What to list.")],
    name: Annotated[
        str | None, typer.Argument(help="Tell all details of this one only.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what a plan can name, with settings and sources; the papers; or all terms.

    \b
    Examples:
      overheard list attacks
      overheard list attacks decaf
      overheard list attacks --json | jq .

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.listing import list_parts, listed_values

    if as_json:
        listed = [one for one in listed_values(kind.value) if name in (None, one["name"])]
        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    elif name is None:
        list_parts(kind.value, Console())
    else:
        from overheard.cli.details import print_details

        print_details(kind.value, name, Console())


@app.command("import")
def import_command(
    folder: Annotated[Path, typer.Argument(help="Folder with a subfolder for each round.")],
    out: Annotated[
        Path,
        typer.Option("--out", help="Output folder. An unfinished import in it is resumed."),
    ],
    kind: Annotated[
        FileContent | None,
        typer.Option(
            "--kind",
            help="Contents of the clients' files: their weights (the default), these minus the "
            "weights that they received, or gradients, which the server subtracts.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="The server's learning rate, which multiplies gradients."),
    ] = None,
    saved: Annotated[
        SavedWhen | None,
        typer.Option(
            "--saved",
            help="Whether the global model in a round's folder was saved before the round "
            "(the default) or after its aggregation.",
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Import a run from the weights that any framework has saved.

    The weights are .safetensors or .npz files, one per round and client. The
    model that is broadcast in a round is named global. A last round with this
    file only contains the final model. Facts that the files do not contain
    (classes, recipe, defenses, example counts, sampled clients, and these options)
    can be given in about.toml in the same folder. The folder of an experiment of Fed-BioMed is
    imported as it is, from its breakpoints.

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
      overheard import deltas --out recordings/april --kind differences
      overheard import fedsgd --out recordings/may --kind gradients --rate 0.1
      overheard show recordings/march

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.importing import import_and_report
    from overheard.recorders.exports.reply_content import ImportOptions

    options = ImportOptions(
        None if kind is None else kind.value, rate, None if saved is None else saved.value
    )
    import_and_report(
        folder,
        out,
        options,
        console=Console(highlight=False),
        errors=Console(stderr=True),
        quiet=quiet,
    )


@app.command()
def show(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the run, which contains transcript/.")
    ],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Also check that every stored weight file is intact."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a transcript contains and what each observer can read.

    \b
    Example:
      overheard show audit/runs/none-seed0 --verify

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.archive.reader import verify_transcript
    from overheard.cli.recordings import print_newer_recording
    from overheard.cli.showing import print_overview
    from overheard.report.show import show as show_run

    overview = show_run(folder)
    intact = verify_transcript(folder) if verify else None
    if as_json:
        typer.echo(json.dumps(asdict(overview) | {"intact_weight_files": intact}, indent=2))
        return
    print_newer_recording(folder)
    print_due(folder, Console(stderr=True, highlight=False, soft_wrap=True))
    print_overview(overview, Console())
    if intact is not None:
        Console().print(Text(f"{intact} weight files are intact."))


app.command()(canaries)
app.command()(check)
app.command()(cohorts)
app.command()(doctor)
app.command()(review)
app.command()(compare)
app.command()(records)
app.command()(evidence)
app.command()(verify)
app.command()(release)
app.command()(purge)
app.command()(init)
app.command()(truth)
app.add_typer(plan_app, name="plan")


@app.command()
def schema(
    policy: Annotated[
        bool,
        typer.Option("--policy", help="Print the schema of policies (see `overheard check`)."),
    ] = False,
) -> None:
    """Print the JSON schema of plans, for completion and validation in editors.

    It holds the description, the range, the default and an example of every
    key.

    \b
    Examples:
      overheard schema > plan.schema.json
      overheard schema --policy > policy.schema.json

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.gate.policy_schema import policy_schema
    from overheard.plans.schema.plan_schema import plan_schema

    typer.echo(json.dumps(policy_schema() if policy else plan_schema(), indent=2))


def main() -> None:
    """Run the command; errors that the user can correct give one message and exit code 2."""
    sigterm = SigtermHandler()
    # A network of Hugging Face is built many times, and would print a bar each time.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    signal.signal(signal.SIGTERM, sigterm)
    with warnings.catch_warnings():
        warnings.showwarning = _PluginWarningPrinter(warnings.showwarning)
        code = _run(sigterm)
    sys.exit(code)


@cache
def command() -> Callable[..., object]:
    """Return the command with the options of all its commands, built once."""
    return typer.main.get_command(app)


def _run(sigterm: SigtermHandler | None = None) -> int:
    return run_command(_call, sigterm or SigtermHandler())


def _call(*, standalone_mode: bool) -> object:
    return command()(standalone_mode=standalone_mode)


@final
class _PluginWarningPrinter:
    """Prints warnings about plugins like error messages, and other warnings as usual."""

    def __init__(self, otherwise: Callable[..., None]) -> None:
        self._otherwise = otherwise

    # Any: whatever `warnings.showwarning` takes.
    def __call__(
        self, message: Warning | str, category: type[Warning], *place: Any, **more: Any
    ) -> None:
        if issubclass(category, PluginWarning):
            Console(stderr=True, soft_wrap=True).print(escaped_text(f"overheard: {message}"))
        else:
            self._otherwise(message, category, *place, **more)
