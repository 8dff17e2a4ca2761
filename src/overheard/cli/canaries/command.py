"""The command that draws canaries before a run, from a plan or from a Flower app."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.exits import UsageError
from overheard.cli.init import LabelOption, ModelOption, ReadOption, TextOption, TokenizerOption
from overheard.cli.options import NoCodeOption, QuietOption
from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.auditing.canaries import DrawnCanaries
    from overheard.planning.training_facts import TrainingFacts
    from overheard.plans.plan import Plan

FlowerOption = Annotated[
    Path | None,
    typer.Option(
        "--flower",
        help="Folder of a Flower app, in place of a plan. Its files are read. Its networks, "
        "and functions that build one, are imported and called: name only an app you trust.",
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="With --flower: examples that no client holds, from which canaries are drawn: a "
        "table, arrays x and y in an .npz, a folder of images by class, or "
        "'package.module:function', which is run. With a plan: the folder with data sets; "
        "default: OVERHEARD_DATA, else a download.",
    ),
]
ClientsOption = Annotated[
    int | None,
    typer.Option(
        "--clients",
        min=1,
        max=100_000,
        help="With --flower: number of clients. Default: the nodes of the app's federation.",
    ),
]


def canaries(
    out: Annotated[Path, typer.Option("--out", help="Output folder for the files.")],
    plan: Annotated[
        Path | None, typer.Argument(help="The plan (TOML) that will audit the recording.")
    ] = None,
    flower: FlowerOption = None,
    data: DataOption = None,
    label: LabelOption = "label",
    text: TextOption = None,
    tokenizer: TokenizerOption = None,
    model: ModelOption = None,
    read: ReadOption = None,
    clients: ClientsOption = None,
    _no_code: NoCodeOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw canaries to insert into a run before it is recorded.

    Each canary is offered to one client, and a fair coin gives it or holds it
    out. An audit of the recording then measures how well attacks separate the
    two groups, which gives a lower bound on epsilon. The plan sets the numbers
    and how epsilon is bounded: do not change it later. Each client adds
    its file (x, y) to its training data. After the run, put truth.json beside
    the transcript, with the client names of the transcript or those of its
    node_names.json.

    For a Flower app no plan is needed: --flower reads how its clients train,
    and --data has examples that no client holds. The folder then has the plan,
    too, which audits the recording.

    \b
    In a plan:
      [data]
      clients = 3
      candidates = { members = 50, outsiders = 200, canaries = "mislabelled" }

    \b
    Examples:
      overheard canaries --flower . --data spare.npz --out canaries
      overheard canaries --flower . --data spare.csv --label y --clients 5 --out canaries
      overheard audit canaries/plan.toml --transcript recording
      overheard canaries plan.toml --out canaries

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.canaries import draw_canaries
    from overheard.auditing.inputs import Resources
    from overheard.cli.plan_code import print_code
    from overheard.planning.networks.app_imports import importable_from
    from overheard.plans.plan import read_plan

    if flower is not None and plan is not None:
        raise UsageError("Give a plan or --flower, not both.")
    if plan is not None:
        of_apps: dict[str, object] = {"--text": text, "--tokenizer": tokenizer}
        _refuse(of_apps | {"--model": model, "--read": read, "--clients": clients})
        audit_plan = read_plan(plan)
        print_code(audit_plan, Console(stderr=True, quiet=quiet))
        resources = Resources(None if data is None else Path(data))
        drawn = draw_canaries(audit_plan, out, resources=resources)
        if not quiet:
            _print_drawn(drawn, out)
        return
    if flower is None:
        raise UsageError(
            "Name a plan with canaries, or a Flower app: overheard canaries --flower . --data "
            f"FILE --out {quote(str(out))}"
        )
    from overheard.planning.apps.flower_app import read_flower_app
    from overheard.planning.canaries.app_plan import plan_canaries
    from overheard.planning.first_plan.request import FirstPlanRequest

    request = FirstPlanRequest(
        app=read_flower_app(flower),
        data=data,
        label=label,
        model=model,
        read=tuple(read or ()),
        text=text,
        tokenizer=tokenizer,
    )
    found = plan_canaries(request, clients, Resources())
    print_code(found.plan, Console(stderr=True, quiet=quiet))
    with importable_from(flower):
        drawn = draw_canaries(found.plan, out)
    if not quiet:
        _print_app(found.plan, found.training, found.scale)
        _print_drawn(drawn, out)
        _print_next_steps(flower, out)


def _refuse(of_apps: Mapping[str, object]) -> None:
    """Refuse options of apps beside a plan."""
    for option, value in of_apps.items():
        if value is not None:
            raise UsageError(f"{option} goes with --flower: the plan sets it.")


def _print_app(plan: "Plan", training: "TrainingFacts", scale: str) -> None:
    """Print what was found of the app."""
    model = plan.training.model
    attacks = ", ".join(one.name for threat in plan.threats for one in threat.attacks)
    lines = [f"Network: {getattr(model, 'reference', model)}. Clients: {plan.data.clients}."]
    lines += [f"{line}." for line in training.lines()]
    lines.append(f"Attacks of the plan: {attacks}.")
    if scale:
        lines.append(
            f"Numbers in x are {scale}. If clients train on another scale, draw anew with "
            "--read \"scale = 'as_written'\" and data on theirs."
        )
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(escaped_text(line))


def _print_drawn(drawn: "DrawnCanaries", out: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for party, file in drawn.files.items():
        console.print(escaped_text(f"{party}: {drawn.counts[party]} canaries, {file}"))
    console.print(escaped_text(f"held out: {drawn.held_out} canaries"))
    console.print(Text(f"Ground truth: {out / 'truth.json'}", style="bold"))


def _print_next_steps(flower: Path, out: Path) -> None:
    """Print what to do with the files, until the recording is audited."""
    path = ""
    if flower.resolve() != Path.cwd():
        path = f"PYTHONPATH={quote(str(flower))} "
    plan, truth = quote(str(out / "plan.toml")), quote(str(out / "truth.json"))
    console = Console(highlight=False, soft_wrap=True)
    for line in (
        f"Plan: {out / 'plan.toml'}. Do not change it. To have other numbers or attacks, copy "
        "it, change the copy, and draw anew: overheard canaries COPY --out OTHER",
        "Next: partition N adds x and y of client-N.npz to its training data, and puts its "
        "number into the metrics of its replies (partition-id), so that the recording names "
        "it. Run and record the app. Then:",
        f"  cp {truth} RECORDING/",
        f"  {path}overheard audit {plan} --transcript RECORDING",
    ):
        console.print(escaped_text(line))
