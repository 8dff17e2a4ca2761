"""The command `cohorts`: who should take part in which round."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from overheard.cli.exits import UsageError
from overheard.cli.options import DataOption, JsonOption, NoCodeOption

if TYPE_CHECKING:  # so that --help need not load numpy
    from overheard.planning.cohorts.design import CohortDesign

ALPHA, CLASSES, NOISE = 0.5, 10, 1.0
"""What is assumed of label shares where no plan says it."""


def cohorts(
    plan: Annotated[
        Path | None,
        typer.Argument(help="A plan (TOML), whose federation is simulated to measure noise."),
    ] = None,
    clients: Annotated[
        int | None, typer.Option("--clients", help="Clients of the federation, at most 3,000.")
    ] = None,
    cohort: Annotated[
        int | None,
        typer.Option("--cohort", help="Clients wanted in a round. Default: as in the plan."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="Rounds, at most 2,000. Default: those of the plan."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="Without a plan: clients' label shares are Dirichlet(alpha). 0.1 is one or "
            f"two labels a client, 100 is nearly equal clients. Default: {ALPHA}.",
        ),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            "--classes",
            help=f"Without a plan: number of labels, at most 100. Default: {CLASSES}.",
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Without a plan: standard deviation of the noise of a sum over that of a "
            f"client's label shares. Default: {NOISE:g}, as for the resolution.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the schedules.")] = 0,
    data: DataOption = None,
    _no_code: NoCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare schedules of cohorts: what their sums reveal, and what they cost.

    Secure aggregation hides single updates, but sums over cohorts that vary are
    equations about single clients. Whoever draws the cohorts decides how much
    they reveal. Schedules, from those that vary most:

    \b
      random cohorts   each round draws its clients anew (the baseline)
      fair cohorts     whoever took part least often is next
      batches          groups that always take part together; their sizes divide
                       the cohort, so a cohort of a prime number has none
      fixed groups     one group a round, in turn

    Of each, the first table has the resolution (the share of a single client
    that the sums reveal, 0 to 1; the mean and the largest of the clients that
    take part), the smallest group whose sum can be had, in how many rounds a
    client takes part, after which round all have, and the longest wait of a
    client. Groups that always take part together hide their clients from each
    other, but the server learns each group as a whole, and who is in it.

    The second table predicts the error of an attack on label shares, as a
    share of that of a guess: about 1 means that nothing is learnt. 90 % of
    federations are expected in the range beside it. With a plan,
    two of its federations are simulated to measure how noisy updates are.
    Without one, the noise is stated.

    \b
    Examples:
      overheard cohorts --clients 20 --cohort 10 --rounds 80
      overheard cohorts --clients 1000 --cohort 50 --rounds 200 --alpha 0.1
      overheard cohorts plan.toml --cohort 5
      overheard cohorts --clients 100 --cohort 10 --rounds 80 --json

    """  # noqa: D301 - a backspace tells click to keep the lines
    if plan is not None:
        design = _of_plan(plan, clients, cohort, rounds, (alpha, classes, noise), seed, data)
    else:
        design = _of_numbers(clients, cohort, rounds, (alpha, classes, noise), seed)
    if as_json:
        typer.echo(json.dumps(_json(design), indent=2))
        return
    from overheard.cli.cohorts.tables import print_design

    print_design(design, Console(highlight=False))


Stated = tuple[float | None, int | None, float | None]
"""Alpha, classes and noise; None = not stated."""


def _of_plan(
    path: Path,
    clients: int | None,
    cohort: int | None,
    rounds: int | None,
    stated: Stated,
    seed: int,
    data: Path | None,
) -> "CohortDesign":
    if clients is not None or any(one is not None for one in stated):
        raise UsageError(
            "--clients, --alpha, --classes and --noise are for a federation without a plan: "
            "leave them out, or change data.clients and data.split in the plan."
        )
    from overheard.auditing.inputs import Resources
    from overheard.cli.plan_code import print_code
    from overheard.planning.cohorts.planned_design import propose_cohorts_of_plan
    from overheard.plans.plan import read_plan

    read = read_plan(path)
    print_code(read, Console(stderr=True))
    resources = Resources(data, workers=1)
    return propose_cohorts_of_plan(
        read, cohort=cohort, rounds=rounds, resources=resources, seed=seed
    )


def _of_numbers(
    clients: int | None, cohort: int | None, rounds: int | None, stated: Stated, seed: int
) -> "CohortDesign":
    if clients is None or cohort is None or rounds is None:
        raise UsageError(
            "state --clients, --cohort and --rounds, such as `overheard cohorts --clients 20 "
            "--cohort 10 --rounds 80`, or name a plan."
        )
    from overheard.planning.cohorts.design import propose_cohorts

    alpha, classes, noise = stated
    return propose_cohorts(
        clients,
        cohort,
        rounds,
        alpha=ALPHA if alpha is None else alpha,
        classes=CLASSES if classes is None else classes,
        noise=NOISE if noise is None else noise,
        seed=seed,
    )


def _json(design: "CohortDesign") -> dict[str, object]:
    """Return the design, with the error of each prediction as a share of the guess, too."""
    content = asdict(design)
    for made, schedule in zip(content["schedules"], design.schedules, strict=True):
        for row, predicted in zip(made["predicted"], schedule.predicted, strict=True):
            row["of_guess"] = predicted.of_guess
    return content
