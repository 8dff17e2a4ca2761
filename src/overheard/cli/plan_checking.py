"""The command `plan check`: what a plan will run, refuse and cost."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from overheard.cli.options import (
    DataOption,
    JsonOption,
    NoCodeOption,
    TrustStoreOption,
    WorkersOption,
)
from overheard.cli.plan_code import find_code, print_code
from overheard.cli.terminal import escaped_text
from overheard.cli.workers import WorkerOptions

plan_app = typer.Typer(
    name="plan",
    help="Look into a plan before it runs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@plan_app.callback()
def plan_commands() -> None:
    """Look into a plan before it runs."""


@plan_app.command("check")
def plan_check(
    plan: Annotated[Path, typer.Argument(help="The plan (TOML).")],
    transcript: Annotated[
        Path | None, typer.Option(help="Folder of the recorded run that it will audit.")
    ] = None,
    data: DataOption = None,
    workers: WorkersOption = None,
    estimate: Annotated[
        bool, typer.Option(help="Measure how long attacks take, for about a minute.")
    ] = True,
    _trust_store: TrustStoreOption = False,
    _no_code: NoCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what a plan will run, refuse and cost. No federation is trained.

    States first which code of others the plan names, which is not imported
    before that. Then states which attacks run in which arm, which are refused and why, on which
    questions no verdict can be given, and how much time, memory and disk the
    audit takes, within a factor of three. The time rests on a measurement: each
    attack runs on a single target with made-up updates, or recorded ones.

    \b
    Exit codes:
      0  at least one attack can run
      2  no attack can run, or the plan or its data are invalid

    \b
    Examples:
      overheard plan check plan.toml
      overheard plan check plan.toml --transcript recording --json

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.inputs import Resources
    from overheard.planning.plan_check import check_plan
    from overheard.plans.plan import read_plan

    options = workers or WorkerOptions()
    checked_plan = read_plan(plan)
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    print_code(checked_plan, console)
    checked = check_plan(
        checked_plan,
        Resources(data, workers=options.processes),
        transcript,
        with_estimate=estimate,
    )
    if as_json:
        code = [asdict(one) for one in find_code(checked_plan)]
        typer.echo(json.dumps(asdict(checked) | {"code": code}, indent=2))
    for line in checked.lines():
        console.print(escaped_text(line))
    raise typer.Exit(0 if checked.can_run else 2)
